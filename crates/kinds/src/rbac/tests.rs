//! Decisions of rules and bindings, and the escalation check.

use serde_json::{Value, json};

use super::{
    Binding, Bootstrapped, Caller, Index, PolicyRule, RequestAttributes, Role, Verdict, bootstrap,
    bootstrap_index, missing, names_of_missing, reconciled,
};

fn rules(rules: Value) -> Vec<PolicyRule> {
    serde_json::from_value(rules).unwrap()
}

fn role(all: Value) -> Option<Role> {
    Some(Role { rules: rules(all) })
}

fn binding(kind: &str, name: &str, subjects: Value) -> Option<Binding> {
    serde_json::from_value(json!({"roleRef": {"kind": kind, "name": name}, "subjects": subjects})).unwrap()
}

fn resource<'a>(verb: &'a str, path: &'a str, namespace: &'a str, name: &'a str) -> RequestAttributes<'a> {
    let (resource, subresource) = path.split_once('/').unwrap_or((path, ""));
    let (group, resource) = resource.split_once(':').unwrap_or(("", resource));
    RequestAttributes::Resource { verb, group, resource, subresource, namespace, name }
}

fn allowed(index: &Index, user: &str, groups: &[&str], request: RequestAttributes<'_>) -> bool {
    let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
    matches!(index.decide(Caller { name: user, groups: &groups }, request), Verdict::Allowed(_))
}

