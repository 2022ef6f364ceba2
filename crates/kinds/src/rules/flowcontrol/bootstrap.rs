//! The bootstrap FlowSchemas and PriorityLevelConfigurations.

use model::Object;
use serde_json::{Value, json};

const EXEMPT: &str = "exempt";
const CATCH_ALL: &str = "catch-all";

/// A subject of a FlowSchema.
enum Who {
    Group(&'static str),
    User(&'static str),
    /// All service accounts of a namespace.
    Accounts(&'static str),
}

/// The resources or URLs of a FlowSchema.
enum What {
    Everything,
    /// URLs, with the verbs get and head.
    Urls(&'static [&'static str]),
    /// Verbs, group, resources, and whether cluster-scoped ones match, too.
    Resources(&'static [(&'static [&'static str], &'static str, &'static [&'static str], bool)]),
}

const ANYBODY: &[Who] = &[Who::Group("system:unauthenticated"), Who::Group("system:authenticated")];
const MANAGER: Who = Who::User("system:kube-controller-manager");
const SCHEDULER: Who = Who::User("system:kube-scheduler");
const SYSTEM_ACCOUNTS: Who = Who::Accounts("kube-system");
const NODES: &[Who] = &[Who::Group("system:nodes")];
const BY_USER: &str = "ByUser";
const BY_NAMESPACE: &str = "ByNamespace";

/// Name, priority level, precedence, distinguisher method, subjects, rules.
type FlowSchema = (&'static str, &'static str, i64, &'static str, &'static [Who], What);

const FLOW_SCHEMAS: [FlowSchema; 11] = [
    (EXEMPT, EXEMPT, 1, "", &[Who::Group("system:masters")], What::Everything),
    ("probes", EXEMPT, 2, "", ANYBODY, What::Urls(&["/healthz", "/readyz", "/livez"])),
    (
        "system-leader-election",
        "leader-election",
        100,
        BY_USER,
        &[MANAGER, SCHEDULER, SYSTEM_ACCOUNTS],
        What::Resources(&[(&["get", "create", "update"], "coordination.k8s.io", &["leases"], false)]),
    ),
    (
        "system-node-high",
        "node-high",
        400,
        BY_USER,
        NODES,
        What::Resources(&[
            (&["*"], "", &["nodes", "nodes/status"], true),
            (&["*"], "coordination.k8s.io", &["leases"], false),
        ]),
    ),
    ("system-nodes", "system", 500, BY_USER, NODES, What::Everything),
    ("kube-controller-manager", "workload-high", 800, BY_NAMESPACE, &[MANAGER], What::Everything),
    ("kube-scheduler", "workload-high", 800, BY_NAMESPACE, &[SCHEDULER], What::Everything),
    (
        "kube-system-service-accounts",
        "workload-high",
        900,
        BY_NAMESPACE,
        &[SYSTEM_ACCOUNTS],
        What::Everything,
    ),
    (
        "service-accounts",
        "workload-low",
        9000,
        BY_USER,
        &[Who::Group("system:serviceaccounts")],
        What::Everything,
    ),
    ("global-default", "global-default", 9900, BY_USER, ANYBODY, What::Everything),
    (CATCH_ALL, CATCH_ALL, 10_000, BY_USER, ANYBODY, What::Everything),
];

/// Name, shares, lendable percentage, queues and hand size; without queues it rejects.
type PriorityLevel = (&'static str, i64, i64, Option<(i64, i64)>);

const PRIORITY_LEVELS: [PriorityLevel; 7] = [
    (CATCH_ALL, 5, 0, None),
    ("global-default", 20, 50, Some((128, 6))),
    ("leader-election", 10, 0, Some((16, 4))),
    ("node-high", 40, 25, Some((64, 6))),
    ("system", 30, 33, Some((64, 6))),
    ("workload-high", 40, 50, Some((128, 6))),
    ("workload-low", 100, 90, Some((128, 6))),
];

/// Names and specs of the bootstrap FlowSchemas.
pub fn flow_schemas() -> impl Iterator<Item = (&'static str, Value)> {
    FLOW_SCHEMAS.iter().map(|schema| (schema.0, flow_schema(schema)))
}

/// Names and specs of the bootstrap PriorityLevelConfigurations.
pub fn priority_levels() -> impl Iterator<Item = (&'static str, Value)> {
    let exempt = json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}});
    let limited = PRIORITY_LEVELS.iter().map(|(name, shares, lendable, queues)| {
        let response = match queues {
            Some((queues, hand)) => json!({
                "type": "Queue",
                "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": 50},
            }),
            None => json!({"type": "Reject"}),
        };
        let limits = json!({
            "nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable,
        });
        (*name, json!({"type": "Limited", "limited": limits}))
    });
    std::iter::once((EXEMPT, exempt)).chain(limited)
}

/// The spec of a mandatory FlowSchema, which is immutable.
pub(super) fn mandatory_flow_schema(name: &str) -> Option<Object> {
    [EXEMPT, CATCH_ALL].contains(&name).then(|| find(flow_schemas(), name)).flatten()
}

/// The spec of a mandatory PriorityLevelConfiguration, which is immutable.
pub(super) fn mandatory_priority_level(name: &str) -> Option<Object> {
    [EXEMPT, CATCH_ALL].contains(&name).then(|| find(priority_levels(), name)).flatten()
}

fn find(mut specs: impl Iterator<Item = (&'static str, Value)>, name: &str) -> Option<Object> {
    match specs.find(|(found, _)| *found == name) {
        Some((_, Value::Object(spec))) => Some(spec),
        _ => None,
    }
}

fn flow_schema((_, level, precedence, method, who, what): &FlowSchema) -> Value {
    let subject = |who: &Who| match who {
        Who::Group(name) => json!({"kind": "Group", "group": {"name": name}}),
        Who::User(name) => json!({"kind": "User", "user": {"name": name}}),
        Who::Accounts(namespace) => {
            json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": "*"}})
        }
    };
    let mut rule = json!({ "subjects": who.iter().map(subject).collect::<Vec<_>>() });
    let all = ["*"].as_slice();
    let resource_rule = |(verbs, group, resources, everywhere): &(&[&str], &str, &[&str], bool)| {
        let mut rule =
            json!({"verbs": verbs, "apiGroups": [group], "resources": resources, "namespaces": ["*"]});
        if *everywhere {
            rule["clusterScope"] = true.into();
        }
        rule
    };
    match what {
        What::Everything => {
            rule["resourceRules"] = json!([resource_rule(&(all, "*", all, true))]);
            rule["nonResourceRules"] = json!([{"verbs": all, "nonResourceURLs": all}]);
        }
        What::Urls(urls) => rule["nonResourceRules"] = json!([{"verbs": ["get"], "nonResourceURLs": urls}]),
        What::Resources(rules) => {
            rule["resourceRules"] = rules.iter().map(resource_rule).collect::<Vec<_>>().into();
        }
    }
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": [rule],
    });
    if !method.is_empty() {
        spec["distinguisherMethod"] = json!({ "type": method });
    }
    spec
}
