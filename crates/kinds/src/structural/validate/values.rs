//! Types and constraints of OpenAPI, with the messages and the order of Kubernetes' validator.

use model::error::{FieldError, Path, display_number, quote};
use serde_json::{Map, Number, Value};

use super::correlate::{Old, OldValue, values_of};
use super::errors::Errors;
use super::types::{Input, is_same, is_whole, type_problem};
use crate::structural::checks::Checks;
use crate::structural::format::Format;
use crate::structural::node::{Node, Values};

/// The result of a check: errors, and the number of matches, which selects the closest of several schemas.
#[derive(Default)]
struct Outcome {
    errors: Errors,
    matches: usize,
}

impl Outcome {
    fn merge(&mut self, other: Self) {
        self.errors.merge(other.errors);
        self.matches += other.matches;
    }

    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// Validates values; paths have a prefix that messages do not show.
pub struct Checker<'a> {
    pub prefix: &'a str,
}

impl Checker<'_> {
    /// Validates the root object.
    pub fn root(&self, node: &Node, new: &Map<String, Value>, old: Option<Old<'_>>) -> Vec<FieldError> {
        let outcome = self.check(node, Input::Root(new), old, None, &Path::OBJECT);
        if old.is_some_and(|old| !outcome.is_valid() && old.equals(new)) {
            return Vec::new();
        }
        outcome.errors.into_list()
    }

    /// Validates a nested value on its own.
    pub fn nested(&self, node: &Node, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.ratcheted(node, new, old.map(|value| OldValue { value, node }), &Path::OBJECT).errors.into_list()
    }

    /// Validates a value; errors of an unchanged value are dropped.
    fn ratcheted(&self, node: &Node, new: &Value, old: Option<OldValue<'_>>, at: &Path<'_>) -> Outcome {
        let mut outcome = self.check(node, Input::Value(new), old.and_then(OldValue::object), old, at);
        if old.is_some_and(|old| !outcome.is_valid() && old.equals(new)) {
            outcome.errors.clear();
        }
        outcome
    }

    fn check(
        &self,
        node: &Node,
        given: Input<'_>,
        old: Option<Old<'_>>,
        old_value: Option<OldValue<'_>>,
        at: &Path<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        self.check_type(node, given, at, &mut outcome);
        let checks = node.checks.as_deref();
        if let Input::Value(Value::Null) = given {
            self.check_enum(checks, given, at, &mut outcome);
            return outcome;
        }
        outcome.matches += 4;
        if let Some(checks) = checks {
            self.combine(checks, given, old, old_value, at, &mut outcome);
        }
        match given {
            Input::Value(Value::String(text)) => self.check_text(checks, text, at, &mut outcome),
            Input::Value(Value::Number(number)) => self.check_number(checks, number, at, &mut outcome),
            Input::Value(Value::Array(list)) => self.check_list(node, list, old_value, at, &mut outcome),
            _ => {}
        }
        self.check_enum(checks, given, at, &mut outcome);
        if let Some(object) = given.object() {
            self.check_object(node, object, old, at, &mut outcome);
        }
        outcome
    }

    fn path(&self, at: &Path<'_>) -> String {
        match self.prefix {
            "" => at.shown(),
            prefix if at.is_object() => prefix.to_owned(),
            prefix => format!("{prefix}.{at}"),
        }
    }

    fn invalid(&self, at: &Path<'_>, value: impl Into<Value>, what: &str) -> FieldError {
        FieldError::invalid(self.path(at), value, in_body(at, what))
    }

    fn check_type(&self, node: &Node, given: Input<'_>, at: &Path<'_>, outcome: &mut Outcome) {
        let format = node
            .checks
            .as_ref()
            .and_then(|checks| checks.format.as_ref())
            .filter(|format| format.is_checked());
        let has_type = node.kind.is_some() || node.int_or_string;
        let is_null = matches!(given, Input::Value(Value::Null));
        if !is_null && !has_type && format.is_none() {
            return;
        }
        outcome.matches += usize::from(!is_null);
        match type_problem(node, format.map(Format::name), given) {
            None => outcome.matches += 1,
            Some((expected, actual)) => {
                let what = in_body(at, &format!("must be of type {expected}: {}", quote(actual)));
                outcome.errors.push(FieldError::type_invalid(self.path(at), actual, what));
            }
        }
    }

    /// Checks `anyOf`, `oneOf`, `allOf` and `not`.
    fn combine(
        &self,
        checks: &Checks,
        given: Input<'_>,
        old: Option<Old<'_>>,
        old_value: Option<OldValue<'_>>,
        at: &Path<'_>,
        outcome: &mut Outcome,
    ) {
        let check = |node: &Node| self.check(node, given, old, old_value, at);
        let prefix = if self.prefix.is_empty() { "<nil>" } else { self.prefix };
        let complain =
            |what: String| FieldError::invalid(prefix, "", format!("{} must {what}", quote(&at.to_string())));
        if !checks.any_of.is_empty() {
            let (closest, valid) = closest(&checks.any_of, true, check);
            if valid == 0 {
                outcome.errors.push(complain("validate at least one schema (anyOf)".to_owned()));
            }
            outcome.merge(closest);
        }
        if !checks.one_of.is_empty() {
            let (closest, valid) = closest(&checks.one_of, false, check);
            let found = match valid {
                0 => "Found none valid".to_owned(),
                valid => format!("Found {valid} valid alternatives"),
            };
            if valid != 1 {
                outcome.errors.push(complain(format!("validate one and only one schema (oneOf). {found}")));
            }
            if valid <= 1 {
                outcome.merge(closest);
            }
        }
        if !checks.all_of.is_empty() {
            let mut valid = 0;
            for node in &checks.all_of {
                let result = check(node);
                valid += usize::from(result.is_valid());
                outcome.merge(result);
            }
            if valid != checks.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                outcome.errors.push(complain(format!("validate all the schemas (allOf){none}")));
            }
        }
        if checks.not.as_deref().is_some_and(|not| check(not).is_valid()) {
            outcome.errors.push(complain("not validate the schema (not)".to_owned()));
        }
    }

    fn check_text(&self, checks: Option<&Checks>, text: &str, at: &Path<'_>, outcome: &mut Outcome) {
        outcome.matches += 1;
        let Some(checks) = checks else { return };
        outcome.errors.extend(self.bad_text(checks, text, at));
        if let Some(format) = checks.format.as_ref().filter(|format| format.is_checked()) {
            outcome.matches += 1;
            if !format.fits(text) {
                let what = in_body(at, &format!("must be of type {}: {}", format.name(), quote(text)));
                outcome.errors.push(FieldError::type_invalid(self.path(at), text, what));
            }
        }
    }

    /// The first violation of a string's length or pattern.
    fn bad_text(&self, checks: &Checks, text: &str, at: &Path<'_>) -> Option<FieldError> {
        let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(max) = checks.max_length.filter(|max| length() > *max) {
            return Some(FieldError::too_long(self.path(at), usize::try_from(max).unwrap_or_default()));
        }
        if let Some(min) = checks.min_length.filter(|min| length() < *min) {
            return Some(self.invalid(at, text, &format!("should be at least {min} chars long")));
        }
        let pattern = checks.pattern.as_ref()?;
        (!pattern.matches(text)).then(|| self.invalid(at, text, &format!("should match '{pattern}'")))
    }

    fn check_number(&self, checks: Option<&Checks>, number: &Number, at: &Path<'_>, outcome: &mut Outcome) {
        outcome.matches += 2;
        let Some(checks) = checks else { return };
        if let Some(factor) = checks.multiple_of {
            outcome.errors.extend(self.bad_multiple(number, factor, at));
        }
        let compare = |bound: f64| match number.as_i64() {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "bounds of integers are whole, as in Kubernetes"
            )]
            Some(integer) => (integer.cmp(&(bound as i64)), Number::from(bound as i64)),
            None => {
                let float = number.as_f64().unwrap_or_default();
                (float.total_cmp(&bound), Number::from_f64(bound).unwrap_or_else(|| 0.into()))
            }
        };
        let bounds = [
            (checks.minimum, checks.exclusive_minimum, std::cmp::Ordering::Less, "greater"),
            (checks.maximum, checks.exclusive_maximum, std::cmp::Ordering::Greater, "less"),
        ];
        for (bound, exclusive, wrong, word) in bounds {
            let Some((ordering, bound)) = bound.map(compare) else { continue };
            if ordering == wrong || (exclusive && ordering.is_eq()) {
                let or_equal = if exclusive { "" } else { " or equal to" };
                // "less than or equal to", "less than".
                let what = format!("should be {word} than{or_equal} {}", display_number(&bound));
                outcome.errors.push(self.invalid(at, number.clone(), &what));
            }
        }
    }

    fn bad_multiple(&self, number: &Number, factor: f64, at: &Path<'_>) -> Option<FieldError> {
        let (fits, factor) = match number.as_i64() {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "factors of integers are whole, as in Kubernetes"
            )]
            Some(integer) => {
                let factor = factor as i64;
                ((factor > 0).then(|| integer % factor == 0), Number::from(factor))
            }
            None => {
                let float = number.as_f64().unwrap_or_default();
                let quotient = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
                let shown = Number::from_f64(factor).unwrap_or_else(|| 0.into());
                ((factor > 0.0).then(|| is_whole(quotient)), shown)
            }
        };
        let shown = display_number(&factor);
        match fits {
            Some(true) => None,
            Some(false) => {
                Some(self.invalid(at, number.clone(), &format!("should be a multiple of {shown}")))
            }
            None => {
                let what = format!("factor MultipleOf declared for {at} must be positive: {shown}");
                Some(FieldError::invalid(self.path(at), factor, what))
            }
        }
    }

    fn check_list(
        &self,
        node: &Node,
        list: &[Value],
        old: Option<OldValue<'_>>,
        at: &Path<'_>,
        outcome: &mut Outcome,
    ) {
        outcome.matches += 2;
        if let Some(items) = &node.items {
            let old = old.and_then(OldValue::items);
            for (index, item) in list.iter().enumerate() {
                if outcome.errors.is_full() {
                    break;
                }
                let old = old.as_ref().and_then(|old| old.of(item));
                outcome.merge(self.ratcheted(items, item, old, &at.at(index)));
            }
        }
        let Some(checks) = &node.checks else { return };
        let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
        if let Some(min) = checks.min_items.filter(|min| length < *min) {
            outcome.errors.push(self.invalid(at, length, &format!("should have at least {min} items")));
        }
        if let Some(max) = checks.max_items.filter(|max| length > *max) {
            outcome.errors.push(FieldError::too_many(
                self.path(at),
                list.len(),
                usize::try_from(max).unwrap_or_default(),
            ));
        }
    }

    fn check_enum(&self, checks: Option<&Checks>, given: Input<'_>, at: &Path<'_>, outcome: &mut Outcome) {
        let Some(checks) = checks.filter(|checks| !checks.values.is_empty()) else { return };
        let is_one = |allowed: &Value| match given {
            Input::Root(object) => allowed.as_object() == Some(object),
            Input::Value(value) => is_same(value, allowed),
        };
        if !checks.values.iter().any(is_one) {
            let texts = checks.values.iter().map(|allowed| match allowed {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            let texts: Vec<String> = texts.collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let value = match given {
                Input::Root(object) => Value::Object(object.clone()),
                Input::Value(value) => value.clone(),
            };
            outcome.errors.push(FieldError::not_supported(self.path(at), value, &texts));
        }
    }

    fn check_object(
        &self,
        node: &Node,
        object: &Map<String, Value>,
        old: Option<Old<'_>>,
        at: &Path<'_>,
        outcome: &mut Outcome,
    ) {
        outcome.matches += 1;
        if let Some(checks) = &node.checks {
            self.check_size(checks, object, at, outcome);
        }
        if matches!(node.values, Values::Forbidden) {
            for (key, _) in object.iter().filter(|(key, _)| node.field(key).is_none()) {
                if outcome.errors.is_full() {
                    break;
                }
                let place = at.field(key);
                let what = format!("{place} in body is a forbidden property");
                outcome.errors.push(FieldError::invalid(self.path(at), key.as_str(), what));
            }
        }
        if let Some(values) = values_of(node) {
            for (key, value) in object.iter().filter(|(key, _)| node.field(key).is_none()) {
                if outcome.errors.is_full() {
                    break;
                }
                let old = old.and_then(|old| old.key(key));
                outcome.merge(self.ratcheted(values, value, old, &at.field(key)));
            }
        }
        for (name, field) in &node.fields {
            if let Some(value) = object.get(&**name) {
                // Kubernetes converts kind and version of the old object, so they cannot be correlated.
                let is_visible = !at.is_object() || !matches!(&**name, "kind" | "apiVersion");
                let old = old.filter(|_| is_visible).and_then(|old| old.key(name));
                outcome.merge(self.ratcheted(field, value, old, &at.field(name)));
            }
        }
        for name in node.checks.iter().flat_map(|checks| &checks.required) {
            if !object.contains_key(&**name) && !self.is_implied(name, at) {
                outcome.errors.push(FieldError::required(self.path(&at.field(name)), ""));
            }
        }
    }

    /// Whether the object has a field that is stored outside it.
    fn is_implied(&self, name: &str, at: &Path<'_>) -> bool {
        at.is_object() && self.prefix.is_empty() && matches!(name, "kind" | "apiVersion")
    }

    fn check_size(&self, checks: &Checks, object: &Map<String, Value>, at: &Path<'_>, outcome: &mut Outcome) {
        let implied = ["kind", "apiVersion"]
            .iter()
            .filter(|name| self.is_implied(name, at) && !object.contains_key(**name));
        let size = object.len() + implied.count();
        let length = i64::try_from(size).unwrap_or(i64::MAX);
        if let Some(min) = checks.min_properties.filter(|min| length < *min) {
            outcome.errors.push(self.invalid(at, length, &format!("should have at least {min} properties")));
        }
        if let Some(max) = checks.max_properties.filter(|max| length > *max) {
            outcome.errors.push(FieldError::too_many(
                self.path(at),
                size,
                usize::try_from(max).unwrap_or_default(),
            ));
        }
    }
}

/// The message of a constraint: `spec.size in body should be less than 5`.
fn in_body(at: &Path<'_>, what: &str) -> String {
    format!("{at} in body {what}")
}

/// The first schema that matches, or else the closest one, and the number of matches.
fn closest(nodes: &[Node], first_only: bool, check: impl Fn(&Node) -> Outcome) -> (Outcome, usize) {
    let (mut best, mut valid): (Option<Outcome>, usize) = (None, 0);
    for node in nodes {
        let outcome = check(node);
        if outcome.is_valid() {
            valid += 1;
            if valid == 1 {
                best = Some(outcome);
            }
            if first_only {
                break;
            }
        } else if valid == 0 && best.as_ref().is_none_or(|best| outcome.matches > best.matches) {
            best = Some(outcome);
        }
    }
    (best.unwrap_or_default(), valid)
}
