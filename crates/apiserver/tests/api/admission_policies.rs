//! Admission policies: effective as soon as they are written, in every version, with authorization of their parameters.

use std::sync::Arc;

use apiserver::auth::{Authorizer, AuthorizerAttributes, Decision, Identity, Mode};
use kinds::admission::configuration::AdmissionConfiguration;
use serde_json::{Value, json};

use crate::client::{CONFIGMAPS, Client};

pub const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
pub const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// A policy for one resource.
pub fn policy(name: &str, [group, version, plural]: [&str; 3], expression: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": [version], "operations": ["*"], "resources": [plural]}]},
            "validations": [{"expression": expression, "message": "no"}],
        },
    })
}

/// The binding of a policy of the same name.
pub fn binding(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}})
}

#[tokio::test]
async fn a_policy_holds_at_once_and_ends_at_once() {
    let client = Client::new().await;
    let rules = policy("p", ["", "v1", "configmaps"], "object == null || !has(object.data)");
    assert_eq!(client.post(POLICIES, &rules).await.code, 201);
    let made = json!({"metadata": {"generateName": "a"}, "data": {"a": "b"}});
    for _ in 0..3 {
        assert_eq!(client.post(CONFIGMAPS, &made).await.code, 201, "nothing binds the policy");
        assert_eq!(client.post(BINDINGS, &binding("p")).await.code, 201);
        let (code, reason, message) = client.post(CONFIGMAPS, &made).await.failure();
        assert_eq!((code, reason.as_str()), (422, "Invalid"));
        assert!(
            message.ends_with("ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no"),
            "{message}"
        );
        assert_eq!(client.delete(&format!("{BINDINGS}/p")).await.code, 200);
    }
}

#[tokio::test]
async fn custom_objects_are_judged_in_the_version_that_a_policy_names() {
    let client = Client::new().await;
    let version = |name: &str, storage: bool| {
        let schema =
            json!({"openAPIV3Schema": {"type": "object", "properties": {"size": {"type": "integer"}}}});
        json!({"name": name, "served": true, "storage": storage, "schema": schema})
    };
    let crd = json!({
        "metadata": {"name": "ships.policy.example.com"},
        "spec": {
            "group": "policy.example.com", "scope": "Namespaced",
            "names": {"plural": "ships", "kind": "Ship"},
            "versions": [version("v1", true), version("v2", false)],
        },
    });
    let made = client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await;
    assert_eq!(made.code, 201);
    let expression = "object == null || (object.apiVersion.endsWith('/v1') && object.size < 3)";
    client.post(POLICIES, &policy("ships", ["policy.example.com", "v1", "ships"], expression)).await;
    client.post(BINDINGS, &binding("ships")).await;
    for version in ["v1", "v2"] {
        let ships = format!("/apis/policy.example.com/{version}/namespaces/default/ships");
        let ship = |size: i64| {
            json!({
            "apiVersion": format!("policy.example.com/{version}"), "kind": "Ship",
            "metadata": {"generateName": "ship-"}, "size": size})
        };
        assert_eq!(client.post(&ships, &ship(2)).await.code, 201, "{version}");
        assert_eq!(client.post(&ships, &ship(3)).await.code, 422, "{version}");
    }
}

#[tokio::test]
async fn no_policy_applies_to_reviews_and_all_apply_to_webhook_configurations() {
    let client = Client::new().await;
    let kinds = [
        ("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", json!({})),
        ("authentication.k8s.io", "TokenReview", "tokenreviews", json!({"token": "x"})),
        ("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", attributes(false)),
        ("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", attributes(true)),
        (
            "authorization.k8s.io",
            "SelfSubjectRulesReview",
            "selfsubjectrulesreviews",
            json!({"namespace": "default"}),
        ),
    ];
    client.create(POLICIES, &policy("all", ["*", "*", "*"], "false")).await;
    client.create(BINDINGS, &binding("all")).await;
    for (group, kind, plural, spec) in kinds {
        let review = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec});
        let answer = client.post(&format!("/apis/{group}/v1/{plural}"), &review).await;
        assert_eq!(answer.code, 201, "{}", answer.json());
    }
    let review = json!({"spec": attributes(true)});
    let local = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    assert_eq!(client.post(local, &review).await.code, 201);
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let (code, _, message) = client.post(hooks, &json!({"metadata": {"name": "h"}})).await.failure();
    assert_eq!(code, 422, "{message}");
    assert_eq!(client.delete(&format!("{POLICIES}/all")).await.code, 200, "no policy locks itself in");
    assert_eq!(client.post(hooks, &json!({"metadata": {"name": "h"}})).await.code, 201);
}

/// Access reviews of `get pods` in the namespace `default`: for the caller, or for a named user.
fn attributes(names_user: bool) -> Value {
    let mut spec = json!({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}});
    if names_user {
        spec["user"] = "jane".into();
    }
    spec
}

