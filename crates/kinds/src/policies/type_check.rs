//! Type checks of a ValidatingAdmissionPolicy's expressions against the resources that it matches: the warnings of its
//! status.

use std::collections::BTreeMap;

use cel::Type;
use model::Object;
use model::object::{maps, text, texts, value};
use serde_json::{Value, json};

use super::compile::Composer;
use super::environment::Objects;
use super::validating::{param_kind, variables};

/// The most types of one rule that are checked.
const TYPES_MAX: usize = 10;

/// A kind, and the type of its objects.
#[derive(Clone, Debug)]
pub struct TypedKind {
    /// The kind.
    pub kind: String,
    /// The type of its objects.
    pub object: Type,
}

/// Looks up the kinds that a server serves.
pub trait Kinds {
    /// The kind of a resource by group, version and plural.
    fn of_resource(&self, group: &str, version: &str, plural: &str) -> Option<TypedKind>;

    /// The type of the objects of a kind.
    fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<Type>;
}

/// A warning about an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionWarning {
    /// The path of the expression.
    pub field_ref: String,
    /// The type errors for each kind.
    pub warning: String,
}

/// The type errors of the expressions of a ValidatingAdmissionPolicy. Only resources that rules name without wildcards
/// are checked.
pub fn type_check(policy: &Object, kinds: &dyn Kinds) -> Vec<ExpressionWarning> {
    let nothing = Object::new();
    let spec = value(policy, &["spec"]).and_then(Value::as_object).unwrap_or(&nothing);
    let params = param_kind(spec).and_then(|(api_version, kind)| {
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        kinds.of_kind(group, version, &kind)
    });
    let composers: Vec<(String, Composer)> = kinds_of_rules(spec, kinds)
        .into_iter()
        .map(|((group, version, kind), object)| {
            let mut composer = Composer::typed(Objects { object, params: params.clone() });
            for (name, source) in variables(spec) {
                // A variable that does not compile is dynamic in later expressions.
                drop(composer.variable(name, source));
            }
            (format!("{group}/{version}, Kind={kind}"), composer)
        })
        .collect();
    let mut warnings = Vec::new();
    for (index, validation) in maps(spec, &["validations"]) {
        for field in ["expression", "messageExpression"] {
            let source = text(validation, &[field]);
            if source.is_empty() && field == "messageExpression" {
                continue;
            }
            let wrong = composers.iter().filter_map(|(kind, composer)| {
                composer.issues(source).map(|issues| format!("{kind}: {issues}\n"))
            });
            let wrong: Vec<String> = wrong.collect();
            if !wrong.is_empty() {
                let field_ref = format!("spec.validations[{index}].{field}");
                warnings.push(ExpressionWarning { field_ref, warning: wrong.join("\n") });
            }
        }
    }
    warnings
}

/// The status of a policy after a type check.
pub fn checked_status(policy: &Object, warnings: &[ExpressionWarning]) -> Value {
    let generation = value(policy, &["metadata", "generation"]).cloned().unwrap_or_default();
    let shown =
        |warning: &ExpressionWarning| json!({"fieldRef": warning.field_ref, "warning": warning.warning});
    let warnings: Vec<Value> = warnings.iter().map(shown).collect();
    let checking = if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) };
    json!({"observedGeneration": generation, "typeChecking": checking})
}

/// Group, version and kind: the sort key of types.
type Named = (String, String, String);

/// The kinds that rules name without wildcards, with the types of their objects.
fn kinds_of_rules(spec: &Object, kinds: &dyn Kinds) -> BTreeMap<Named, Type> {
    let mut found = BTreeMap::new();
    for (_, rule) in maps(spec, &["matchConstraints", "resourceRules"]) {
        let mut count = 0;
        for (group, version, plural) in named_resources(rule) {
            let Some(TypedKind { kind, object }) = kinds.of_resource(group, version, plural) else {
                continue;
            };
            found.insert((group.to_owned(), version.to_owned(), kind), object);
            count += 1;
            if count == TYPES_MAX {
                return found;
            }
        }
    }
    found
}

/// The resources that a rule names; empty if groups or versions have a wildcard.
fn named_resources(rule: &Object) -> Vec<(&str, &str, &str)> {
    let sorted = |field: &str| {
        let mut list = texts(rule, &[field]);
        list.sort_unstable();
        list
    };
    let (groups, versions, mut plurals) = (sorted("apiGroups"), sorted("apiVersions"), sorted("resources"));
    if groups.iter().chain(&versions).any(|name| name.contains('*')) {
        return Vec::new();
    }
    plurals.retain(|plural| !plural.contains(['*', '/']));
    let mut all = Vec::new();
    for group in groups {
        for version in &versions {
            all.extend(plurals.iter().map(|plural| (group, *version, *plural)));
        }
    }
    all
}
