//! Match conditions of policies and webhooks.

use cel::Value;
use model::Object;
use model::object::{maps, text};

use super::compile::{Composer, Options, Wanted};
use super::evaluate::{Activation, CONDITIONS_BUDGET, Expression, Input, Variables};

/// Compiled match conditions: all must hold for a policy to apply or a webhook to be called.
#[derive(Default)]
pub struct Conditions(Vec<Expression>);

impl Conditions {
    /// Compiles the valid match conditions of a webhook.
    pub fn of_webhook(webhook: &Object) -> Self {
        Self::compile(webhook, &Composer::new(false, false))
    }

    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a webhook is called; an error if a condition fails to evaluate and its failure policy is `Fail`.
    pub fn hold_for_webhook(&self, input: &Input<'_>, ignores_failures: bool) -> Result<bool, String> {
        self.hold(input, &Variables::default(), ignores_failures)
    }

    pub(super) fn compile(spec: &Object, composer: &Composer) -> Self {
        let options = Options { has_authorizer: true };
        let all = maps(spec, &["matchConditions"]).map(|(_, condition)| {
            let source = text(condition, &["expression"]);
            Expression::new(source, composer.compile(source, options, Wanted::Bool))
        });
        Self(all.collect())
    }

    /// Whether all conditions hold. One that is false takes precedence over errors.
    pub(super) fn hold(
        &self,
        input: &Input<'_>,
        variables: &Variables,
        ignores_failures: bool,
    ) -> Result<bool, String> {
        if self.0.is_empty() {
            return Ok(true);
        }
        // `namespaceObject` is not available to match conditions.
        let input = Input { namespace: None, ..*input };
        let activation = Activation::new(&input, variables, true);
        let mut budget = CONDITIONS_BUDGET;
        let mut values = Vec::new();
        for condition in &self.0 {
            match activation.run(condition, &mut budget) {
                Ok(value) => values.push(value),
                Err(_) if ignores_failures => return Ok(false),
                Err(out) => return Err(out.to_string()),
            }
        }
        if values.iter().any(|value| matches!(value, Ok(Value::Bool(false)))) {
            return Ok(false);
        }
        let errors: Vec<String> = values.into_iter().filter_map(Result::err).collect();
        match errors.is_empty() {
            true => Ok(true),
            false if ignores_failures => Ok(false),
            false => Err(joined_errors(errors)),
        }
    }
}

/// Joins errors into one message, without duplicates.
fn joined_errors(mut errors: Vec<String>) -> String {
    let mut seen = std::collections::BTreeSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    match errors.as_slice() {
        [one] => one.clone(),
        _ => format!("[{}]", errors.join(", ")),
    }
}
