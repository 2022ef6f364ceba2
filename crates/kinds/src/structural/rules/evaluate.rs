//! Evaluates rules on an object.

use cel::{Declared, Outcome, Type, Value as CelValue};
use model::error::{FieldError, FieldErrorKind, Path};
use serde_json::{Map, Value};

use super::compile::{CALL_LIMIT, Compiled, RuleNode, Rules};
use crate::structural::{
    node::{Node, ValueType, Values},
    validate::{Old, OldValue},
};

/// The cost limit of all rules for one object.
const BUDGET: u64 = 10_000_000;
/// The longest message of an expression, in bytes.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;
/// Kubernetes' message for an exceeded cost limit.
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The result of a validation.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The errors.
    pub errors: Vec<FieldError>,
    /// Ratcheted errors: they existed before and their values are unchanged.
    pub warnings: Vec<String>,
}

impl From<Vec<FieldError>> for Verdict {
    fn from(errors: Vec<FieldError>) -> Self {
        Self { errors, warnings: Vec::new() }
    }
}

impl Rules {
    /// Evaluates the rules on an object with its schema; on update, `old` is the stored object.
    pub fn validate(
        &self,
        root: &Node,
        new: &Map<String, Value>,
        old: Option<&Map<String, Value>>,
    ) -> Verdict {
        let mut run = Run { budget: BUDGET, verdict: Verdict::default() };
        let pair = old.map(|object| Pair::Root { new, old: Old { object, node: root } });
        let ratchet = Ratchet { current: pair, nearest: None };
        // `Stop` only ends the walk: the exhausted budget has been reported.
        let _ = run.place(
            &self.root,
            root,
            &Path::OBJECT,
            RuleValue::Root(new),
            old.map(RuleValue::Root),
            ratchet,
        );
        run.verdict
    }
}

/// A value: the root object or a nested value.
#[derive(Clone, Copy)]
enum RuleValue<'a> {
    Root(&'a Map<String, Value>),
    Nested(&'a Value),
}

impl<'a> RuleValue<'a> {
    fn object(self) -> Option<&'a Map<String, Value>> {
        match self {
            Self::Root(object) => Some(object),
            Self::Nested(value) => value.as_object(),
        }
    }

    fn read(self, declared: &'a Declared) -> cel::Result<CelValue<'a>> {
        match (self, &declared.ty) {
            (Self::Root(entries), Type::Object(object)) => {
                Ok(CelValue::Map(cel::Map::Object { entries, object }))
            }
            (Self::Root(_), _) => Err(cel::Error::no_such_overload()),
            (Self::Nested(value), _) => CelValue::from_json(value, declared),
        }
    }
}

/// The budget is exhausted: no further rule runs.
struct Stop;

type Walk = Result<(), Stop>;

/// A value and its old value.
#[derive(Clone, Copy)]
enum Pair<'a> {
    Root { new: &'a Map<String, Value>, old: Old<'a> },
    Nested { new: &'a Value, old: OldValue<'a> },
}

impl<'a> Pair<'a> {
    fn is_unchanged(self) -> bool {
        match self {
            Self::Root { new, old } => old.equals(new),
            Self::Nested { new, old } => old.equals(new),
        }
    }

    fn key(self, key: &str, new: &'a Value) -> Option<Self> {
        let old = match self {
            Self::Root { old, .. } => old.key(key),
            Self::Nested { old, .. } => old.object()?.key(key),
        };
        old.map(|old| Self::Nested { new, old })
    }

    fn item(self, new: &'a Value) -> Option<Self> {
        match self {
            Self::Root { .. } => None,
            Self::Nested { old, .. } => old.items()?.of(new).map(|old| Self::Nested { new, old }),
        }
    }
}

/// The old value that decides whether an error is ratcheted.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    current: Option<Pair<'a>>,
    /// The nearest ancestor with an old value.
    nearest: Option<Pair<'a>>,
}

impl<'a> Ratchet<'a> {
    fn is_unchanged(self) -> bool {
        self.current.or(self.nearest).is_some_and(Pair::is_unchanged)
    }

    fn key(self, key: &str, new: &'a Value) -> Self {
        let Some(pair) = self.current else { return self };
        if self.nearest.is_none() && matches!(key, "apiVersion" | "kind") {
            return Self { current: None, nearest: None };
        }
        Self { current: pair.key(key, new), nearest: self.current }
    }

    fn item(self, new: &'a Value) -> Self {
        let Some(pair) = self.current else { return self };
        Self { current: pair.item(new), nearest: self.current }
    }
}

struct Run {
    budget: u64,
    verdict: Verdict,
}

