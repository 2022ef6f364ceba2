//! FlowSchema. Two of them are immutable.

use model::Object;
use model::error::{FieldError, Path};
use model::names::{dns1123_label, dns1123_subdomain};
use model::object::{has, is_true, items, map_mut, maps, number, text, texts, value};
use serde_json::{Value, json};

use super::{GROUP, STATUS, bootstrap};
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::label_selector::invalid;

const PRECEDENCE: i64 = 1000;
const PRECEDENCE_MAX: i64 = 10_000;
const METHODS: [&str; 2] = ["ByNamespace", "ByUser"];
const SUBJECTS: [(&str, &str); 3] =
    [("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "FlowSchema",
    default: |object| {
        let spec = map_mut(object, "spec");
        if number(spec, &["matchingPrecedence"]) == 0 {
            spec.insert("matchingPrecedence".to_owned(), PRECEDENCE.into());
        }
    },
    validate_create: validate,
    validate_update: |new, _| validate(new),
    subresources: &[STATUS],
    columns: &[
        NAME,
        Column::new("PriorityLevel", "string", "The priority level of its requests."),
        Column::new(
            "MatchingPrecedence",
            "string",
            "The precedence among matching flow schemas; the lowest wins.",
        ),
        Column::new("DistinguisherMethod", "string", "The attribute that separates its flows."),
        AGE,
        Column::new("MissingPL", "string", "Whether its priority level is missing."),
    ],
    cells,
    ..KindRules::WITH_STATUS
};

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(spec) = value(object, &["spec"]).and_then(Value::as_object) else { return errors };
    let name = text(object, &["metadata", "name"]);
    errors.extend(bad_precedence(name, number(spec, &["matchingPrecedence"])));
    let method = text(spec, &["distinguisherMethod", "type"]);
    if has(spec, &["distinguisherMethod"]) && !METHODS.contains(&method) {
        let shown = json!({ "Type": method });
        errors.push(FieldError::not_supported("spec.distinguisherMethod.type", shown, &METHODS));
    }
    let path = &Path::root("spec.priorityLevelConfiguration.name");
    match text(spec, &["priorityLevelConfiguration", "name"]) {
        "" => errors.push(FieldError::required(path, "must reference a priority level")),
        level => errors.extend(invalid(path, level, dns1123_subdomain(level))),
    }
    for (index, rule) in maps(spec, &["rules"]) {
        errors.extend(bad_rule(&Path::SPEC.item("rules", index), rule));
    }
    if bootstrap::mandatory_flow_schema(name).is_some_and(|fixed| fixed != *spec) {
        let detail = format!("spec of '{name}' must equal the fixed value");
        errors.push(FieldError::invalid("spec", Value::Object(spec.clone()), detail));
    }
    errors
}

fn bad_precedence(name: &str, precedence: i64) -> Option<FieldError> {
    let detail = match precedence {
        ..=0 => "must be a positive value".to_owned(),
        1 if name != "exempt" => "only the schema named 'exempt' may have matchingPrecedence 1".to_owned(),
        1..=PRECEDENCE_MAX => return None,
        _ => format!("must not be greater than {PRECEDENCE_MAX}"),
    };
    Some(FieldError::invalid("spec.matchingPrecedence", precedence, detail))
}

fn bad_rule(path: &Path<'_>, rule: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if items(rule, &["subjects"]).is_empty() {
        let detail = "subjects must contain at least one value";
        errors.push(FieldError::required(path.field("subjects"), detail));
    }
    for (index, subject) in maps(rule, &["subjects"]) {
        errors.extend(bad_subject(&path.item("subjects", index), subject));
    }
    if items(rule, &["resourceRules"]).is_empty() && items(rule, &["nonResourceRules"]).is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, detail));
    }
    for (index, rule) in maps(rule, &["resourceRules"]) {
        errors.extend(bad_resource_rule(&path.item("resourceRules", index), rule));
    }
    for (index, rule) in maps(rule, &["nonResourceRules"]) {
        errors.extend(bad_url_rule(&path.item("nonResourceRules", index), rule));
    }
    errors
}

/// A subject has only the field of its kind.
fn bad_subject(path: &Path<'_>, subject: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(subject, &["kind"]);
    let Some((_, own)) = SUBJECTS.iter().find(|(name, _)| *name == kind) else {
        let kinds = SUBJECTS.map(|(name, _)| name);
        return vec![FieldError::not_supported(path.field("kind"), kind, &kinds)];
    };
    match value(subject, &[own]).and_then(Value::as_object) {
        None => {
            let detail = format!("{own} is required when subject kind is '{kind}'");
            errors.push(FieldError::required(path.field(own), detail));
        }
        Some(named) if kind == "ServiceAccount" => errors.extend(bad_account(&path.field(own), named)),
        Some(named) if text(named, &["name"]).is_empty() => {
            errors.push(FieldError::required(path.field(own).field("name"), ""));
        }
        Some(_) => {}
    }
    for (other, field) in [SUBJECTS[1], SUBJECTS[2], SUBJECTS[0]] {
        if field != *own && has(subject, &[field]) {
            let detail = format!("{field} is forbidden when subject kind is not '{other}'");
            errors.push(FieldError::forbidden(path.field(field), detail));
        }
    }
    errors
}

