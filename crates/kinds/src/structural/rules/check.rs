//! Validates the rules of a CRD, with Kubernetes' messages.

use model::error::FieldError;

use super::{
    Rule,
    compile::{RuleEnvironment, has_rules, uses_old_self},
    declare::{SELF_TYPE, Typed, declare},
    form,
};
use crate::structural::node::{ListType, Node, Values};

/// The limit of an expression's estimated cost.
const EXPRESSION_LIMIT: u64 = 10_000_000;
/// The limit of the estimated cost of all expressions of a schema.
const SCHEMA_LIMIT: u64 = 100_000_000;

/// The errors of the rules of a schema at `path`. Nodes at or below a known error are skipped. Expressions are not
/// compiled if the schema as a whole is invalid.
pub fn check(root: &Node, path: &str, errors: &[FieldError], compiles: bool) -> Vec<FieldError> {
    if !has_rules(root) {
        return Vec::new();
    }
    let mut checker = Checker {
        compiles,
        known: errors.iter().map(|error| error.path.clone()).collect(),
        form: Vec::new(),
        errors: Vec::new(),
        total: 0,
        expensive: Vec::new(),
    };
    let place = CheckedNode {
        node: root,
        path: path.to_owned(),
        cardinality: Some(1),
        is_resource: true,
        uncorrelatable: None,
    };
    let typed = declare(root, true, SELF_TYPE);
    checker.place(&place, typed.as_ref());
    checker.check_total(path);
    checker.form.into_iter().chain(checker.errors).collect()
}

/// A schema node during the check.
struct CheckedNode<'n> {
    node: &'n Node,
    path: String,
    /// The most values of it in an object, if the schema limits them.
    cardinality: Option<u64>,
    is_resource: bool,
    /// The list above it whose items have no keys, so that old and new values cannot be correlated.
    uncorrelatable: Option<String>,
}

impl<'n> CheckedNode<'n> {
    fn below(&self, node: &'n Node, step: &str, uncorrelatable: Option<String>) -> CheckedNode<'n> {
        let cardinality = self.cardinality.zip(max_elements(self.node));
        CheckedNode {
            node,
            path: format!("{}.{step}", self.path),
            cardinality: cardinality.map(|(outer, inner)| outer.saturating_mul(inner)),
            is_resource: node.embedded,
            uncorrelatable: uncorrelatable.or_else(|| self.uncorrelatable.clone()),
        }
    }
}

/// The most direct children of a value, if the schema limits them.
fn max_elements(node: &Node) -> Option<u64> {
    use crate::structural::node::ValueType::{Array, Object};
    let limit = |of: Option<i64>| of.map(|limit| limit.max(0).unsigned_abs());
    match node.kind {
        Some(Array) => limit(node.checks.as_deref()?.max_items),
        Some(Object) if !matches!(node.values, Values::Closed) => {
            limit(node.checks.as_deref()?.max_properties)
        }
        _ => Some(1),
    }
}

struct Checker {
    /// Whether expressions are compiled.
    compiles: bool,
    /// The paths with errors of the schema or of the form of its rules.
    known: Vec<String>,
    /// The errors of the form of rules.
    form: Vec<FieldError>,
    /// The errors of expressions.
    errors: Vec<FieldError>,
    total: u64,
    /// The most expensive expressions, most expensive first.
    expensive: Vec<(String, u64)>,
}

impl Checker {
    fn place(&mut self, place: &CheckedNode<'_>, typed: Option<&Typed>) {
        if !has_rules(place.node) {
            return;
        }
        let node = place.node;
        let item = typed.and_then(|typed| typed.item.as_deref());
        if let Values::Of(values) = &node.values {
            self.child(&place.below(values, "additionalProperties", None), item);
        }
        for (name, field) in &node.fields {
            let typed = typed.and_then(|typed| typed.fields.get(name));
            self.child(&place.below(field, &format!("properties[{name}]"), None), typed);
        }
        if let Some(items) = node.items.as_deref() {
            let is_correlatable = matches!(node.list_type, ListType::Map(_));
            let above = (!is_correlatable).then(|| place.path.clone());
            self.child(&place.below(items, "items", above), item);
        }
        self.rules(place, typed);
    }

