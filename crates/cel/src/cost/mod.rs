//! What an expression may cost before it is run, and what a run has cost.

mod estimate;
mod functions;
mod range;

pub(crate) use self::estimate::estimate;
pub use self::range::{CallEstimate, CostEstimate, SizeEstimate};
use crate::{Type, Value, syntax::Expr};

/// What a traversed character costs.
pub const STRING_TRAVERSAL_FACTOR: f64 = 0.1;
/// What a character of a regular expression costs.
pub const REGEX_LENGTH_FACTOR: f64 = 0.25;
/// What making a list costs.
pub const LIST_CREATE: u64 = 10;
/// What making a map costs.
pub const MAP_CREATE: u64 = 30;
/// What making an object costs.
pub const STRUCT_CREATE: u64 = 40;

/// Whether an overload compares two values up to the end of the shorter one.
pub(crate) fn compares(overload: &str) -> bool {
    matches!(
        overload,
        "equals"
            | "not_equals"
            | "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
    )
}

/// Estimates a call, or leaves it to the rules that come after.
pub type Estimate = fn(&EstimateCall<'_>) -> Option<CallEstimate>;

/// What a call has cost, or nothing to leave it to the rules that come after.
pub type RuntimeCost = fn(&RuntimeCall<'_, '_>) -> Option<u64>;

/// A call whose cost is asked for before it runs.
pub struct EstimateCall<'e> {
    /// The overload that may be called.
    pub overload: &'e str,
    /// The receiver, if it is called as a member.
    pub target: Option<&'e CostNode<'e>>,
    /// The arguments without the receiver.
    pub args: &'e [CostNode<'e>],
    /// What is known about sizes.
    pub sizes: &'e dyn Sizes,
}

/// A part of an expression, as estimates see it.
pub struct CostNode<'e> {
    /// Where it stands in the declared variables: the variable, then fields, `@items`, `@keys` or `@values`. Empty if
    /// it is not part of one.
    pub path: Vec<String>,
    /// Its type.
    pub ty: Type,
    /// The expression, unless it is an item of a list that is not written out.
    pub expr: Option<&'e Expr>,
    /// Its size where the expression or the declarations tell it.
    pub computed_size: Option<SizeEstimate>,
}

/// Knows how large values may be.
pub trait Sizes {
    /// The size of what stands at a path of the declared variables.
    fn size(&self, path: &[String]) -> Option<SizeEstimate>;
}

/// A call that has run.
pub struct RuntimeCall<'c, 'a> {
    /// The overload; empty if only the values decided which one it was.
    pub overload: &'c str,
    /// The arguments; the receiver comes first.
    pub args: &'c [Value<'a>],
    /// What came out.
    pub result: &'c Value<'a>,
}

impl EstimateCall<'_> {
    /// The size of a node, or everything if nothing is known.
    pub fn size(&self, node: &CostNode<'_>) -> SizeEstimate {
        node.computed_size.or_else(|| self.sizes.size(&node.path)).unwrap_or(SizeEstimate::UNKNOWN)
    }

    /// The items of a list, as a node.
    pub fn items<'n>(&self, list: &CostNode<'n>) -> Option<CostNode<'n>> {
        let item = list.ty.params().first()?.clone();
        let mut path = list.path.clone();
        if !path.is_empty() {
            path.push("@items".to_owned());
        }
        Some(CostNode { path, ty: item, expr: None, computed_size: None })
    }
}