fn bad_account(path: &Path<'_>, account: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match text(account, &["name"]) {
        "" => errors.push(FieldError::required(path.field("name"), "")),
        "*" => {}
        name => errors.extend(invalid(&path.field("name"), name, dns1123_subdomain(name))),
    }
    match text(account, &["namespace"]) {
        "" => {
            errors.push(FieldError::required(
                path.field("namespace"),
                "must specify namespace for service account",
            ));
        }
        namespace => errors.extend(invalid(&path.field("namespace"), namespace, dns1123_label(namespace))),
    }
    errors
}

/// The error for an empty list, or for one with `*` and other items.
fn bad_list(path: &Path<'_>, rule: &Object, field: &str, required: &str, words: &str) -> Option<FieldError> {
    let list = texts(rule, &[field]);
    let path = path.field(field);
    if list.is_empty() {
        return Some(FieldError::required(path, required));
    }
    let detail = format!("if '*' is present, must not specify other {words}");
    (list.len() > 1 && list.contains(&"*")).then(|| FieldError::invalid(path, list, detail))
}

fn bad_verbs(path: &Path<'_>, rule: &Object) -> Option<FieldError> {
    let verbs = texts(rule, &["verbs"]);
    let unknown = !verbs.contains(&"*") && !verbs.iter().all(|verb| VERBS.contains(verb));
    bad_list(path, rule, "verbs", "verbs must contain at least one value", "verbs")
        .or_else(|| unknown.then(|| FieldError::not_supported(path.field("verbs"), verbs, &VERBS)))
}

fn bad_resource_rule(path: &Path<'_>, rule: &Object) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = bad_verbs(path, rule).into_iter().collect();
    let supply = |what: &str| format!("resource rules must supply at least one {what}");
    errors.extend(bad_list(path, rule, "apiGroups", &supply("api group"), "api groups"));
    errors.extend(bad_list(path, rule, "resources", &supply("resource"), "resources"));
    let namespaces = texts(rule, &["namespaces"]);
    if !namespaces.is_empty() || !is_true(rule, &["clusterScope"]) {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.extend(bad_list(path, rule, "namespaces", detail, "namespaces"));
    }
    if !namespaces.contains(&"*") {
        for (index, namespace) in namespaces.into_iter().enumerate() {
            let path = path.item("namespaces", index);
            let intro = "each member of this list must be '*' or a DNS-1123 label; ";
            let wrong = dns1123_label(namespace).into_iter().map(|detail| format!("{intro}{detail}"));
            errors.extend(invalid(&path, namespace, wrong.collect()));
        }
    }
    errors
}

fn bad_url_rule(path: &Path<'_>, rule: &Object) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = bad_verbs(path, rule).into_iter().collect();
    let detail = "nonResourceURLs must contain at least one value";
    errors.extend(bad_list(path, rule, "nonResourceURLs", detail, "non-resource URLs"));
    let urls = texts(rule, &["nonResourceURLs"]);
    if !urls.contains(&"*") {
        for (index, url) in urls.into_iter().enumerate() {
            let path = path.item("nonResourceURLs", index);
            errors.extend(url_problem(url).map(|detail| FieldError::invalid(path, url, detail)));
        }
    }
    errors
}

fn url_problem(url: &str) -> Option<&'static str> {
    let stars = url.matches('*').count();
    match url {
        "" => Some("must not be empty"),
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ if stars > 1 || stars == 1 && !url.ends_with("/*") => Some("wildcard can only do suffix matching"),
        _ => None,
    }
}

fn cells(object: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let method = match text(object, &["spec", "distinguisherMethod", "type"]) {
        "" => "<none>",
        method => method,
    };
    let dangling = maps(object, &["status", "conditions"])
        .find(|(_, condition)| text(condition, &["type"]) == "Dangling")
        .map_or("?", |(_, condition)| text(condition, &["status"]));
    vec![
        name(object),
        text(object, &["spec", "priorityLevelConfiguration", "name"]).into(),
        number(object, &["spec", "matchingPrecedence"]).into(),
        method.into(),
        age(object, now),
        dangling.into(),
    ]
}