impl Run {
    fn place<'a>(
        &mut self,
        place: &'a RuleNode,
        node: &'a Node,
        at: &Path<'_>,
        new: RuleValue<'a>,
        old: Option<RuleValue<'a>>,
        ratchet: Ratchet<'a>,
    ) -> Walk {
        if matches!(new, RuleValue::Nested(Value::Null)) {
            return Ok(());
        }
        let old = old.filter(|old| !matches!(old, RuleValue::Nested(Value::Null)));
        if !place.rules.is_empty() {
            self.rules(place, node, at, new, old, ratchet)?;
        }
        if let Some(object) = new.object() {
            return self.object(place, node, at, object, old.and_then(RuleValue::object), ratchet);
        }
        match (new, old) {
            (RuleValue::Nested(Value::Array(list)), Some(RuleValue::Nested(old))) => {
                self.list(place, node, at, list, Some(old), ratchet)
            }
            (RuleValue::Nested(Value::Array(list)), _) => self.list(place, node, at, list, None, ratchet),
            _ => Ok(()),
        }
    }

    fn list<'a>(
        &mut self,
        place: &'a RuleNode,
        node: &'a Node,
        at: &Path<'_>,
        list: &'a [Value],
        old: Option<&'a Value>,
        ratchet: Ratchet<'a>,
    ) -> Walk {
        let (Some(below), Some(items)) = (place.items.as_deref(), node.items.as_deref()) else {
            return Ok(());
        };
        let old_items = old.and_then(|value| OldValue { value, node }.items());
        for (index, item) in list.iter().enumerate() {
            let old = old_items.as_ref().and_then(|old| old.of(item)).map(|old| RuleValue::Nested(old.value));
            self.place(below, items, &at.at(index), RuleValue::Nested(item), old, ratchet.item(item))?;
        }
        Ok(())
    }

    fn object<'a>(
        &mut self,
        place: &'a RuleNode,
        node: &'a Node,
        at: &Path<'_>,
        object: &'a Map<String, Value>,
        old: Option<&'a Map<String, Value>>,
        ratchet: Ratchet<'a>,
    ) -> Walk {
        let old = |key: &str| old.and_then(|old| old.get(key)).map(RuleValue::Nested);
        if let (Some(below), Values::Of(values)) = (place.values.as_deref(), &node.values) {
            for (key, value) in object {
                let at = at.key(key);
                self.place(below, values, &at, RuleValue::Nested(value), old(key), ratchet.key(key, value))?;
            }
        }
        for (name, below) in &place.fields {
            let (Some(value), Some(field)) = (object.get(&**name), node.field(name)) else { continue };
            let at = at.field(name);
            self.place(below, field, &at, RuleValue::Nested(value), old(name), ratchet.key(name, value))?;
        }
        Ok(())
    }

    fn rules<'a>(
        &mut self,
        place: &'a RuleNode,
        node: &Node,
        at: &Path<'_>,
        new: RuleValue<'a>,
        old: Option<RuleValue<'a>>,
        ratchet: Ratchet<'a>,
    ) -> Walk {
        let here = Here { at, kind: node.kind, value: new, ratchet };
        if self.budget == 0 {
            return self.stop(&here, OUT_OF_BUDGET.to_owned());
        }
        let read = new.read(&place.declared);
        let values = read.and_then(|new| Ok((new, old.map(|old| old.read(&place.declared)).transpose()?)));
        for rule in &place.rules {
            let is_optional = rule.source.optional_old_self == Some(true);
            if rule.uses_old_self && old.is_none() && !is_optional {
                continue;
            }
            let (new, old) = match &values {
                Ok((new, old)) => (new, old.as_ref()),
                Err(error) => {
                    self.invalid(&here, format!("{error} evaluating rule: {}", rule.source.shown()));
                    continue;
                }
            };
            if !self.passes(rule, &bindings(new, old, is_optional), &here)? {
                // `oldSelf` is never optional in message expressions.
                self.broken(rule, &bindings(new, old, false), &here)?;
            }
        }
        Ok(())
    }

    /// Whether a rule holds; an evaluation error is reported and counts as passed.
    fn passes(
        &mut self,
        rule: &Compiled,
        bindings: &[(&str, CelValue<'_>)],
        here: &Here<'_, '_>,
    ) -> Result<bool, Stop> {
        let program = match &rule.program {
            Ok(program) => program,
            Err(problem) => {
                self.invalid(here, format!("rule compile error: {problem}"));
                return Ok(true);
            }
        };
        let Outcome { value, cost } = program.evaluate(bindings, CALL_LIMIT);
        match self.budget.checked_sub(cost) {
            Some(rest) => self.budget = rest,
            None => return self.stop(here, OUT_OF_BUDGET.to_owned()).map(|()| true),
        }
        let shown = rule.source.shown();
        match value {
            Ok(CelValue::Bool(holds)) => return Ok(holds),
            Ok(_) => return Ok(false),
            Err(error) if error.is_cost_limit() => {
                let problem = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
                );
                return self.stop(here, problem).map(|()| true);
            }
            Err(error) if error.message().starts_with("no such overload") => self.invalid(
                here,
                format!(
                    "'{error}': call arguments did not match a supported operator, function or macro signature for rule: \
                     {shown}"
                ),
            ),
            Err(error) => self.invalid(here, format!("{error} evaluating rule: {shown}")),
        }
        Ok(true)
    }

    /// Reports a rule that does not hold, with its message.
    fn broken(&mut self, rule: &Compiled, bindings: &[(&str, CelValue<'_>)], here: &Here<'_, '_>) -> Walk {
        let path = match &rule.field_path {
            None => here.at.shown(),
            Some(below) => here.at.field(below).into(),
        };
        let said = match &rule.message {
            None => Ok(None),
            Some(program) => {
                let Outcome { value, cost } = program.evaluate(bindings, CALL_LIMIT);
                match self.budget.checked_sub(cost) {
                    None => Err(
                        "messageExpression evaluation failed due to running out of cost budget, no further \
                                 validation rules will be run"
                            .to_owned(),
                    ),
                    Some(rest) => {
                        self.budget = rest;
                        message_text(value, &rule.source.message_expression)
                    }
                }
            }
        };
        let (detail, ends) = match said {
            Ok(Some(text)) => (text, false),
            Ok(None) if rule.source.message.is_empty() => {
                (format!("failed rule: {}", rule.source.shown()), false)
            }
            Ok(None) => (rule.source.shown().to_owned(), false),
            Err(problem) => (problem, true),
        };
        let error = match ends {
            true => FieldError::invalid(path, here.kind_name(), detail),
            false => here.error(path, detail, rule.source.reason.as_deref()),
        };
        if !rule.uses_old_self && here.ratchet.is_unchanged() {
            self.verdict.warnings.push(error.to_string());
        } else {
            self.verdict.errors.push(error);
        }
        if ends { Err(Stop) } else { Ok(()) }
    }

    fn invalid(&mut self, here: &Here<'_, '_>, problem: String) {
        self.verdict.errors.push(FieldError::invalid(here.at.shown(), here.kind_name(), problem));
    }

    fn stop(&mut self, here: &Here<'_, '_>, problem: String) -> Walk {
        self.invalid(here, problem);
        Err(Stop)
    }
}

/// The variables of a rule.
fn bindings<'a>(
    new: &CelValue<'a>,
    old: Option<&CelValue<'a>>,
    is_optional: bool,
) -> Vec<(&'static str, CelValue<'a>)> {
    let old = match (old, is_optional) {
        (Some(old), true) => Some(CelValue::some(old.clone())),
        (None, true) => Some(CelValue::Optional(None)),
        (old, false) => old.cloned(),
    };
    std::iter::once(("self", new.clone())).chain(old.map(|old| ("oldSelf", old))).collect()
}

/// The message of a message expression; `None` if it is unusable, an error if the budget is exhausted.
fn message_text(value: cel::Result<CelValue<'_>>, source: &str) -> Result<Option<String>, String> {
    let value = match value {
        Err(error) if error.is_cost_limit() => {
            return Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                model::error::quote(source)
            ));
        }
        Err(_) => return Ok(None),
        Ok(value) => value,
    };
    let text = value.as_str().unwrap_or_default().trim();
    let is_useful = !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
    Ok(is_useful.then(|| text.to_owned()))
}

/// The value of the present rules, and its path.
struct Here<'h, 'a> {
    at: &'h Path<'h>,
    kind: Option<ValueType>,
    value: RuleValue<'a>,
    ratchet: Ratchet<'a>,
}

impl Here<'_, '_> {
    /// The name of a value's type in errors that do not show the value.
    fn kind_name(&self) -> &'static str {
        self.kind.map_or("", ValueType::name)
    }

    fn error(&self, path: String, detail: String, reason: Option<&str>) -> FieldError {
        let value = match (self.kind, self.value) {
            (Some(ValueType::Object | ValueType::Array), _) | (_, RuleValue::Root(_)) => None,
            (_, RuleValue::Nested(value)) => Some(value.clone()),
        };
        match reason {
            Some("FieldValueForbidden") => FieldError::forbidden(path, detail),
            Some("FieldValueRequired") => FieldError::required(path, detail),
            Some("FieldValueDuplicate") => {
                FieldError { path, kind: FieldErrorKind::Duplicate, value, detail: String::new() }
            }
            _ => FieldError { path, kind: FieldErrorKind::Invalid, value, detail },
        }
    }
}
