//! Callers with exactly one verb on everything: operations that need another verb are refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use apiserver::auth::{Authorizer, AuthorizerAttributes, Decision, Identity, Mode};
use http::Method;
use serde_json::{Value, json};

use crate::authorization_walk::{METHODS, mounted_paths, resource_paths};
use crate::client::{Answer, Client};
use crate::custom_resources::{CRDS, WIDGETS, crd};
use crate::mounts::{self, Product};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const CSRS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// The verbs of requests, and those that only some operations need.
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const EXTRA_VERBS: [&str; 7] = ["impersonate", "escalate", "bind", "approve", "sign", "attest", "use"];

/// An authorizer that allows `only-VERB` this verb on everything, and denies the rest.
struct OneVerb;

impl Authorizer for OneVerb {
    fn decide(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Decision {
        let (AuthorizerAttributes::Resource { verb, .. } | AuthorizerAttributes::Path { verb, .. }) =
            attributes;
        match caller.name.strip_prefix("only-") == Some(verb) {
            true => Decision::allow(),
            false => Decision::NoOpinion { reason: String::new() },
        }
    }
}

async fn server() -> Client {
    let modes = vec![Mode::Own(Arc::new(OneVerb)), Mode::Rbac];
    let admin = Client::with(|builder| builder.authorization(modes)).await;
    admin.create(CRDS, &crd()).await;
    admin
}

/// A user in no group, and so without the default roles.
fn only(admin: &Client, verb: &str) -> Client {
    admin.as_caller(Identity { name: format!("only-{verb}"), ..Identity::default() })
}

/// The verb of a request by method and path, as Kubernetes derives it.
fn verb_of(method: &Method, path: &str) -> &'static str {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let behind_version = if segments[0] == "api" { &segments[2..] } else { &segments[3..] };
    let behind_namespace = match behind_version {
        ["namespaces", _, rest @ ..] if !rest.is_empty() && !["status", "finalize"].contains(&rest[0]) => {
            rest
        }
        all => all,
    };
    let is_collection = behind_namespace.len() == 1;
    match *method {
        _ if behind_version[0] == "watch" => "watch",
        Method::GET if is_collection && query.contains("watch=true") => "watch",
        Method::GET if is_collection => "list",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        _ if is_collection => "deletecollection",
        _ => "delete",
    }
}

fn assert_lacks(answer: &Answer, verb: &str, of: &str) {
    let (_, reason, message) = answer.failure();
    assert_eq!(reason, "Forbidden", "{of}: {message}");
    assert!(message.contains(verb), "{of}: {message}");
}

#[tokio::test]
async fn a_verb_gives_no_request_of_another_verb() {
    let admin = server().await;
    let paths = resource_paths(&admin);
    let before = admin.store.clock().await.unwrap().current;
    for held in VERBS.iter().chain(&EXTRA_VERBS[..1]) {
        let client = only(&admin, held);
        for (path, method) in paths.iter().flat_map(|path| METHODS.map(|method| (path, method))) {
            if verb_of(&method, path) == *held {
                continue;
            }
            let body = br#"{"metadata":{"name":"default"}}"#;
            let answer =
                client.send(method.clone(), path, &[("content-type", "application/json")], body).await;
            assert_lacks(&answer, "cannot", &format!("{held}: {method} {path}"));
        }
    }
    assert_eq!(admin.store.clock().await.unwrap().current, before, "nothing was written");
}

/// Collection, kind and scope of every type that supports this verb.
fn written_by(admin: &Client, verb: apiserver::Verb) -> Vec<(String, Value)> {
    let registry = admin.api.registry();
    let written = registry.types().filter(|of| of.verbs.contains(verb));
    let object = |of: &apiserver::ResourceType| {
        let (base, plural) = (of.base_path(), &of.plural);
        let place = match of.namespaced {
            true => format!("{base}/namespaces/default/{plural}"),
            false => format!("{base}/{plural}"),
        };
        let body = json!({"apiVersion": of.api_version(), "kind": of.kind, "metadata": {"name": "absent"}});
        (format!("{place}/absent"), body)
    };
    written.map(|of| object(of)).collect()
}

