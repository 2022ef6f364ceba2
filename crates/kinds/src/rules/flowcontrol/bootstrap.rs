//! The bootstrap FlowSchemas and PriorityLevelConfigurations.

use model::Object;
use serde_json::{Value, json};

const EXEMPT: &str = "exempt";
const CATCH_ALL: &str = "catch-all";

/// A subject of a FlowSchema.
enum FlowSubject {
    Group(&'static str),
    User(&'static str),
    /// All service accounts of a namespace.
    Accounts(&'static str),
}

/// The resources or URLs of a FlowSchema.
enum FlowRequests {
    Everything,
    /// Nonresource URLs, with the verb `get`.
    Urls(&'static [&'static str]),
    /// Verbs, group, resources, and whether cluster-scoped ones match, too.
    Resources(&'static [(&'static [&'static str], &'static str, &'static [&'static str], bool)]),
}

const EVERYONE: &[FlowSubject] =
    &[FlowSubject::Group("system:unauthenticated"), FlowSubject::Group("system:authenticated")];
const MANAGER: FlowSubject = FlowSubject::User("system:kube-controller-manager");
const SCHEDULER: FlowSubject = FlowSubject::User("system:kube-scheduler");
const SYSTEM_ACCOUNTS: FlowSubject = FlowSubject::Accounts("kube-system");
const NODES: &[FlowSubject] = &[FlowSubject::Group("system:nodes")];
const BY_USER: &str = "ByUser";
const BY_NAMESPACE: &str = "ByNamespace";

/// A bootstrap FlowSchema.
struct FlowSchema {
    name: &'static str,
    level: &'static str,
    precedence: i64,
    /// The distinguisher method; empty for none.
    method: &'static str,
    subjects: &'static [FlowSubject],
    requests: FlowRequests,
}

const fn schema(
    name: &'static str,
    level: &'static str,
    precedence: i64,
    method: &'static str,
    subjects: &'static [FlowSubject],
    requests: FlowRequests,
) -> FlowSchema {
    FlowSchema { name, level, precedence, method, subjects, requests }
}

const FLOW_SCHEMAS: [FlowSchema; 11] = [
    schema(EXEMPT, EXEMPT, 1, "", &[FlowSubject::Group("system:masters")], FlowRequests::Everything),
    schema("probes", EXEMPT, 2, "", EVERYONE, FlowRequests::Urls(&["/healthz", "/readyz", "/livez"])),
    schema(
        "system-leader-election",
        "leader-election",
        100,
        BY_USER,
        &[MANAGER, SCHEDULER, SYSTEM_ACCOUNTS],
        FlowRequests::Resources(&[(&["get", "create", "update"], "coordination.k8s.io", &["leases"], false)]),
    ),
    schema(
        "system-node-high",
        "node-high",
        400,
        BY_USER,
        NODES,
        FlowRequests::Resources(&[
            (&["*"], "", &["nodes", "nodes/status"], true),
            (&["*"], "coordination.k8s.io", &["leases"], false),
        ]),
    ),
    schema("system-nodes", "system", 500, BY_USER, NODES, FlowRequests::Everything),
    schema(
        "kube-controller-manager",
        "workload-high",
        800,
        BY_NAMESPACE,
        &[MANAGER],
        FlowRequests::Everything,
    ),
    schema("kube-scheduler", "workload-high", 800, BY_NAMESPACE, &[SCHEDULER], FlowRequests::Everything),
    schema(
        "kube-system-service-accounts",
        "workload-high",
        900,
        BY_NAMESPACE,
        &[SYSTEM_ACCOUNTS],
        FlowRequests::Everything,
    ),
    schema(
        "service-accounts",
        "workload-low",
        9000,
        BY_USER,
        &[FlowSubject::Group("system:serviceaccounts")],
        FlowRequests::Everything,
    ),
    schema("global-default", "global-default", 9900, BY_USER, EVERYONE, FlowRequests::Everything),
    schema(CATCH_ALL, CATCH_ALL, 10_000, BY_USER, EVERYONE, FlowRequests::Everything),
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
    FLOW_SCHEMAS.iter().map(|schema| (schema.name, flow_schema(schema)))
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

fn flow_schema(schema: &FlowSchema) -> Value {
    let FlowSchema { level, precedence, method, subjects, requests, .. } = schema;
    let subject = |subject: &FlowSubject| match subject {
        FlowSubject::Group(name) => json!({"kind": "Group", "group": {"name": name}}),
        FlowSubject::User(name) => json!({"kind": "User", "user": {"name": name}}),
        FlowSubject::Accounts(namespace) => {
            json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": "*"}})
        }
    };
    let mut rule = json!({ "subjects": subjects.iter().map(subject).collect::<Vec<_>>() });
    let all = ["*"].as_slice();
    let resource_rule = |(verbs, group, resources, everywhere): &(&[&str], &str, &[&str], bool)| {
        let mut rule =
            json!({"verbs": verbs, "apiGroups": [group], "resources": resources, "namespaces": ["*"]});
        if *everywhere {
            rule["clusterScope"] = true.into();
        }
        rule
    };
    match requests {
        FlowRequests::Everything => {
            rule["resourceRules"] = json!([resource_rule(&(all, "*", all, true))]);
            rule["nonResourceRules"] = json!([{"verbs": all, "nonResourceURLs": all}]);
        }
        FlowRequests::Urls(urls) => {
            rule["nonResourceRules"] = json!([{"verbs": ["get"], "nonResourceURLs": urls}])
        }
        FlowRequests::Resources(rules) => {
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
