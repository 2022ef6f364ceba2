//! DeviceClasses and ResourceClaimTemplates.

use serde_json::json;

use super::*;

#[test]
fn selectors_and_configuration_of_a_device_class_are_validated() {
    made(
        "DeviceClass",
        vec![
            (json!({}), json!({"metadata": {}, "spec": {}})),
            (
                json!({
                    "spec": {
                        "selectors": [{"cel": {"expression": "true"}}],
                        "config": [{"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}],
                        "extendedResourceName": "example.com/x",
                    },
                }),
                json!({
                    "metadata": {},
                    "spec": {
                        "selectors": [{"cel": {"expression": "true"}}],
                        "config": [{"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}}],
                    },
                }),
            ),
        ],
    );
    refused(
        "DeviceClass",
        vec![
            (
                json!({
                    "spec": {
                        "selectors": [{}],
                        "config": [
                            {}, {"opaque": {"driver": "", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "A b", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": null}},
                            {"opaque": {"driver": "d.example.com", "parameters": [1]}},
                        ],
                    },
                }),
                texts([
                    "spec.selectors[0].cel: Required value",
                    "spec.config[0].opaque: Required value",
                    "spec.config[1].opaque.driver: Required value",
                    "spec.config[2].opaque.driver: Invalid value: \"A b\": a lowercase RFC 1123 subdomain must \
                 consist of lower case alphanumeric characters, '-' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                    "spec.config[3].opaque.parameters: Required value",
                    "spec.config[4].opaque.parameters: Invalid value: \"<value omitted>\": must be a valid \
                 JSON object",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "selectors": [
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}}, {"cel": {"expression": "true"}},
                            {"cel": {"expression": "true"}},
                        ],
                        "config": [
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                            {"opaque": {"driver": "d.example.com", "parameters": {"a": 1}}},
                        ],
                    },
                }),
                texts([
                    "spec.selectors: Too many: 33: must have at most 32 items",
                    "spec.config: Too many: 33: must have at most 32 items",
                ]),
            ),
        ],
    );
    assert_eq!(
        update("DeviceClass", json!({"spec": {}}), json!({"spec": {"config": [{}]}})),
        Err(texts(["spec.config[0].opaque: Required value"]))
    );
}

#[test]
fn the_spec_of_a_claim_template_is_validated() {
    made(
        "ResourceClaimTemplate",
        vec![(
            json!({
                "spec": {
                    "spec": {
                        "devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]},
                    },
                },
            }),
            json!({
                "metadata": {},
                "spec": {
                    "metadata": {},
                    "spec": {
                        "devices": {
                            "requests": [
                                {
                                    "name": "a",
                                    "exactly": {
                                        "deviceClassName": "c", "allocationMode": "ExactCount",
                                        "count": 1,
                                    },
                                },
                            ],
                        },
                    },
                },
            }),
        )],
    );
    refused(
        "ResourceClaimTemplate",
        vec![(
            json!({"spec": {"spec": {"devices": {"requests": [{}]}}}}),
            texts([
                "spec.spec.devices.requests[0].name: Invalid value: \"\": a lowercase RFC 1123 label must \
                 consist of lower case alphanumeric characters or '-', and must start and end with an \
                 alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                "spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or \
                 `firstAvailable` is required",
            ]),
        )],
    );
}
