//! Privilege escalation check: whether a user holds the rules that it grants.

use std::collections::{BTreeMap, BTreeSet};

use model::error::quote;

use super::rule::{PolicyRule, covers_path};

/// Granted rules that are not held, each with one verb, one resource and one name, or one verb and one path.
pub fn missing(held: &[PolicyRule], given: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut parts: Vec<PolicyRule> = given.iter().flat_map(parts).collect();
    parts.retain(|part| !held.iter().any(|rule| covers(rule, part)));
    parts
}

/// Splits a rule into rules of one verb, resource and name, or of one verb and path.
fn parts(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &str| vec![Box::from(text)];
    let names: Vec<Vec<Box<str>>> = match rule.resource_names.as_slice() {
        [] => vec![Vec::new()],
        names => names.iter().map(|name| one(name)).collect(),
    };
    let mut parts = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                parts.extend(names.iter().map(|name| PolicyRule {
                    api_groups: one(group),
                    resources: one(resource),
                    verbs: one(verb),
                    resource_names: name.clone(),
                    paths: Vec::new(),
                }));
            }
        }
    }
    for path in &rule.paths {
        parts.extend(rule.verbs.iter().map(|verb| PolicyRule {
            paths: one(path),
            verbs: one(verb),
            ..PolicyRule::default()
        }));
    }
    parts
}

fn covers(rule: &PolicyRule, part: &PolicyRule) -> bool {
    let has = |list: &[Box<str>], wanted: &[Box<str>]| wanted.iter().all(|entry| list.contains(entry));
    let all =
        |list: &[Box<str>], wanted: &[Box<str>]| list.iter().any(|own| &**own == "*") || has(list, wanted);
    let covers_resource = |wanted: &str| {
        let own = || rule.resources.iter().map(|own| &**own);
        let of_any = wanted.split_once('/').map(|(_, part)| format!("*/{part}"));
        own().any(|own| own == "*" || own == wanted)
            || of_any.is_some_and(|of_any| own().any(|own| own == of_any))
    };
    let is_named = match part.resource_names.as_slice() {
        [] => rule.resource_names.is_empty(),
        names => rule.resource_names.is_empty() || has(&rule.resource_names, names),
    };
    all(&rule.verbs, &part.verbs)
        && all(&rule.api_groups, &part.api_groups)
        && part.resources.iter().all(|wanted| covers_resource(wanted))
        && part.paths.iter().all(|path| rule.paths.iter().any(|own| covers_path(own, path)))
        && is_named
}

/// The missing rules in Kubernetes' words, one line per resource.
pub fn names_of_missing(missing: &[PolicyRule]) -> String {
    let mut lines = BTreeSet::new();
    let mut verbs: BTreeMap<String, Vec<Box<str>>> = BTreeMap::new();
    for rule in missing {
        if rule.paths.is_empty() {
            verbs.entry(described(rule)).or_default().extend(rule.verbs.iter().cloned());
        } else {
            lines.insert(format!("{{{}, Verbs:{}}}", described(rule), quoted(&rule.verbs)));
        }
    }
    lines.extend(verbs.iter().map(|(of, verbs)| format!("{{{of}, Verbs:{}}}", quoted(verbs))));
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

/// A rule without its verbs.
fn described(rule: &PolicyRule) -> String {
    let parts = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.paths),
        ("ResourceNames", &rule.resource_names),
    ];
    let given = parts.iter().filter(|(_, list)| !list.is_empty());
    given.map(|(name, list)| format!("{name}:{}", quoted(list))).collect::<Vec<_>>().join(", ")
}

/// A list in Go's format.
fn quoted(list: &[Box<str>]) -> String {
    let texts: Vec<String> = list.iter().map(|text| quote(text)).collect();
    format!("[{}]", texts.join(" "))
}
