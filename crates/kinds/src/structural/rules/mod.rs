//! `x-kubernetes-validations`: the CEL rules of a schema.
//!
//! Rules are compiled once per schema. [`check`] validates them when a CRD is written, [`Rules`] evaluates them on
//! objects.

mod check;
mod compile;
mod declare;
mod escape;
mod evaluate;
mod form;
#[cfg(test)]
mod tests;

use model::object::text_in;
use serde_json::{Map, Value};

pub use check::check;
pub(crate) use compile::ENVIRONMENT;
pub use compile::Rules;
pub(crate) use declare::declared_type;
pub(crate) use escape::escape;
pub use evaluate::Verdict;

/// A rule of a schema; unset properties are empty.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// The expression that must be true.
    pub rule: Box<str>,
    /// The static message.
    pub message: Box<str>,
    /// The message expression.
    pub message_expression: Box<str>,
    /// The reason of the error.
    pub reason: Option<Box<str>>,
    /// The field of the error.
    pub field_path: Box<str>,
    /// Whether `oldSelf` is optional.
    pub optional_old_self: Option<bool>,
}

impl Rule {
    /// Parses the rules of one schema node.
    pub fn read(schema: &Map<String, Value>) -> Box<[Rule]> {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
        let read = |rule: &Value| {
            let text = |key: &str| text_in(rule, key).into();
            Rule {
                rule: text("rule"),
                message: text("message"),
                message_expression: text("messageExpression"),
                reason: rule.get("reason").and_then(Value::as_str).map(Into::into),
                field_path: text("fieldPath"),
                optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
            }
        };
        rules.map(read).collect()
    }

    /// The message of the rule, or else its expression.
    fn shown(&self) -> &str {
        let text = if self.message.is_empty() { &self.rule } else { &self.message };
        text.trim()
    }

    /// The rule as the value of an error, in Kubernetes' format.
    fn as_value(&self) -> String {
        let text = |text: &str| {
            let json = Value::from(text).to_string();
            json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
        };
        let reason = self.reason.as_deref().map_or_else(|| "null".to_owned(), text);
        let optional = self.optional_old_self.map_or_else(|| "null".to_owned(), |value| value.to_string());
        format!(
            "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{reason},\"FieldPath\":{},\
             \"OptionalOldSelf\":{optional}}}",
            text(&self.rule),
            text(&self.message),
            text(&self.message_expression),
            text(&self.field_path),
        )
    }
}
