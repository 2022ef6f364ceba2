//! ConfigMaps and Secrets.

use serde_json::json;

use super::*;

#[test]
fn config_maps_are_refused_for_their_keys_and_their_size() {
    let key = |key: &str, problem: &str| format!("data[{key}]: Invalid value: {key:?}: {problem}");
    let long = "x".repeat(254);
    refused(
        "ConfigMap",
        vec![
            (
                json!({"data": {"a b": "x", "": "y", "..": "z", "..x": "1", ".": "2", "a": "fine"}}),
                vec![
                    key("", CONFIG_KEY),
                    key(".", "must not be '.'"),
                    key("..", "must not be '..'"),
                    key("..x", "must not start with '..'"),
                    key("a b", CONFIG_KEY),
                ],
            ),
            (
                json!({"data": {"a": "x"}, "binaryData": {"a": "eA==", "b/c": "eA=="}}),
                vec![
                    key("a", "duplicate of key present in binaryData"),
                    format!("binaryData[b/c]: Invalid value: \"b/c\": {CONFIG_KEY}"),
                ],
            ),
            (json!({"data": {&long: ""}}), vec![key(&long, "must be no more than 253 characters")]),
            (
                json!({"data": {"a": "x".repeat(1 << 20)}, "binaryData": {"b": "eA=="}}),
                texts(["[]: Too long: may not be more than 1048576 bytes"]),
            ),
        ],
    );
    assert!(create("ConfigMap", json!({"data": {"a": "x".repeat(1 << 20)}})).is_ok());
}

#[test]
fn an_immutable_config_map_keeps_its_data_and_stays_immutable() {
    let old = || json!({"data": {"a": "b"}, "binaryData": {"c": "eA=="}, "immutable": true});
    let sealed = "Forbidden: field is immutable when `immutable` is set";
    let changed = json!({"data": {"a": "c"}, "binaryData": {"c": "eQ=="}});
    let errors = ["immutable", "data", "binaryData"].map(|field| format!("{field}: {sealed}")).to_vec();
    assert_eq!(update("ConfigMap", old(), changed), Err(errors));
    let opened = json!({"data": {"a": "b"}, "binaryData": {"c": "eA=="}, "immutable": false});
    assert_eq!(update("ConfigMap", old(), opened), Err(vec![format!("immutable: {sealed}")]));
    let mut labelled = old();
    labelled["metadata"] = json!({"labels": {"a": "b"}});
    assert!(update("ConfigMap", old(), labelled).is_ok());
}

#[test]
fn string_data_of_a_secret_becomes_data() {
    let body = json!({
        "metadata": {"name": "a"}, "data": {"a": "aGVsbG8=", "b": "aGVs"}, "stringData": {"a": "x", "c": ""},
    });
    let made = json!({
        "metadata": {"name": "a"}, "data": {"a": "eA==", "b": "aGVs", "c": ""}, "type": "Opaque",
    });
    assert_eq!(create("Secret", body), Ok(made));
    assert_eq!(create("Secret", json!({"type": ""})), Ok(json!({"metadata": {}, "type": "Opaque"})));
}

#[test]
fn the_type_of_a_secret_requires_entries() {
    let json_of = |text: &str| json!({"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": text}});
    let redacted = |problem: &str| {
        vec![format!("data[.dockercfg]: Invalid value: \"<secret contents redacted>\": {problem}")]
    };
    let typed = |name: &str| json!({"type": format!("kubernetes.io/{name}")});
    let object = "into Go value of type map[string]interface {}";
    refused(
        "Secret",
        vec![
            (
                json!({"data": {"a b": ""}, "stringData": {"c d": ""}}),
                ["a b", "c d"]
                    .map(|key| format!("data[{key}]: Invalid value: {key:?}: {CONFIG_KEY}"))
                    .to_vec(),
            ),
            (
                typed("service-account-token"),
                texts(["metadata.annotations[kubernetes.io/service-account.name]: Required value"]),
            ),
            (typed("dockercfg"), texts(["data[.dockercfg]: Required value"])),
            (json_of("x"), redacted("invalid character 'x' looking for beginning of value")),
            (json_of("[]"), redacted(&format!("json: cannot unmarshal array {object}"))),
            (json_of("\"x\""), redacted(&format!("json: cannot unmarshal string {object}"))),
            (json_of(""), redacted("unexpected end of JSON input")),
            (json_of("{"), redacted("unexpected end of JSON input")),
            (json_of("{} x"), redacted("invalid character 'x' after top-level value")),
            (typed("dockerconfigjson"), texts(["data[.dockerconfigjson]: Required value"])),
            (
                typed("basic-auth"),
                texts(["data[username]: Required value", "data[password]: Required value"]),
            ),
            (typed("ssh-auth"), texts(["data[ssh-privatekey]: Required value"])),
            (
                json!({"type": "kubernetes.io/ssh-auth", "stringData": {"ssh-privatekey": ""}}),
                texts(["data[ssh-privatekey]: Required value"]),
            ),
            (typed("tls"), texts(["data[tls.crt]: Required value", "data[tls.key]: Required value"])),
            (
                json!({"stringData": {"a": "x".repeat((1 << 20) + 1)}}),
                texts(["data: Too long: may not be more than 1048576 bytes"]),
            ),
        ],
    );
    for fine in [
        json_of("{}"),
        json_of("null"),
        json!({"type": "kubernetes.io/basic-auth", "stringData": {"password": ""}}),
        json!({"type": "kubernetes.io/tls", "stringData": {"tls.crt": "", "tls.key": ""}}),
        json!({"type": "bootstrap.kubernetes.io/token"}),
        json!({"type": "a b c"}),
        json!({"type": "kubernetes.io/service-account-token",
            "metadata": {"annotations": {"kubernetes.io/service-account.name": "x"}}}),
    ] {
        assert!(create("Secret", fine.clone()).is_ok(), "{fine}");
    }
}

#[test]
fn the_type_of_a_secret_and_an_immutable_secret_cannot_change() {
    let old = || json!({"data": {"a": "eA=="}, "immutable": true});
    let sealed = "Forbidden: field is immutable when `immutable` is set";
    assert_eq!(
        update("Secret", old(), json!({"data": {"a": "eQ=="}, "type": "other"})),
        Err(vec![
            "type: Invalid value: \"other\": field is immutable".to_owned(),
            format!("immutable: {sealed}"),
            format!("data: {sealed}"),
        ])
    );
    assert!(update("Secret", old(), json!({"stringData": {"a": "x"}, "immutable": true})).is_ok());
}
