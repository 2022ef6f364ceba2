//! Role and ClusterRole. Only a ClusterRole has nonresource URLs and aggregation.

use model::Object;
use model::error::{FieldError, Path};
use model::names::NameRule;
use model::object::{items, value};
use serde_json::Value;

use super::GROUP;
use crate::rules::KindRules;
use crate::rules::label_selector::bad_label_selector;

pub(super) const ROLE: KindRules = KindRules {
    group: GROUP,
    kind: "Role",
    name: NameRule::PathSegment,
    validate_create: |object| bad_rules(object, true),
    validate_update: |new, _| bad_rules(new, true),
    create_on_update: true,
    ..KindRules::PLAIN
};

pub(super) const CLUSTER_ROLE: KindRules = KindRules {
    kind: "ClusterRole",
    validate_create: validate_cluster_role,
    validate_update: |new, _| validate_cluster_role(new),
    ..ROLE
};

fn validate_cluster_role(object: &Object) -> Vec<FieldError> {
    let mut errors = bad_rules(object, false);
    if !value(object, &["aggregationRule"]).is_some_and(Value::is_object) {
        return errors;
    }
    let selectors = items(object, &["aggregationRule", "clusterRoleSelectors"]);
    let path = &Path::root("aggregationRule.clusterRoleSelectors");
    if selectors.is_empty() {
        let rule = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(path, rule));
    }
    for (index, selector) in selectors.iter().enumerate() {
        let path = path.at(index);
        let wrong = bad_label_selector(&path, Some(selector));
        let is_wrong = !wrong.is_empty();
        errors.extend(wrong);
        if is_wrong {
            errors.push(FieldError::invalid(path, Value::Null, "invalid label selector."));
        }
    }
    errors
}

fn bad_rules(object: &Object, namespaced: bool) -> Vec<FieldError> {
    let rules = items(object, &["rules"]).iter().filter_map(Value::as_object).enumerate();
    rules.flat_map(|(index, rule)| bad_rule(&Path::OBJECT.item("rules", index), rule, namespaced)).collect()
}

fn bad_rule(path: &Path<'_>, rule: &Object, namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let lacks = |field: &str| items(rule, &[field]).is_empty();
    let required =
        |field: &str, detail: &str| lacks(field).then(|| FieldError::required(path.field(field), detail));
    errors.extend(required("verbs", "verbs must contain at least one value"));
    if lacks("nonResourceURLs") {
        errors.extend(required("apiGroups", "resource rules must supply at least one api group"));
        errors.extend(required("resources", "resource rules must supply at least one resource"));
        return errors;
    }
    let mut refuse = |detail: &str| {
        let urls = value(rule, &["nonResourceURLs"]).cloned().unwrap_or_default();
        errors.push(FieldError::invalid(path.field("nonResourceURLs"), urls, detail));
    };
    if namespaced {
        refuse("namespaced rules cannot apply to non-resource URLs");
    }
    if !["apiGroups", "resources", "resourceNames"].into_iter().all(lacks) {
        refuse("rules cannot apply to both regular resources and non-resource URLs");
    }
    errors
}