#[tokio::test]
async fn a_put_that_creates_needs_the_verb_create() {
    let admin = server().await;
    let before = admin.store.clock().await.unwrap().current;
    let client = only(&admin, "update");
    let mut refused = BTreeSet::new();
    for (path, body) in written_by(&admin, apiserver::Verb::Update) {
        for query in ["", "?dryRun=All"] {
            let answer = client.put(&format!("{path}{query}"), &body).await;
            match answer.code {
                403 => {
                    assert_lacks(&answer, "cannot create resource", &path);
                    refused.insert(path.rsplit('/').nth(1).unwrap().to_owned());
                }
                code => assert!((400..500).contains(&code), "{path}{query}: {code} {}", answer.json()),
            }
        }
    }
    let expected = [
        "clusterrolebindings",
        "clusterroles",
        "endpoints",
        "events",
        "leases",
        "limitranges",
        "rolebindings",
        "roles",
        "runtimeclasses",
        "services",
    ];
    assert_eq!(refused.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    assert_eq!(admin.store.clock().await.unwrap().current, before, "nothing was written");
}

#[tokio::test]
async fn a_patch_creates_nothing_without_the_verb_create() {
    let admin = server().await;
    let before = admin.store.clock().await.unwrap().current;
    let client = only(&admin, "patch");
    let written = written_by(&admin, apiserver::Verb::Patch);
    assert!(written.iter().any(|(path, _)| path.starts_with(WIDGETS)), "custom resources are among them");
    for (path, body) in &written {
        let body = body.to_string();
        let apply = [("content-type", "application/apply-patch+yaml")];
        for query in ["?fieldManager=m", "?fieldManager=m&force=true", "?fieldManager=m&dryRun=All"] {
            let path = format!("{path}{query}");
            let answer = client.send(Method::PATCH, &path, &apply, body.as_bytes()).await;
            assert_lacks(&answer, "cannot create resource", &path);
        }
        for (kind, patch) in [("merge-patch", body.as_str()), ("json-patch", "[]")] {
            let kind = format!("application/{kind}+json");
            let answer = client.send(Method::PATCH, path, &[("content-type", &kind)], patch.as_bytes()).await;
            assert_eq!(answer.code, 404, "{path}");
        }
    }
    assert_eq!(admin.store.clock().await.unwrap().current, before, "nothing was written");
}

#[tokio::test]
async fn impersonation_needs_the_verb_impersonate_for_each_attribute() {
    let admin = server().await;
    let path = "/api/v1/namespaces/default/configmaps/absent";
    let parts: [&[(&str, &str)]; 5] = [
        &[("impersonate-user", "only-get")],
        &[("impersonate-user", "system:serviceaccount:default:default")],
        &[("impersonate-user", "only-get"), ("impersonate-group", "system:masters")],
        &[("impersonate-user", "only-get"), ("impersonate-uid", "1")],
        &[("impersonate-user", "only-get"), ("impersonate-extra-scopes", "all")],
    ];
    for headers in parts {
        for held in VERBS.iter().chain(&EXTRA_VERBS[1..]) {
            let answer = only(&admin, held).send(Method::GET, path, headers, b"").await;
            assert_lacks(&answer, "cannot impersonate", held);
        }
    }
    let as_get = parts[0];
    let impersonator = only(&admin, "impersonate");
    assert_eq!(impersonator.send(Method::GET, path, as_get, b"").await.code, 404, "it acts as only-get");
    let answer = impersonator.send(Method::DELETE, path, as_get, b"").await;
    assert_lacks(&answer, "User \"only-get\" cannot delete", "it has no right of its own by then");
}

/// Sends an object in each way that this verb allows.
async fn write(client: &Client, verb: &str, collection: &str, object: &Value) -> Vec<Answer> {
    let one = format!("{collection}/{}", object["metadata"]["name"].as_str().unwrap());
    let body = object.to_string();
    match verb {
        "create" => vec![client.post(collection, object).await],
        "update" => vec![client.put(&one, object).await],
        _ => {
            let mut answers = vec![client.merge(&one, object).await];
            let apply = [("content-type", "application/apply-patch+yaml")];
            let path = format!("{one}?fieldManager=m&force=true");
            answers.push(client.send(Method::PATCH, &path, &apply, body.as_bytes()).await);
            answers
        }
    }
}

#[tokio::test]
async fn roles_and_bindings_need_the_verbs_escalate_and_bind() {
    let admin = server().await;
    let role_ref =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    for (of, kind, place) in [
        ("clusterroles", "ClusterRole", format!("{RBAC}/clusterroles")),
        ("roles", "Role", format!("{RBAC}/namespaces/default/roles")),
        ("clusterrolebindings", "ClusterRoleBinding", format!("{RBAC}/clusterrolebindings")),
        ("rolebindings", "RoleBinding", format!("{RBAC}/namespaces/default/rolebindings")),
    ] {
        let version = "rbac.authorization.k8s.io/v1";
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}});
        let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]);
        let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}]);
        let is_binding = of.ends_with("bindings");
        let mut wanted = object.clone();
        if is_binding {
            object["roleRef"] = role_ref.clone();
            wanted["roleRef"] = role_ref.clone();
            wanted["subjects"] = subjects;
        } else {
            wanted["rules"] = rules;
        }
        let refused = only(&admin, "create").post(&place, &wanted).await;
        assert_lacks(&refused, "attempting to grant RBAC permissions not currently held", of);
        admin.create(&place, &object).await;
        for verb in ["update", "patch"] {
            for answer in write(&only(&admin, verb), verb, &place, &wanted).await {
                assert_lacks(&answer, "attempting to grant RBAC permissions not currently held", of);
            }
        }
        let stored = admin.get(&format!("{place}/x")).await.json();
        let given = &stored[if is_binding { "subjects" } else { "rules" }];
        assert!(given.as_array().is_none_or(Vec::is_empty), "{stored}");
    }
}

