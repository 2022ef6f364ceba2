//! Patterns that are known only when an expression runs.

use regex::Regex;

use super::Run;
use crate::{
    Result, Value,
    pattern::{Weight, compile_weighed},
    plan::CallNode,
};

/// So many small patterns cost no more in a run than Kubernetes says.
const FREE: u32 = 256;
/// What each further one costs. Kubernetes counts the length of a pattern, but the work is to compile it: without this, a rule within all
/// limits could run for minutes.
const SMALL_COST: u64 = 50;
/// What a pattern of medium size costs: it repeats classes of many characters.
const MEDIUM_COST: u64 = 2_000;
/// What a large pattern costs.
const LARGE_COST: u64 = 20_000;

/// The patterns of a run.
#[derive(Default)]
pub(super) struct Patterns {
    /// How many there were.
    compiled: u32,
    /// The one that was compiled last: most loops have one for all items.
    last: Option<(String, Compiled)>,
}

/// A pattern, or what is wrong with it.
pub(super) type Compiled = std::result::Result<Regex, String>;

impl<'a> Run<'a, '_> {
    /// The pattern among the arguments of a call, if it is not compiled already.
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
