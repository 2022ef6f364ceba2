//! The table of all built-in types, compared with Go's types of Kubernetes 1.35.

use serde_json::{Value, json};

use super::*;

fn field(of: &str, name: &str) -> &'static Field {
    let id = builtin().by_name(of).unwrap_or_else(|| panic!("no type {of}"));
    builtin().get(id).field(name).unwrap_or_else(|| panic!("no field {of}.{name}"))
}

fn read(api_version: &str, kind: &str, mut body: Value) -> Result<Value, String> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let id = builtin().by_kind(group, version, kind).unwrap_or_else(|| panic!("no kind {kind}"));
    check(builtin(), id, &mut body).map(|_| body).map_err(|mismatch| mismatch.0)
}

#[test]
fn every_line_parses() {
    assert_eq!(parse(TABLE).err(), None);
}

#[test]
fn every_field_has_a_tag() {
    let has_none =
        |field: &&Field| field.tags().is_empty() && field.name != "apiVersion" && field.name != "kind";
    // The response of `/version` is the only type without protobuf.
    for (_, of) in builtin().types().filter(|(_, of)| of.name != "Info") {
        assert_eq!(of.fields().iter().find(has_none).map(|field| &field.name), None, "{}", of.full_name());
    }
}

#[test]
fn kinds_have_lists_except_those_that_are_never_listed() {
    let list = |kind: &str| builtin().by_kind("", "v1", kind).is_some();
    assert!(list("PodList") && list("ComponentStatusList"));
    assert!(!list("BindingList"));
    assert!(builtin().by_kind("autoscaling", "v1", "Scale").is_some());
    assert!(builtin().by_kind("autoscaling", "v1", "ScaleList").is_none());
}

#[test]
fn embedded_structs_are_found_at_any_depth() {
    let rule = field("io.k8s.api.admissionregistration.v1.NamedRuleWithOperations", "apiGroups");
    assert_eq!(rule.tags(), [2, 2, 1]);
    assert_eq!(rule.embedded, "RuleWithOperations.Rule");
    assert_eq!(field("io.k8s.api.core.v1.Volume", "configMap").tags(), [2, 19]);
    assert_eq!(field("io.k8s.api.core.v1.EphemeralContainer", "image").tags(), [1, 2]);
    assert_eq!(field("io.k8s.api.core.v1.Probe", "httpGet").tags(), [1, 2]);
}

#[test]
fn schema_facts_come_from_every_source() {
    let ports = field("io.k8s.api.core.v1.ServiceSpec", "ports");
    assert_eq!(ports.list, Some(ListKind::Map(Box::new(["port".into(), "protocol".into()]))));
    assert_eq!(ports.patch, Some(Patch { strategy: "merge".into(), key: Some("port".into()) }));
    assert_eq!(field("io.k8s.api.core.v1.ContainerPort", "protocol").default.as_deref(), Some("\"TCP\""));
    assert_eq!(field("io.k8s.api.core.v1.PersistentVolumeSpec", "claimRef").list, Some(ListKind::Granular));
    let usages = field("io.k8s.api.certificates.v1.CertificateSigningRequestSpec", "usages");
    let Shape::List(usage) = &usages.shape else { panic!("not a list") };
    let Shape::String { go, values } = &**usage else { panic!("not of strings") };
    assert_eq!(go, "v1.KeyUsage");
    assert!(values.contains(&"server auth".into()));
}

