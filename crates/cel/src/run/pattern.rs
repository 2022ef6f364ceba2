//! Regular expressions that are compiled during an evaluation.

use regex::Regex;

use super::Run;
use crate::{
    Result, Value,
    pattern::{Weight, compile_weighed},
    plan::CallNode,
};

/// The number of small patterns per evaluation that cost no more than in Kubernetes.
const FREE: u32 = 256;
/// The cost of each further pattern. Kubernetes charges the length of a pattern, but the work is its
/// compilation: without this, a rule within all limits could run for minutes.
const SMALL_COST: u64 = 50;
/// The cost of a medium pattern, which repeats classes of many characters.
const MEDIUM_COST: u64 = 2_000;
/// The cost of a large pattern.
const LARGE_COST: u64 = 20_000;

/// The patterns of an evaluation.
#[derive(Default)]
pub(super) struct Patterns {
    /// The number of compiled patterns.
    compiled: u32,
    /// The last compiled pattern: most loops use one for all items.
    last: Option<(String, Compiled)>,
}

/// A compiled pattern, or its error.
pub(super) type Compiled = std::result::Result<Regex, String>;

impl<'a> Run<'a, '_> {
    /// Compiles the pattern argument of a call, unless the planner has compiled it.
    pub(super) fn pattern(&mut self, call: &CallNode, args: &[Value<'a>]) -> Result<Option<Compiled>> {
        let Some(Value::String(text)) = call.pattern.and_then(|index| args.get(index)) else {
            return Ok(None);
        };
        let text: &str = text;
        if let Some((_, compiled)) = self.patterns.last.as_ref().filter(|(last, _)| last == text) {
            return Ok(Some(compiled.clone()));
        }
        let (compiled, weight) = compile_weighed(text);
        self.patterns.compiled = self.patterns.compiled.saturating_add(1);
        match weight {
            Weight::Small if self.patterns.compiled <= FREE => {}
            Weight::Small => self.charge(SMALL_COST)?,
            Weight::Medium => self.charge(MEDIUM_COST)?,
            Weight::Large => self.charge(LARGE_COST)?,
        }
        self.patterns.last = Some((text.to_owned(), compiled.clone()));
        Ok(Some(compiled))
    }
}