#[test]
fn a_rule_allows_its_verbs_on_its_resources() {
    let rule = |value| serde_json::from_value::<PolicyRule>(value).unwrap();
    let pods =
        rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/scale", "jobs/status"]}));
    for (verb, path, expected) in [
        ("get", "pods", true),
        ("list", "pods", false),
        ("get", "pods/log", false),
        ("get", "things/scale", true),
        ("get", "pods/scale", true),
        ("get", "jobs/status", true),
        ("get", "jobs", false),
        ("get", "apps:pods", false),
    ] {
        assert_eq!(pods.allows(resource(verb, path, "", "x")), expected, "{verb} {path}");
    }
    let everything = rule(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
    assert!(everything.allows(resource("smell", "g:roses/red", "n", "x")));
    assert!(!everything.allows(RequestAttributes::Path { verb: "get", path: "/" }));
    let named =
        rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}));
    assert!(named.allows(resource("get", "pods", "", "a")) && !named.allows(resource("get", "pods", "", "")));
    let paths = rule(json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/logs/*"]}));
    for (path, expected) in
        [("/healthz", true), ("/healthz/", false), ("/logs/", true), ("/logs/a", true), ("/logs", false)]
    {
        assert_eq!(paths.allows(RequestAttributes::Path { verb: "get", path }), expected, "{path}");
    }
}

#[test]
fn bindings_give_roles_to_users_groups_and_service_accounts() {
    let mut index = Index::default();
    index.set_role("", "reader", role(json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}])));
    index.set_role(
        "n",
        "writer",
        role(json!([{"verbs": ["update"], "apiGroups": [""], "resources": ["pods"]}])),
    );
    let subjects = json!([{"kind": "User", "name": "jane"}, {"kind": "ServiceAccount", "name": "robot", "namespace": "m"}]);
    index.set_binding("", "readers", binding("ClusterRole", "reader", subjects));
    let subjects = json!([{"kind": "Group", "name": "dev"}, {"kind": "ServiceAccount", "name": "robot"}]);
    index.set_binding("n", "writers", binding("Role", "writer", subjects));
    for (user, groups, verb, namespace, expected) in [
        ("jane", &[][..], "get", "", true),
        ("jane", &[], "get", "n", true),
        ("jane", &[], "update", "n", false),
        ("joe", &["dev"], "update", "n", true),
        ("joe", &["dev"], "update", "m", false),
        ("joe", &["dev"], "get", "n", false),
        ("system:serviceaccount:m:robot", &[], "get", "n", true),
        ("system:serviceaccount:n:robot", &[], "update", "n", true),
        ("system:serviceaccount:n:robot", &[], "get", "n", false),
    ] {
        let request = resource(verb, "pods", namespace, "x");
        assert_eq!(allowed(&index, user, groups, request), expected, "{user} {verb} {namespace}");
    }
    index.set_role("n", "writer", role(json!([])));
    assert!(!allowed(&index, "joe", &["dev"], resource("update", "pods", "n", "x")));
    index.set_binding("", "readers", None);
    assert!(!allowed(&index, "jane", &[], resource("get", "pods", "", "x")));
}

#[test]
fn reasons_of_decisions_are_those_of_kubernetes() {
    let mut index = Index::default();
    index.set_role("", "reader", role(json!([{"verbs": ["get"], "nonResourceURLs": ["/x"]}])));
    index.set_binding(
        "",
        "b",
        binding(
            "ClusterRole",
            "reader",
            json!([{"kind": "Group", "name": "g"}, {"kind": "User", "name": "u"}]),
        ),
    );
    index.set_binding("n", "c", binding("Role", "gone", json!([{"kind": "User", "name": "u"}])));
    index.set_binding("n", "d", binding("ClusterRole", "gone", json!([{"kind": "User", "name": "u"}])));
    let groups = ["g".to_owned()];
    let caller = Caller { name: "u", groups: &groups };
    let request = RequestAttributes::Path { verb: "get", path: "/x" };
    let by = "ClusterRoleBinding \"b\" of ClusterRole \"reader\" to Group \"g\"";
    assert_eq!(index.decide(caller, request), Verdict::Allowed(by.to_owned()));
    let why = "[role.rbac.authorization.k8s.io \"gone\" not found, clusterrole.rbac.authorization.k8s.io \"gone\" not found]";
    assert_eq!(index.decide(caller, resource("get", "pods", "n", "")), Verdict::NoRule(why.to_owned()));
    assert_eq!(index.decide(caller, resource("get", "pods", "", "")), Verdict::NoRule(String::new()));
    assert_eq!(index.rules_of(caller, "n").0.len(), 1);
}

#[test]
fn granted_rules_must_be_held() {
    let held = rules(json!([
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/scale"]},
        {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"]},
        {"verbs": ["get"], "nonResourceURLs": ["/logs/*"]},
    ]));
    let covered = rules(json!([
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "jobs/scale"]},
        {"verbs": ["delete"], "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"]},
        {"verbs": ["get"], "nonResourceURLs": ["/logs/a", "/logs/b*"]},
    ]));
    assert_eq!(missing(&held, &covered), []);
    let given = rules(json!([
        {"verbs": ["get", "delete", "watch"], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["delete"], "apiGroups": ["apps"], "resources": ["deployments"]},
        {"verbs": ["get"], "nonResourceURLs": ["/logs"]},
    ]));
    assert_eq!(
        names_of_missing(&missing(&held, &given)),
        "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"watch\"]}\n\
         {APIGroups:[\"apps\"], Resources:[\"deployments\"], Verbs:[\"delete\"]}\n\
         {NonResourceURLs:[\"/logs\"], Verbs:[\"get\"]}"
    );
}

#[test]
fn bootstrap_roles_parse_with_their_aggregation() {
    let all = bootstrap();
    let find = |resource: &str, name: &str| -> &Bootstrapped {
        all.iter().find(|one| one.resource == resource && one.object["metadata"]["name"] == name).unwrap()
    };
    let [edit, part] = ["edit", "system:aggregate-to-view"].map(|name| &find("clusterroles", name).object);
    assert!(!part["rules"].as_array().unwrap().is_empty() && edit["rules"].is_null());
    let label = "rbac.authorization.k8s.io/aggregate-to-edit";
    assert_eq!(edit["aggregationRule"], json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}));
    assert_eq!(edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"], "true");
    let binding = find("rolebindings", "system::extension-apiserver-authentication-reader");
    assert_eq!(binding.object["roleRef"]["name"], "extension-apiserver-authentication-reader");
    assert_eq!(binding.namespace, "kube-system");
    let index = bootstrap_index();
    let health = RequestAttributes::Path { verb: "get", path: "/healthz" };
    assert!(allowed(&index, "system:anonymous", &["system:unauthenticated"], health));
    assert!(!allowed(&index, "joe", &["system:authenticated"], resource("get", "pods", "", "x")));
    assert!(allowed(&index, "system:kube-scheduler", &[], resource("create", "pods/binding", "n", "x")));
}

#[test]
fn reconciliation_adds_missing_rules_and_keeps_others() {
    let wanted =
        bootstrap().into_iter().find(|one| one.object["metadata"]["name"] == "system:basic-user").unwrap();
    assert_eq!(reconciled(&wanted.object, &wanted.object), None);
    let mut stored = wanted.object.clone();
    let extra = json!({"verbs": ["get"], "nonResourceURLs": ["/extra"]});
    stored["rules"] = json!([wanted.object["rules"][0], extra]);
    stored["metadata"]["labels"] = json!({"mine": "yes"});
    let mended = reconciled(&stored, &wanted.object).unwrap();
    let last = json!({"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]});
    assert_eq!(mended["rules"], json!([wanted.object["rules"][0], extra, last]));
    assert_eq!(mended["metadata"]["labels"]["mine"], "yes");
    assert_eq!(mended["metadata"]["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults");
    stored["metadata"]["annotations"] = json!({"rbac.authorization.kubernetes.io/autoupdate": "false"});
    assert_eq!(reconciled(&stored, &wanted.object), None);
}