#[test]
fn wrong_types_are_named_as_in_go() {
    let schema = |schema: Value| json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
    let (pod, crd) = (("v1", "Pod"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
    let in_schema = "JSONSchemaProps.spec.versions.schema.openAPIV3Schema";
    let cases = [
        (
            pod,
            json!({"spec": {"containers": [{"resources": {"limits": "x"}}]}}),
            "string into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList"
                .to_owned(),
        ),
        (
            pod,
            json!({"spec": {"volumes": [{"configMap": {"name": 1}}]}}),
            "number into Go struct field ConfigMapVolumeSource.spec.volumes.VolumeSource.configMap.\
             LocalObjectReference.name of type string"
                .to_owned(),
        ),
        (
            ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
            json!({"spec": {"matchConstraints": {"resourceRules": [{"apiGroups": "x"}]}}}),
            "string into Go struct field NamedRuleWithOperations.spec.matchConstraints.resourceRules.\
             RuleWithOperations.Rule.apiGroups of type []string"
                .to_owned(),
        ),
        (
            ("authorization.k8s.io/v1", "SubjectAccessReview"),
            json!({"spec": {"extra": {"a": "x"}}}),
            "string into Go struct field SubjectAccessReviewSpec.spec.extra of type v1.ExtraValue".to_owned(),
        ),
        (
            crd,
            schema(json!({"items": {"properties": {"a": {"type": 1}}}})),
            format!("number into Go struct field {in_schema}.items.properties.type of type string"),
        ),
        (
            crd,
            schema(json!({"items": [1]})),
            format!("number into Go struct field {in_schema}.items of type v1.JSONSchemaProps"),
        ),
        (
            crd,
            schema(json!({"items": 5, "dependencies": {"a": [1]}})),
            format!("number into Go struct field {in_schema}.dependencies of type string"),
        ),
    ];
    for ((api_version, kind), body, expected) in cases {
        let answer = read(api_version, kind, body);
        assert_eq!(answer, Err(format!("json: cannot unmarshal {expected}")));
    }
    let answer = read(crd.0, crd.1, schema(json!({"additionalProperties": "x"})));
    assert_eq!(answer, Err("boolean or JSON schema expected".to_owned()));
}

#[test]
fn json_schema_props_have_three_alternatives() {
    let given = json!({
        "additionalProperties": false, "additionalItems": {"type": "string", "foo": 1}, "items": [],
        "dependencies": {"a": ["b", null], "b": {"type": "x"}, "c": null, "d": []},
        "maximum": 5.0, "default": null, "enum": [null, 1.5],
    });
    let body = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": given}}]}});
    let read = read("apiextensions.k8s.io/v1", "CustomResourceDefinition", body).unwrap();
    let expected = json!({
        "additionalProperties": false, "additionalItems": {"type": "string"}, "items": null,
        "dependencies": {"a": ["b", ""], "b": {"type": "x"}, "c": null, "d": null},
        "maximum": 5, "enum": [null, 1.5],
    });
    assert_eq!(read["spec"]["versions"][0]["schema"]["openAPIV3Schema"], expected);
    assert_eq!(read["status"]["acceptedNames"], json!({"plural": "", "kind": ""}));
}

#[test]
fn zero_values_are_encoded_as_in_go() {
    let cases = [
        (
            ("authentication.k8s.io/v1", "TokenRequest"),
            json!({}),
            json!({"metadata": {}, "spec": {"audiences": null, "expirationSeconds": null, "boundObjectRef": null},
                "status": {"token": "", "expirationTimestamp": null}}),
        ),
        (
            ("certificates.k8s.io/v1", "CertificateSigningRequest"),
            json!({}),
            json!({"metadata": {}, "spec": {"request": null, "signerName": ""}, "status": {}}),
        ),
        (
            ("apps/v1", "StatefulSet"),
            json!({}),
            json!({"metadata": {}, "status": {"replicas": 0, "availableReplicas": 0},
                "spec": {"selector": null, "template": {"metadata": {}, "spec": {"containers": null}},
                    "serviceName": "", "updateStrategy": {}}}),
        ),
        (
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
            json!({"webhooks": [{}]}),
            json!({"metadata": {}, "webhooks": [{"name": "", "clientConfig": {}, "sideEffects": null,
                "admissionReviewVersions": null}]}),
        ),
        (
            ("authorization.k8s.io/v1", "SubjectAccessReview"),
            json!({"spec": {"extra": {"a": null, "b": []}}}),
            json!({"metadata": {}, "spec": {"extra": {"a": [], "b": []}}, "status": {"allowed": false}}),
        ),
    ];
    for ((api_version, kind), given, written) in cases {
        assert_eq!(read(api_version, kind, given), Ok(written), "{kind}");
    }
}