#[tokio::test]
async fn the_scale_of_a_custom_resource_is_judged_through_an_equivalent_version() {
    let client = Client::new().await;
    let version = |name: &str, storage: bool| {
        let number = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"spec": number, "status": number}});
        let paths = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}, "scale": paths}})
    };
    let crd = json!({
        "metadata": {"name": "fleets.policy.example.com"},
        "spec": {
            "group": "policy.example.com", "scope": "Namespaced",
            "names": {"plural": "fleets", "kind": "Fleet"},
            "versions": [version("v1", true), version("v2", false)],
        },
    });
    client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await;
    let of = |version: &str| format!("/apis/policy.example.com/{version}/namespaces/default/fleets");
    let fleet = json!({"apiVersion": "policy.example.com/v1", "kind": "Fleet", "metadata": {"name": "f"},
        "spec": {"replicas": 1}});
    client.create(&of("v1"), &fleet).await;
    let expression = "object.kind == 'Scale' && object.apiVersion == 'autoscaling/v1' && object.spec.replicas < 3 \
        && request.kind.kind == 'Scale' && request.resource.version == 'v1'";
    let rules = policy("fleets", ["policy.example.com", "v1", "fleets/scale"], expression);
    client.create(POLICIES, &rules).await;
    client.create(BINDINGS, &binding("fleets")).await;
    for version in ["v1", "v2"] {
        let path = format!("{}/f/scale", of(version));
        let scale = |replicas: i64| json!({"spec": {"replicas": replicas}});
        let answer = client.merge(&path, &scale(2)).await;
        assert_eq!(answer.code, 200, "{version}: {}", answer.json());
        assert_eq!(client.merge(&path, &scale(3)).await.code, 422, "{version}");
    }
}

#[tokio::test]
async fn writing_a_policy_needs_read_access_to_its_parameters() {
    struct NoSecrets;
    impl Authorizer for NoSecrets {
        fn decide(&self, caller: &Identity, attributes: AuthorizerAttributes<'_>) -> Decision {
            let is_secret = matches!(attributes, AuthorizerAttributes::Resource { path, .. } if path.resource == "secrets");
            if is_secret && !caller.is_in("system:masters") {
                return Decision::Deny { reason: String::new() };
            }
            Decision::allow()
        }
    }
    let admin = Client::with(|builder| builder.authorization(vec![Mode::Own(Arc::new(NoSecrets))])).await;
    let writer = admin.as_caller(Identity::authenticated("writer", []));
    let mut leaky = policy("leaky", ["", "v1", "configmaps"], "params.data.password == ''");
    leaky["spec"]["paramKind"] = json!({"apiVersion": "v1", "kind": "Secret"});
    let (code, _, message) = writer.post(POLICIES, &leaky).await.failure();
    assert_eq!(code, 422);
    assert_eq!(
        message,
        "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"leaky\" is invalid: spec.paramKind: Forbidden: user \
         &{writer  [system:authenticated] map[]} must have \"get\" permission on all objects of the referenced \
         paramKind (kind=Secret, apiVersion=v1)"
    );
    assert_eq!(admin.post(POLICIES, &leaky).await.code, 201);
    let mut bound = binding("leaky");
    bound["spec"]["paramRef"] =
        json!({"name": "s", "namespace": "default", "parameterNotFoundAction": "Deny"});
    let (_, _, message) = writer.post(BINDINGS, &bound).await.failure();
    assert!(
        message.ends_with("does not have \"get\" permission on the object referenced by paramRef"),
        "{message}"
    );
    bound["spec"]["policyName"] = "harmless".into();
    bound["spec"]["paramRef"] =
        json!({"name": "s", "namespace": "default", "parameterNotFoundAction": "Allow"});
    assert_eq!(writer.post(BINDINGS, &bound).await.code, 201, "all of an unknown kind may be read");
    leaky["spec"]["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    leaky["metadata"]["name"] = "fine".into();
    assert_eq!(writer.post(POLICIES, &leaky).await.code, 201);
}

#[tokio::test]
async fn pod_security_is_configured_for_all_namespaces() {
    let file = br#"{
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [{"name": "PodSecurity", "configuration": {
            "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
            "defaults": {"enforce": "baseline"}, "exemptions": {"namespaces": ["kube-system"]}}}]}"#;
    let configuration = AdmissionConfiguration::read(file, &|_| true, &|path| Err(path.to_owned())).unwrap();
    let client = Client::with(|builder| builder.admission_configuration(configuration)).await;
    let pod = json!({
        "metadata": {"generateName": "p-"},
        "spec": {"hostPID": true, "containers": [{"name": "a", "image": "i"}]}});
    let (code, _, message) = client.post("/api/v1/namespaces/default/pods", &pod).await.failure();
    assert_eq!(code, 403);
    assert!(
        message.ends_with("violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true)"),
        "{message}"
    );
    assert_eq!(client.post("/api/v1/namespaces/kube-system/pods", &pod).await.code, 201);
}
