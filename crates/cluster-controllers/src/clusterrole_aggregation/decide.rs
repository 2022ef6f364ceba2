//! The rules of aggregated ClusterRoles.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use serde::{Deserialize, Serialize};

use crate::views::or_default;

/// The fields of a ClusterRole that this controller reads.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Role {
    pub metadata: Metadata,
    aggregation_rule: Option<Aggregation>,
    #[serde(default, deserialize_with = "or_default")]
    pub rules: Vec<Rule>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub name: String,
    #[serde(default)]
    pub resource_version: String,
    #[serde(default, deserialize_with = "or_default")]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Aggregation {
    #[serde(default, deserialize_with = "or_default")]
    cluster_role_selectors: Vec<LabelSelector>,
}

/// A rule; a missing list is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Rule {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    non_resource_urls: Vec<String>,
}

/// The ClusterRoles with changed rules. Aggregated roles may select each other, so that this repeats until nothing
/// changes.
pub(super) fn decide(mut roles: Vec<Role>) -> Vec<Role> {
    roles.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let mut changed = BTreeSet::new();
    for _ in 0..=roles.len() {
        let is_stale = |(at, role): (usize, &Role)| {
            let rules = collected(role, &roles)?;
            (rules != role.rules).then_some((at, rules))
        };
        let stale: Vec<(usize, Vec<Rule>)> = roles.iter().enumerate().filter_map(is_stale).collect();
        if stale.is_empty() {
            break;
        }
        for (at, rules) in stale {
            changed.insert(at);
            roles[at].rules = rules;
        }
    }
    let whole = roles.into_iter().enumerate().filter(|(at, _)| changed.contains(at));
    whole.map(|(_, role)| role).collect()
}

/// The rules of all roles that `role` selects; `None` if it aggregates none, or its selector is invalid.
fn collected(role: &Role, all: &[Role]) -> Option<Vec<Rule>> {
    let mut rules: Vec<Rule> = Vec::new();
    for selector in &role.aggregation_rule.as_ref()?.cluster_role_selectors {
        let selector = Selector::try_from(selector.clone()).ok()?;
        let others = all.iter().filter(|other| other.metadata.name != role.metadata.name);
        let selected = others.filter(|other| selector.matches(&other.metadata.labels));
        for rule in selected.flat_map(|other| &other.rules) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    Some(rules)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn role(name: &str, label: &str, selects: Option<&str>, verbs: &[&str]) -> Role {
        let selector =
            selects.map(|label| json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}));
        let rules: Vec<Value> =
            verbs.iter().map(|verb| json!({"verbs": [verb], "resources": ["x"]})).collect();
        let labels = if label.is_empty() { json!({}) } else { json!({label: "true"}) };
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": labels}, "aggregationRule": selector, "rules": rules,
        }))
        .unwrap()
    }

    /// Names and verbs of the changed roles.
    fn changed(roles: Vec<Role>) -> Vec<(String, Vec<String>)> {
        let verbs = |rules: Vec<Rule>| rules.into_iter().flat_map(|rule| rule.verbs).collect();
        decide(roles).into_iter().map(|role| (role.metadata.name, verbs(role.rules))).collect()
    }

    fn one(name: &str, verbs: &[&str]) -> (String, Vec<String>) {
        (name.to_owned(), verbs.iter().map(|verb| (*verb).to_owned()).collect())
    }

    #[test]
    fn an_aggregated_role_has_the_rules_of_selected_roles_sorted_and_once() {
        let roles = vec![
            role("z", "to-view", None, &["get"]),
            role("view", "", Some("to-view"), &["old"]),
            role("a", "to-view", None, &["list", "get"]),
            role("other", "", None, &["delete"]),
        ];
        assert_eq!(changed(roles), [one("view", &["list", "get"])]);
    }

    #[test]
    fn nested_aggregation_is_complete_in_one_decision() {
        let roles = |admin: &[&str], edit: &[&str]| {
            vec![
                role("admin", "", Some("to-admin"), admin),
                role("edit", "to-admin", Some("to-edit"), edit),
                role("part", "to-edit", None, &["get"]),
                role("rest", "to-admin", None, &["delete"]),
            ]
        };
        assert_eq!(changed(roles(&[], &[])), [one("admin", &["get", "delete"]), one("edit", &["get"])]);
        assert!(decide(roles(&["get", "delete"], &["get"])).is_empty());
    }

    #[test]
    fn cyclic_aggregation_terminates() {
        let roles = vec![role("a", "l", Some("l"), &["get"]), role("b", "l", Some("l"), &["list"])];
        let changed = changed(roles);
        assert!(changed.iter().all(|(_, verbs)| verbs.len() <= 2), "{changed:?}");
    }
}
