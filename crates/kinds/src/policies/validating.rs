//! ValidatingAdmissionPolicy: compilation, evaluation, and the actions of its bindings.

use std::collections::BTreeMap;

use cel::Value as CelValue;
use model::Object;
use model::object::{items, maps, text, value};
use serde_json::{Value, json};

use super::binding::Binding;
use super::compile::{Composer, Options, Wanted};
use super::conditions::Conditions;
use super::evaluate::{Activation, BUDGET, Expression, Input, OutOfBudget, Variables};
use super::matching::Criteria;

/// The longest message of an expression, in bytes.
const MESSAGE_MAX: usize = 5 * 1024;
/// The longest value of an audit annotation, in bytes.
const ANNOTATION_MAX: usize = 10 * 1024;

/// A compiled ValidatingAdmissionPolicy.
pub struct ValidatingPolicy {
    /// Its name.
    pub name: String,
    /// `apiVersion` and kind of its parameters.
    pub param_kind: Option<(String, String)>,
    /// The requests that it validates.
    pub criteria: Criteria,
    /// Whether its failure policy is `Ignore`.
    pub ignores_failures: bool,
    pub(super) conditions: Conditions,
    pub(super) variables: Variables,
    validations: Vec<Validation>,
    annotations: Vec<(String, Expression)>,
}

struct Validation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: Option<String>,
}

/// The result of a policy for a request.
#[derive(Debug, Default, PartialEq)]
pub struct Verdict {
    /// The failed validations.
    pub denials: Vec<Denial>,
    /// Audit annotations by key.
    pub annotations: Vec<(String, String)>,
    /// Errors of audit annotations that refuse the request whatever the actions of the binding.
    pub failures: Vec<String>,
}

/// A validation that is false or fails to evaluate.
#[derive(Debug, PartialEq)]
pub struct Denial {
    /// The index of the validation.
    pub index: usize,
    /// The message.
    pub message: String,
    /// The reason of the response, if the validation has one.
    pub reason: Option<String>,
}

/// Audit annotations by key, and the errors of those that failed.
type Noted = (Vec<(String, String)>, Vec<String>);

/// The kind of the parameters of a policy.
pub(super) fn param_kind(spec: &Object) -> Option<(String, String)> {
    let kind = value(spec, &["paramKind"])?.as_object()?;
    Some((text(kind, &["apiVersion"]).to_owned(), text(kind, &["kind"]).to_owned()))
}

/// The names and expressions of the variables of a policy.
pub(super) fn variables(spec: &Object) -> impl Iterator<Item = (&str, &str)> {
    maps(spec, &["variables"])
        .map(|(_, variable)| (text(variable, &["name"]), text(variable, &["expression"])))
}

impl ValidatingPolicy {
    /// Compiles a valid policy. An expression that does not compile fails at evaluation.
    pub fn compile(object: &Object) -> Self {
        let nothing = Object::new();
        let spec = value(object, &["spec"]).and_then(Value::as_object).unwrap_or(&nothing);
        let param_kind = param_kind(spec);
        let options = Options { has_authorizer: true };
        let has_variables = !items(spec, &["variables"]).is_empty();
        let mut composer = Composer::new(param_kind.is_some(), has_variables);
        let variables = Variables::compile(variables(spec), &mut composer);
        let compile = |source: &str, options: Options, wanted: Wanted| {
            Expression::new(source, composer.compile(source, options, wanted))
        };
        let validations = maps(spec, &["validations"]).map(|(_, validation)| {
            let message_expression = text(validation, &["messageExpression"]);
            let for_message = Options { has_authorizer: false };
            Validation {
                expression: compile(text(validation, &["expression"]), options, Wanted::Bool),
                message: text(validation, &["message"]).trim().to_owned(),
                message_expression: (!message_expression.is_empty())
                    .then(|| compile(message_expression, for_message, Wanted::Text)),
                reason: value(validation, &["reason"]).and_then(Value::as_str).map(str::to_owned),
            }
        });
        let validations = validations.collect();
        let annotations = maps(spec, &["auditAnnotations"]).map(|(_, annotation)| {
            let source = text(annotation, &["valueExpression"]);
            (text(annotation, &["key"]).to_owned(), compile(source, options, Wanted::TextOrNull))
        });
        let annotations = annotations.collect();
        let criteria = value(spec, &["matchConstraints"]).and_then(Value::as_object);
        Self {
            name: text(object, &["metadata", "name"]).to_owned(),
            criteria: criteria.map(Criteria::read).unwrap_or_default(),
            ignores_failures: text(spec, &["failurePolicy"]) == "Ignore",
            conditions: Conditions::compile(spec, &composer),
            param_kind,
            variables,
            validations,
            annotations,
        }
    }

