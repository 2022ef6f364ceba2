//! Policies: they hold as soon as they are written, in every version, and whoever writes one may read its parameters.

use std::sync::Arc;

use apiserver::auth::{Authorizer, Decision, Identity, Mode, Question};
use model::admission::configuration::AdmissionConfiguration;
use serde_json::{Value, json};

use crate::client::{CONFIGMAPS, Client};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

fn policy(name: &str, (group, version, plural): (&str, &str, &str), expression: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": [version], "operations": ["*"], "resources": [plural]}]},
            "validations": [{"expression": expression, "message": "no"}],
        },
    })
}

fn binding(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}})
}

#[tokio::test]
async fn a_policy_holds_at_once_and_ends_at_once() {
    let client = Client::new().await;
    let rules = policy("p", ("", "v1", "configmaps"), "object == null || !has(object.data)");
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
    let definition = json!({
        "metadata": {"name": "ships.policy.example.com"},
        "spec": {
            "group": "policy.example.com", "scope": "Namespaced",
            "names": {"plural": "ships", "kind": "Ship"},
            "versions": [version("v1", true), version("v2", false)],
        },
    });
    let made = client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    assert_eq!(made.code, 201);
    let expression = "object == null || (object.apiVersion.endsWith('/v1') && object.size < 3)";
    client.post(POLICIES, &policy("ships", ("policy.example.com", "v1", "ships"), expression)).await;
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
async fn who_writes_a_policy_may_read_its_parameters() {
    struct NoSecrets;
    impl Authorizer for NoSecrets {
        fn decide(&self, caller: &Identity, question: Question<'_>) -> Decision {
            let is_secret =
                matches!(question, Question::Resource { place, .. } if place.resource == "secrets");
            if is_secret && !caller.is_in("system:masters") {
                return Decision::Deny { reason: String::new() };
            }
            Decision::allow()
        }
    }
    let admin = Client::with(|builder| builder.authorization(vec![Mode::Own(Arc::new(NoSecrets))])).await;
    let writer = admin.as_caller(Identity::authenticated("writer", []));
    let mut leaky = policy("leaky", ("", "v1", "configmaps"), "params.data.password == ''");
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