#[tokio::test]
async fn certificates_need_the_verbs_approve_and_sign() {
    let admin = server().await;
    let csr = json!({"metadata": {"name": "x"}, "spec": {
        "request": request(), "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
    }});
    let made = admin.create(CSRS, &csr).await;
    let condition = json!({"type": "Approved", "status": "True", "reason": "r", "message": "m"});
    for (part, lacking, status) in [
        ("approval", "approve", json!({"conditions": [condition]})),
        ("status", "sign", json!({"certificate": certificate()})),
        ("status", "sign", json!({"conditions": [{"type": "Failed", "status": "True", "reason": "r"}]})),
    ] {
        let path = format!("{CSRS}/x/{part}");
        let mut changed = made.clone();
        changed["status"] = status.clone();
        let answers = [
            only(&admin, "update").put(&path, &changed).await,
            only(&admin, "patch").merge(&path, &json!({"status": status})).await,
        ];
        for answer in answers {
            let text = format!("user not permitted to {lacking} requests with signerName");
            assert_eq!(answer.code, 403, "{part}: {}", answer.json());
            assert_lacks(&answer, &text, part);
        }
        // Only the verb was missing.
        let allowed = admin.put(&format!("{path}?dryRun=All"), &changed).await;
        assert_eq!(allowed.code, 200, "{part}: {}", allowed.json());
    }
    assert_eq!(admin.get(&format!("{CSRS}/x")).await.json()["status"], made["status"]);
}

#[tokio::test]
async fn a_trust_bundle_of_a_signer_needs_the_verb_attest() {
    let admin = server().await;
    // The kind is an alpha of Kubernetes; its plugin decides by group and name, so a CRD can serve it.
    let names = json!({"plural": "clustertrustbundles", "singular": "bundle", "kind": "ClusterTrustBundle", "listKind": "BundleList"});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let kind = json!({
        "metadata": {
            "name": "clustertrustbundles.certificates.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, only for a test"},
        },
        "spec": {
            "group": "certificates.k8s.io", "scope": "Cluster", "names": names,
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": schema}],
        },
    });
    admin.create(CRDS, &kind).await;
    let bundles = "/apis/certificates.k8s.io/v1alpha1/clustertrustbundles";
    let bundle = json!({
        "apiVersion": "certificates.k8s.io/v1alpha1", "kind": "ClusterTrustBundle",
        "metadata": {"name": "x"}, "spec": {"signerName": "example.io/signer", "trustBundle": "a"},
    });
    let text = "user not permitted to attest for signerName \"example.io/signer\"";
    assert_lacks(&only(&admin, "create").post(bundles, &bundle).await, text, "create");
    let mut wanted = admin.create(bundles, &bundle).await;
    wanted["spec"]["trustBundle"] = "b".into();
    let change = json!({"spec": {"trustBundle": "b"}});
    let path = format!("{bundles}/x");
    assert_lacks(&only(&admin, "update").put(&path, &wanted).await, text, "update");
    assert_lacks(&only(&admin, "patch").merge(&path, &change).await, text, "patch");
    assert_eq!(admin.get(&path).await.json()["spec"]["trustBundle"], "a");
    assert_eq!(admin.merge(&path, &change).await.code, 200);
}