    /// Evaluates the policy for a request.
    pub fn judge(&self, input: &Input<'_>) -> Verdict {
        match self.conditions.hold(input, &self.variables, self.ignores_failures) {
            Ok(true) => {}
            Ok(false) => return Verdict::default(),
            Err(message) => return self.failed(message),
        }
        match self.denials(input) {
            Ok(denials) => match self.annotations(input) {
                Ok((annotations, failures)) => Verdict { denials, annotations, failures },
                Err(out) => self.failed(out.to_string()),
            },
            Err(out) => self.failed(out.to_string()),
        }
    }

    /// The verdict of an evaluation that failed as a whole.
    fn failed(&self, message: String) -> Verdict {
        let denial = Denial { index: 0, message, reason: None };
        Verdict {
            denials: if self.ignores_failures { Vec::new() } else { vec![denial] },
            ..Verdict::default()
        }
    }

    fn denials(&self, input: &Input<'_>) -> Result<Vec<Denial>, OutOfBudget> {
        let activation = Activation::new(input, &self.variables, true);
        let mut budget = BUDGET;
        let mut values = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            values.push(activation.run(&validation.expression, &mut budget)?);
        }
        if values.iter().all(|value| matches!(value, Ok(CelValue::Bool(true)))) && !self.has_messages() {
            return Ok(Vec::new());
        }
        let messages = self.messages(input, budget);
        let denial = |(index, value): (usize, Result<CelValue<'_>, String>)| {
            let error = match (value, &messages) {
                (Err(error), _) => error,
                (Ok(_), Err(out)) => format!("failed messageExpression: {out}"),
                (Ok(CelValue::Bool(true)), _) => return None,
                (Ok(_), Ok(messages)) => return Some(self.denial(index, messages[index].as_deref())),
            };
            (!self.ignores_failures).then_some(Denial { index, message: error, reason: None })
        };
        Ok(values.into_iter().enumerate().filter_map(denial).collect())
    }

    fn has_messages(&self) -> bool {
        self.validations.iter().any(|validation| validation.message_expression.is_some())
    }

    /// Evaluates the message expressions, also of validations that hold: all count against the budget.
    fn messages(&self, input: &Input<'_>, mut budget: u64) -> Result<Vec<Option<String>>, OutOfBudget> {
        let activation = Activation::new(input, &self.variables, false);
        let mut messages = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            // A message expression that fails falls back to the static message.
            messages.push(match &validation.message_expression {
                Some(expression) => activation.run(expression, &mut budget)?.ok().and_then(string_value),
                None => None,
            });
        }
        Ok(messages)
    }

    fn denial(&self, index: usize, message: Option<&str>) -> Denial {
        let validation = &self.validations[index];
        let is_useful = |text: &&str| !text.is_empty() && text.len() <= MESSAGE_MAX && !text.contains('\n');
        let message = match message.filter(is_useful) {
            Some(message) => message.to_owned(),
            None if !validation.message.is_empty() => validation.message.clone(),
            None => format!("failed expression: {}", validation.expression.source.trim()),
        };
        Denial { index, message, reason: validation.reason.clone() }
    }

    /// The audit annotations, and the errors of those that failed.
    fn annotations(&self, input: &Input<'_>) -> Result<Noted, OutOfBudget> {
        let activation = Activation::new(input, &self.variables, false);
        let mut budget = BUDGET;
        let (mut noted, mut failures) = (Vec::new(), Vec::new());
        for (key, expression) in &self.annotations {
            match activation.run(expression, &mut budget)? {
                Ok(CelValue::String(text)) => {
                    let text = text.trim();
                    if !text.is_empty() {
                        noted.push((key.clone(), cut(text, ANNOTATION_MAX).to_owned()));
                    }
                }
                Ok(_) => {}
                Err(error) if !self.ignores_failures => failures.push(error),
                Err(_) => {}
            }
        }
        Ok((noted, failures))
    }
}

