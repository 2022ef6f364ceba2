//! Evaluation and display of label selectors.

use std::fmt;

use model::Object;
use model::error::{FieldError, Path};
use model::names::{label_value, qualified_name};
use model::object::{entries, items, text};
use serde_json::Value;

/// A parsed label selector.
pub struct Selection<'a>(Option<Vec<Term<'a>>>);

/// One requirement.
struct Term<'a> {
    key: &'a str,
    operator: Operator,
    values: Vec<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equals,
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl<'a> Selection<'a> {
    /// Parses a selector; a missing one selects nothing. `None` if it is invalid.
    pub fn read(selector: Option<&'a Value>) -> Option<Self> {
        let Some(selector) = selector.and_then(Value::as_object) else { return Some(Self(None)) };
        let mut terms: Vec<Term<'a>> = entries(selector, &["matchLabels"])
            .map(|(key, value)| Term::equals(key, value.as_str().unwrap_or_default()))
            .collect();
        for expression in items(selector, &["matchExpressions"]).iter().filter_map(Value::as_object) {
            terms.push(Term::of_expression(expression)?);
        }
        terms.iter().all(Term::is_valid).then_some(Self(Some(terms)))
    }

    /// A selector by equality of labels.
    pub fn of_labels(labels: &'a Object) -> Self {
        let terms = labels.iter().map(|(key, value)| Term::equals(key, value.as_str().unwrap_or_default()));
        Self(Some(terms.collect()))
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether it selects an object with these labels.
    pub fn matches(&self, labels: Option<&Value>) -> bool {
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        self.0.as_ref().is_some_and(|terms| terms.iter().all(|term| term.holds(label(term.key))))
    }

    /// The selector as most tables show it.
    pub fn shown(selector: Option<&Value>) -> String {
        match Selection::read(selector).map(|selection| selection.to_string()) {
            None => "<error>".to_owned(),
            Some(text) if text.is_empty() => "<none>".to_owned(),
            Some(text) => text,
        }
    }
}

impl<'a> Term<'a> {
    fn equals(key: &'a str, value: &'a str) -> Self {
        Self { key, operator: Operator::Equals, values: vec![value] }
    }

    fn of_expression(expression: &'a Object) -> Option<Self> {
        let operator = match text(expression, &["operator"]) {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return None,
        };
        let mut values: Vec<&str> = items(expression, &["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        Some(Self { key: text(expression, &["key"]), operator, values })
    }

    fn is_valid(&self) -> bool {
        let takes_values = !matches!(self.operator, Operator::Exists | Operator::DoesNotExist);
        takes_values != self.values.is_empty()
            && qualified_name(self.key).is_empty()
            && self.values.iter().all(|value| label_value(value).is_empty())
    }

    fn holds(&self, label: Option<&str>) -> bool {
        let is_one = label.is_some_and(|label| self.values.contains(&label));
        match self.operator {
            Operator::Equals | Operator::In => is_one,
            Operator::NotIn => !is_one,
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
        }
    }
}

impl fmt::Display for Selection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut terms: Vec<&Term<'_>> = self.0.iter().flatten().collect();
        terms.sort_by_key(|term| term.key);
        for (index, term) in terms.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (self.key, self.values.join(","));
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

/// A map of labels as tables show it.
pub fn shown_labels(labels: Option<&Value>) -> String {
    match labels.and_then(Value::as_object).filter(|labels| !labels.is_empty()) {
        Some(labels) => Selection::of_labels(labels).to_string(),
        None => "<none>".to_owned(),
    }
}

/// An error about a selector. Go formats its fields in another order than by name.
pub fn bad_selector(path: &Path<'_>, selector: Option<&Value>, detail: &str) -> FieldError {
    super::workload::invalid_shown(path, &go_selector(selector), detail)
}

/// A selector as Go formats it.
pub fn go_selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector.and_then(Value::as_object) else { return "null".to_owned() };
    let fields = ["matchLabels", "matchExpressions"].into_iter();
    let fields = fields.filter_map(|field| Some(format!("{field:?}:{}", selector.get(field)?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}
