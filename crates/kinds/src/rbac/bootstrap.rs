//! The bootstrap roles and bindings of `bootstrap.txt`.
//!
//! An unindented line starts an object: `ClusterRole NAME`, with `to X` if its rules are aggregated to the role X, and
//! `from X` if it aggregates the rules of X; `Role NAME in NAMESPACE`; `ClusterRoleBinding NAME` and `RoleBinding NAME
//! in NAMESPACE`, with `of ROLE` if the role has another name. An indented line is a rule, `VERBS GROUPS: RESOURCES` or
//! `VERBS PATHS`, with ` = NAMES` for resource names and `core` for the core group; below a binding it is a subject.

use serde_json::{Map, Value, json};

use super::rule::PolicyRule;
use super::{GROUP, Index, missing};

const TABLE: &str = include_str!("bootstrap.txt");
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const PART_OF: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// A bootstrap role or binding.
#[derive(Clone, Debug)]
pub struct Bootstrapped {
    /// The plural name of its resource.
    pub resource: &'static str,
    /// Empty for a cluster-scoped object.
    pub namespace: &'static str,
    /// The object.
    pub object: Value,
}

/// All bootstrap roles and bindings, roles first.
pub fn bootstrap() -> Vec<Bootstrapped> {
    entries().iter().map(Paragraph::object).collect()
}

/// An index of the bootstrap roles and bindings.
pub fn bootstrap_index() -> Index {
    let mut index = Index::default();
    for Bootstrapped { resource, namespace, object } in bootstrap() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if resource.ends_with("bindings") {
            index.set_binding(namespace, &name, serde_json::from_value(object).ok());
        } else {
            index.set_role(namespace, &name, serde_json::from_value(object).ok());
        }
    }
    index
}

/// A paragraph of `bootstrap.txt`.
struct Paragraph {
    head: Vec<&'static str>,
    lines: Vec<&'static str>,
}

fn entries() -> Vec<Paragraph> {
    let mut entries: Vec<Paragraph> = Vec::new();
    for line in TABLE.lines() {
        match (line.strip_prefix("  "), entries.last_mut()) {
            (Some(line), Some(last)) => last.lines.push(line),
            _ => entries.push(Paragraph { head: line.split(' ').collect(), lines: Vec::new() }),
        }
    }
    entries
}

impl Paragraph {
    /// The words after each occurrence of `word` in the first line.
    fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'static str> + 'a {
        self.head[2..].chunks(2).filter(move |pair| pair[0] == word).map(|pair| pair[1])
    }

    fn object(&self) -> Bootstrapped {
        let (kind, name) = (self.head[0], self.head[1]);
        let namespace = self.words("in").next().unwrap_or_default();
        let mut labels = Map::from_iter([("kubernetes.io/bootstrapping".to_owned(), "rbac-defaults".into())]);
        labels.extend(self.words("to").map(|role| (format!("{PART_OF}{role}"), "true".into())));
        let mut metadata = json!({"name": name, "labels": labels, "annotations": {AUTOUPDATE: "true"}});
        if !namespace.is_empty() {
            metadata["namespace"] = namespace.into();
        }
        let mut object = json!({"metadata": metadata});
        let resource = match kind {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            "ClusterRoleBinding" => "clusterrolebindings",
            _ => "rolebindings",
        };
        if resource.ends_with("bindings") {
            let role = self.words("of").next().unwrap_or(name);
            let role_kind = kind.trim_end_matches("Binding");
            object["roleRef"] = json!({"apiGroup": GROUP, "kind": role_kind, "name": role});
            object["subjects"] = self.lines.iter().map(|line| subject(line)).collect();
        } else {
            let selectors: Vec<Value> = self
                .words("from")
                .map(|role| json!({"matchLabels": {format!("{PART_OF}{role}"): "true"}}))
                .collect();
            if selectors.is_empty() {
                let rules: Vec<PolicyRule> = self.lines.iter().map(|line| rule(line)).collect();
                object["rules"] = json!(rules);
            } else {
                object["aggregationRule"] = json!({"clusterRoleSelectors": selectors});
                // The clusterrole-aggregation controller writes the rules.
                object["rules"] = Value::Null;
            }
        }
        Bootstrapped { resource, namespace, object }
    }
}

fn rule(line: &str) -> PolicyRule {
    let list = |text: &str, by: char| -> Vec<Box<str>> { text.split(by).map(Box::from).collect() };
    let (verbs, rest) = line.split_once(' ').unwrap_or((line, ""));
    let verbs = list(verbs, ',');
    let Some((groups, resources)) = rest.split_once(": ") else {
        return PolicyRule { verbs, paths: list(rest, ' '), ..PolicyRule::default() };
    };
    let (resources, names) = match resources.split_once(" = ") {
        Some((resources, names)) => (resources, list(names, ' ')),
        None => (resources, Vec::new()),
    };
    let core = |group: Box<str>| if &*group == "core" { Box::from("") } else { group };
    let api_groups = list(groups, ',').into_iter().map(core).collect();
    PolicyRule {
        verbs,
        api_groups,
        resources: list(resources, ' '),
        resource_names: names,
        paths: Vec::new(),
    }
}

fn subject(line: &str) -> Value {
    let (kind, name) = line.split_once(' ').unwrap_or((line, ""));
    match name.split_once('/').filter(|_| kind == "ServiceAccount") {
        Some((namespace, name)) => json!({"kind": kind, "name": name, "namespace": namespace}),
        None => json!({"apiGroup": GROUP, "kind": kind, "name": name}),
    }
}

/// Adds missing metadata, rules or subjects to a stored role or binding; `None` if none are missing or the object opted
/// out. Additions of users are kept.
pub fn reconciled(stored: &Value, wanted: &Value) -> Option<Value> {
    let of = |object: &Value, key: &str| object["metadata"][key].as_object().cloned().unwrap_or_default();
    if of(stored, "annotations").get(AUTOUPDATE).and_then(Value::as_str) == Some("false") {
        return None;
    }
    // `roleRef` is immutable: the binding is recreated.
    if wanted.get("roleRef").is_some_and(|role| *role != stored["roleRef"]) {
        return Some(wanted.clone());
    }
    let mut object = stored.clone();
    for key in ["labels", "annotations"] {
        let mut merged = of(wanted, key);
        merged.extend(of(stored, key));
        if merged != of(stored, key) {
            object["metadata"][key] = merged.into();
        }
    }
    if wanted.get("roleRef").is_some() {
        add_missing(&mut object["subjects"], &wanted["subjects"]);
    } else if let Some(aggregation) = wanted.get("aggregationRule") {
        let selectors = &aggregation["clusterRoleSelectors"];
        if object["aggregationRule"].is_null() {
            object["aggregationRule"] = aggregation.clone();
        } else {
            add_missing(&mut object["aggregationRule"]["clusterRoleSelectors"], selectors);
        }
    } else {
        let rules = |object: &Value| -> Vec<PolicyRule> {
            serde_json::from_value(object["rules"].clone()).unwrap_or_default()
        };
        let lacking = missing(&rules(stored), &rules(wanted));
        add_missing(&mut object["rules"], &json!(lacking));
    }
    (object != *stored).then_some(object)
}

fn add_missing(list: &mut Value, wanted: &Value) {
    let there = list.as_array().cloned().unwrap_or_default();
    let lacking: Vec<Value> =
        wanted.as_array().into_iter().flatten().filter(|entry| !there.contains(entry)).cloned().collect();
    if !lacking.is_empty() {
        *list = Value::Array([there, lacking].concat());
    }
}