/// The text of a string value.
fn string_value(value: CelValue<'_>) -> Option<String> {
    value.as_str().ok().map(|text| text.trim().to_owned())
}

/// The first `max` bytes of a text, or fewer.
fn cut(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// A request that policies refuse.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    /// The message.
    pub message: String,
    /// The reason of the response.
    pub reason: &'static str,
    /// The HTTP status code of the response.
    pub code: u16,
}

/// A reason that a validation may have, with its HTTP status code.
fn known_reason(reason: Option<&str>) -> (&'static str, u16) {
    match reason {
        Some("Forbidden") => ("Forbidden", 403),
        Some("Unauthorized") => ("Unauthorized", 401),
        Some("RequestEntityTooLarge") => ("RequestEntityTooLarge", 413),
        _ => ("Invalid", 422),
    }
}

/// The joint result of all policies and bindings for a request.
#[derive(Debug, Default)]
pub struct Judgement {
    /// The first refusal.
    pub refusal: Option<Refusal>,
    /// The warnings for the client.
    pub warnings: Vec<String>,
    /// The audit annotations.
    pub annotations: BTreeMap<String, String>,
    noted: BTreeMap<String, Vec<String>>,
}

impl Judgement {
    /// Adds a configuration error of a policy or of one of its bindings.
    pub fn unusable(&mut self, policy: &ValidatingPolicy, binding: Option<&Binding>, problem: &str) {
        if policy.ignores_failures {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.refuse(policy, binding, &format!("failed to configure {what}: {problem}"), None);
    }

    /// Adds the verdict of a policy for the parameters of a binding.
    pub fn add(&mut self, policy: &ValidatingPolicy, binding: &Binding, verdict: Verdict) {
        for denial in &verdict.denials {
            for action in &binding.actions {
                match action.as_str() {
                    "Deny" => {
                        self.refuse(policy, Some(binding), &denial.message, denial.reason.as_deref());
                    }
                    "Warn" => self.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, denial.message
                    )),
                    _ => self.note_failure(policy, binding, denial),
                }
            }
        }
        for (key, value) in verdict.annotations {
            let values = self.noted.entry(format!("{}/{key}", policy.name)).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
        for failure in &verdict.failures {
            self.refuse(policy, Some(binding), failure, None);
        }
    }

    /// Completes the audit annotations.
    pub fn finish(mut self) -> Self {
        for (key, values) in std::mem::take(&mut self.noted) {
            self.annotations.insert(key, values.join(", "));
        }
        self
    }

    fn refuse(
        &mut self,
        policy: &ValidatingPolicy,
        binding: Option<&Binding>,
        message: &str,
        reason: Option<&str>,
    ) {
        self.refusal.get_or_insert_with(|| {
            let with = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
            let message =
                format!("ValidatingAdmissionPolicy '{}'{with} denied request: {message}", policy.name);
            let (reason, code) = known_reason(reason);
            Refusal { message, reason, code }
        });
    }

    fn note_failure(&mut self, policy: &ValidatingPolicy, binding: &Binding, denial: &Denial) {
        let [message, name, bound] = [&denial.message, &policy.name, &binding.name].map(|text| json!(text));
        let (index, actions) = (denial.index, json!(binding.actions));
        // Keys in Kubernetes' order: the annotation is compared as text.
        let value = format!(
            r#"[{{"message":{message},"policy":{name},"binding":{bound},"expressionIndex":{index},"validationActions":{actions}}}]"#
        );
        let key = "validation.policy.admission.k8s.io/validation_failure";
        self.annotations.entry(key.to_owned()).or_insert(value);
    }
}
