//! Cost estimates before an evaluation, and actual costs of an evaluation.

mod estimate;
mod functions;
mod range;

pub(crate) use self::estimate::estimate;
pub use self::range::{CallEstimate, CostEstimate, SizeEstimate};
use crate::{Type, Value, syntax::Expr};

/// The cost per traversed character.
pub const STRING_TRAVERSAL_FACTOR: f64 = 0.1;
/// The cost per character of a regular expression.
pub const REGEX_LENGTH_FACTOR: f64 = 0.25;
/// The cost of creating a list.
pub const LIST_CREATE: u64 = 10;
/// The cost of creating a map.
pub const MAP_CREATE: u64 = 30;
/// The cost of creating an object.
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

/// Estimates a call; `None` defers to the next rule.
pub type Estimate = fn(&EstimateCall<'_>) -> Option<CallEstimate>;

/// The actual cost of a call; `None` defers to the next rule.
pub type RuntimeCost = fn(&RuntimeCall<'_, '_>) -> Option<u64>;

/// A call to estimate.
pub struct EstimateCall<'e> {
    /// The overload.
    pub overload: &'e str,
    /// The receiver of a member call.
    pub target: Option<&'e CostNode<'e>>,
    /// The arguments without the receiver.
    pub args: &'e [CostNode<'e>],
    /// The declared sizes.
    pub sizes: &'e dyn Sizes,
}

/// An operand of a call to estimate.
pub struct CostNode<'e> {
    /// The path in the declared variables: the variable, then fields, `@items`, `@keys` or `@values`. Empty
    /// if the operand is not part of a variable.
    pub path: Vec<String>,
    /// Its type.
    pub ty: Type,
    /// The expression, unless it is an item of a list that is no literal.
    pub expr: Option<&'e Expr>,
    /// The size, if the expression or the declarations determine it.
    pub computed_size: Option<SizeEstimate>,
}

/// Declared sizes of values.
pub trait Sizes {
    /// The size of the value at a path of the declared variables.
    fn size(&self, path: &[String]) -> Option<SizeEstimate>;
}

/// A call that was evaluated.
pub struct RuntimeCall<'c, 'a> {
    /// The overload; empty if it was chosen by the argument values.
    pub overload: &'c str,
    /// The arguments, receiver first.
    pub args: &'c [Value<'a>],
    /// The result.
    pub result: &'c Value<'a>,
}

impl EstimateCall<'_> {
    /// The size of an operand, or an unbounded size.
    pub fn size(&self, node: &CostNode<'_>) -> SizeEstimate {
        node.computed_size.or_else(|| self.sizes.size(&node.path)).unwrap_or(SizeEstimate::UNKNOWN)
    }

    /// The items of a list, as an operand.
    pub fn items<'n>(&self, list: &CostNode<'n>) -> Option<CostNode<'n>> {
        let item = list.ty.params().first()?.clone();
        let mut path = list.path.clone();
        if !path.is_empty() {
            path.push("@items".to_owned());
        }
        Some(CostNode { path, ty: item, expr: None, computed_size: None })
    }
}