    fn child(&mut self, place: &CheckedNode<'_>, typed: Option<&Typed>) {
        match typed {
            Some(_) => self.place(place, typed),
            None => self.place(place, declare(place.node, place.is_resource, SELF_TYPE).as_ref()),
        }
    }

    fn rules(&mut self, place: &CheckedNode<'_>, typed: Option<&Typed>) {
        let rules = place.node.checks.as_deref().map_or(&[][..], |checks| &checks.rules);
        if rules.is_empty() {
            return;
        }
        let path = format!("{}.x-kubernetes-validations", place.path);
        for (index, rule) in rules.iter().enumerate() {
            let errors = form::check(rule, &format!("{path}[{index}]"), place.node);
            self.known.extend(errors.iter().map(|error| error.path.clone()));
            self.form.extend(errors);
        }
        if !self.compiles || self.known.iter().any(|known| is_below(known, &place.path)) {
            return;
        }
        let Some(typed) = typed else {
            self.errors.push(FieldError::internal(
                path,
                "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
                 convert structural schema to CEL declarations",
            ));
            return;
        };
        let environment = RuleEnvironment::new(typed);
        for (index, rule) in rules.iter().enumerate() {
            self.rule(place, rule, &format!("{path}[{index}]"), typed, &environment);
        }
    }

    fn rule(
        &mut self,
        place: &CheckedNode<'_>,
        rule: &Rule,
        path: &str,
        typed: &Typed,
        environment: &RuleEnvironment,
    ) {
        let checked = environment.rule(rule);
        let times = place.cardinality.unwrap_or_else(|| typed.cardinality());
        let cost = checked.as_ref().map_or(0, |checked| checked.max_cost.saturating_mul(times));
        let rule_path = format!("{path}.rule");
        self.cost("estimated rule cost", &rule_path, cost);
        let uses_old_self = match &checked {
            Ok(checked) => {
                self.message(rule, &format!("{path}.messageExpression"), environment);
                uses_old_self(&checked.program)
            }
            Err(problem) => {
                self.errors.push(FieldError::invalid_shown(&*rule_path, &rule.as_value(), problem));
                false
            }
        };
        match (&place.uncorrelatable, rule.optional_old_self) {
            (Some(above), _) if uses_old_self => {
                let problem = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {above}"
                );
                self.errors.push(FieldError::invalid(rule_path, &*rule.rule, problem));
            }
            (_, Some(optional)) if !uses_old_self => {
                let problem = "may not be set if oldSelf is not used in rule";
                self.errors.push(FieldError::invalid(format!("{path}.optionalOldSelf"), optional, problem));
            }
            _ => {}
        }
    }

    fn message(&mut self, rule: &Rule, path: &str, environment: &RuleEnvironment) {
        match environment.message(rule) {
            Ok(None) => {}
            Ok(Some(checked)) => self.cost("estimated messageExpression cost", path, checked.max_cost),
            Err(problem) => self.errors.push(FieldError::invalid_shown(path, &rule.as_value(), &problem)),
        }
    }

    /// Adds the estimated cost of an expression, and an error if it exceeds the limit.
    fn cost(&mut self, name: &str, path: &str, cost: u64) {
        const SHOWN: usize = 4;
        if cost > EXPRESSION_LIMIT {
            self.errors.push(FieldError::forbidden(path, too_expensive(name, cost, EXPRESSION_LIMIT)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_LIMIT / 100 {
            self.expensive.push((path.to_owned(), cost));
            self.expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.expensive.truncate(SHOWN);
        }
    }

    fn check_total(&mut self, path: &str) {
        if self.total <= SCHEMA_LIMIT {
            return;
        }
        for (path, _) in std::mem::take(&mut self.expensive) {
            let detail =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.push(FieldError::forbidden(path, detail));
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        self.errors.push(FieldError::forbidden(path, too_expensive(name, self.total, SCHEMA_LIMIT)));
    }
}

/// Whether a field is at a path or below it.
fn is_below(field: &str, place: &str) -> bool {
    field.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with few digits")]
fn too_expensive(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        _ if factor > 100.0 => "more than 100x".to_owned(),
        _ if factor < 1.5 => format!("{factor:.6}x"),
        _ => format!("{factor:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
