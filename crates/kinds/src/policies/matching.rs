//! Match criteria of policies and bindings.

use model::Object;
use model::object::{entries, items, maps, text, texts};
use model::selector::{Requirement, Selector, Target as Of, Test};
use serde_json::Value;

/// The attributes of a request that rules match.
#[derive(Clone, Copy, Debug)]
pub struct MatchAttributes<'a> {
    /// The resource of the request.
    pub resource: MatchedResource<'a>,
    /// Equivalent resources in other groups and versions.
    pub equivalents: &'a [MatchedResource<'a>],
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// The name; may be empty.
    pub name: &'a str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
}

/// A resource of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchedResource<'a> {
    /// The group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The plural.
    pub plural: &'a str,
}

/// The result of matching rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matched {
    /// No rule matches.
    No,
    /// A rule matches the resource of the request.
    Named,
    /// A rule matches an equivalent resource, by its index.
    Equivalent(usize),
}

/// The parsed match criteria of a policy or binding.
#[derive(Debug, Default)]
pub struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    is_exact: bool,
    namespaces: Selector,
    objects: Selector,
}

#[derive(Debug)]
struct Rule {
    names: Vec<String>,
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: RuleScope,
}

#[derive(Debug, PartialEq)]
enum RuleScope {
    All,
    Cluster,
    Namespaced,
}

impl Criteria {
    /// Parses valid match criteria.
    pub fn read(resources: &Object) -> Self {
        let rules = |field: &str| maps(resources, &[field]).map(|(_, rule)| Rule::read(rule)).collect();
        Self {
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            is_exact: text(resources, &["matchPolicy"]) == "Exact",
            namespaces: selector(resources.get("namespaceSelector")),
            objects: selector(resources.get("objectSelector")),
        }
    }

    /// Matches the rules, but not the selectors.
    pub fn rules(&self, target: &MatchAttributes<'_>) -> Matched {
        if self.matched(&self.excluded, target) != Matched::No {
            return Matched::No;
        }
        if self.rules.is_empty() {
            return Matched::Named;
        }
        self.matched(&self.rules, target)
    }

    fn matched(&self, rules: &[Rule], target: &MatchAttributes<'_>) -> Matched {
        if rules.iter().any(|rule| rule.matches(target, target.resource)) {
            return Matched::Named;
        }
        if self.is_exact {
            return Matched::No;
        }
        let others = rules.iter().find_map(|rule| {
            target
                .equivalents
                .iter()
                .position(|other| *other != target.resource && rule.matches(target, *other))
        });
        others.map_or(Matched::No, Matched::Equivalent)
    }

    /// Whether the criteria select namespaces by label.
    pub fn selects_namespaces(&self) -> bool {
        !self.namespaces.is_empty()
    }

    /// Whether a namespace with these labels is selected.
    pub fn selects_namespace(&self, labels: Option<&Object>) -> bool {
        selects(&self.namespaces, labels)
    }

    /// Whether the new or the old object is selected.
    pub fn selects_object(&self, new: Option<&Object>, old: Option<&Object>) -> bool {
        let is_selected = |object: &Object| {
            let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
            selects(&self.objects, labels.and_then(Value::as_object))
        };
        self.objects.is_empty() || [new, old].into_iter().flatten().any(is_selected)
    }
}

impl Rule {
    fn read(rule: &Object) -> Self {
        let list = |field: &str| texts(rule, &[field]).into_iter().map(str::to_owned).collect();
        Self {
            names: list("resourceNames"),
            operations: list("operations"),
            groups: list("apiGroups"),
            versions: list("apiVersions"),
            resources: list("resources"),
            scope: match text(rule, &["scope"]) {
                "Cluster" => RuleScope::Cluster,
                "Namespaced" => RuleScope::Namespaced,
                _ => RuleScope::All,
            },
        }
    }

    fn matches(&self, target: &MatchAttributes<'_>, resource: MatchedResource<'_>) -> bool {
        let among = |list: &[String], found: &str| list.iter().any(|item| item == "*" || item == found);
        // A Namespace is cluster-scoped, though requests for one have its name as their namespace.
        let is_cluster =
            target.namespace.is_empty() || (resource.group.is_empty() && resource.plural == "namespaces");
        let fits_scope = match self.scope {
            RuleScope::All => true,
            RuleScope::Cluster => is_cluster,
            RuleScope::Namespaced => !is_cluster,
        };
        fits_scope
            && among(&self.operations, target.operation)
            && among(&self.groups, resource.group)
            && among(&self.versions, resource.version)
            && self.resources.iter().any(|pattern| {
                let (plural, part) = pattern.split_once('/').unwrap_or((pattern, ""));
                (plural == "*" || plural == resource.plural) && (part == "*" || part == target.subresource)
            })
            && (self.names.is_empty() || self.names.iter().any(|name| name == target.name))
    }
}

/// A valid label selector; `None` selects everything.
pub(super) fn selector(selector: Option<&Value>) -> Selector {
    let Some(selector) = selector.and_then(Value::as_object) else { return Selector::default() };
    let requirement = |key: &str, test: Test| Requirement { target: Of::Label, key: key.to_owned(), test };
    let labels = entries(selector, &["matchLabels"])
        .map(|(key, value)| requirement(key, Test::In(vec![value.as_str().unwrap_or_default().to_owned()])));
    let expressions = items(selector, &["matchExpressions"]).iter().filter_map(Value::as_object);
    let expressions = expressions.map(|expression| {
        let values = || texts(expression, &["values"]).into_iter().map(str::to_owned).collect();
        let test = match text(expression, &["operator"]) {
            "In" => Test::In(values()),
            "NotIn" => Test::NotIn(values()),
            "Exists" => Test::Exists,
            _ => Test::NotExists,
        };
        requirement(text(expression, &["key"]), test)
    });
    Selector { requirements: labels.chain(expressions).collect() }
}

fn selects(selector: &Selector, labels: Option<&Object>) -> bool {
    selector.requirements.iter().all(|requirement| {
        let value = labels.and_then(|labels| labels.get(&requirement.key)).and_then(Value::as_str);
        requirement.test.holds(value)
    })
}