/// A certificate of a fresh key.
fn certificate() -> String {
    use base64::Engine as _;
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let pem = x509::pem::encode(x509::pem::CERTIFICATE, parameters.self_signed(&key).unwrap().der());
    base64::engine::general_purpose::STANDARD.encode(pem)
}

/// A certificate signing request of a fresh key.
fn request() -> String {
    use base64::Engine as _;
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let request = parameters.serialize_request(&key).unwrap();
    let pem = x509::pem::encode("CERTIFICATE REQUEST", request.der());
    base64::engine::general_purpose::STANDARD.encode(pem)
}

#[tokio::test]
async fn a_command_in_a_pod_needs_the_verb_create_also_where_it_begins_with_a_get() {
    let admin = server().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    admin.create(pods, &pod).await;
    for part in ["exec?command=id", "attach", "portforward?ports=80"] {
        for upgrade in [&[("connection", "upgrade"), ("upgrade", "websocket")][..], &[]] {
            let path = format!("{pods}/p/{part}");
            let refused = only(&admin, "get").send(Method::GET, &path, upgrade, b"").await;
            assert_lacks(&refused, "pods \"p\" is forbidden", part);
            let posted = only(&admin, "create").send(Method::POST, &path, upgrade, b"").await;
            assert_eq!(posted.code, 400, "it has no node: {}", posted.json());
        }
    }
}

#[tokio::test]
async fn a_policy_with_parameters_needs_the_verb_get_on_them() {
    let admin = server().await;
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]},
        "validations": [{"expression": "true"}],
    }});
    let (code, _, message) = only(&admin, "create").post(policies, &policy).await.failure();
    assert_eq!(code, 422);
    assert!(message.contains("must have \"get\" permission on all objects of the referenced paramKind"));
}

#[tokio::test]
async fn a_plain_path_is_served_by_the_text_that_was_authorized() {
    let admin = Client::new().await;
    let role = json!({"metadata": {"name": "r"}, "rules": [
        {"verbs": ["get"], "nonResourceURLs": ["/metrics/*", "/healthz/*", "/openapi/v2/*", "/version/*"]}]});
    admin.create(&format!("{RBAC}/clusterroles"), &role).await;
    let binding = json!({
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "nobody"}],
    });
    admin.create(&format!("{RBAC}/clusterrolebindings"), &binding).await;
    let client = admin.as_caller(Identity { name: "nobody".to_owned(), ..Identity::default() });
    for (path, code) in [
        ("/metrics", 403),
        ("/metrics/", 404),
        ("/metrics//", 404),
        ("//metrics", 403),
        ("/healthz/", 404),
        ("/healthz", 403),
        ("/openapi/v2/", 404),
        ("/version/", 200),
        ("/version", 403),
        ("/", 403),
        ("//", 403),
    ] {
        assert_eq!(client.get(path).await.code, code, "{path}");
    }
}

#[tokio::test]
async fn a_verb_gives_one_method_of_a_mount() {
    let product = Product::default();
    let modes = vec![Mode::Own(Arc::new(OneVerb)), Mode::Rbac];
    let admin = mounts::server(&product, |builder| builder.authorization(modes)).await;
    let paths: Vec<String> =
        mounted_paths(&admin).into_iter().filter(|path| !path.contains("openapi")).collect();
    for held in ["get", "post", "put", "patch", "delete", "create", "update", "list", "watch", "impersonate"]
    {
        let client = only(&admin, held);
        for (path, method) in paths.iter().flat_map(|path| METHODS.map(|method| (path, method))) {
            let code = client.send(method.clone(), path, &[], b"").await.code;
            let is_held = method.as_str().to_lowercase() == held;
            assert_eq!(code, if is_held { 200 } else { 403 }, "{held}: {method} {path}");
            assert_eq!(product.take_calls().len(), usize::from(is_held), "{held}: {method} {path}");
        }
    }
}
