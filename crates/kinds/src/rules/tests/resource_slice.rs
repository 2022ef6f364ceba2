//! ResourceSlices.

use serde_json::json;

use super::*;

/// A ResourceSlice with these fields added to its spec.
fn slice(fields: Value) -> Value {
    let mut spec = json!({
        "driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n",
    });
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({ "spec": spec })
}

#[test]
fn a_slice_has_devices_at_nodes() {
    made(
        "ResourceSlice",
        vec![
            (
                slice(json!({})),
                json!({
                    "metadata": {},
                    "spec": {
                        "driver": "d.example.com",
                        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n",
                    },
                }),
            ),
            (
                slice(json!({
                    "devices": [
                        {
                            "name": "d",
                            "attributes": {
                                "a": {"int": 1}, "d.example.com/b": {"version": "1.2.3-a.1+b"},
                                "c": {"bool": true}, "s": {"string": "x"},
                            },
                            "capacity": {"m": {"value": "1024Mi"}},
                            "taints": [{"key": "k", "effect": "NoSchedule"}], "nodeName": "n",
                        },
                    ],
                })),
                json!({
                    "metadata": {},
                    "spec": {
                        "driver": "d.example.com",
                        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n",
                        "devices": [
                            {
                                "name": "d",
                                "attributes": {
                                    "a": {"int": 1}, "c": {"bool": true},
                                    "d.example.com/b": {"version": "1.2.3-a.1+b"}, "s": {"string": "x"},
                                },
                                "capacity": {"m": {"value": "1Gi"}},
                            },
                        ],
                    },
                }),
            ),
        ],
    );
}

#[test]
fn slices_are_refused_for_driver_pool_and_nodes() {
    refused(
        "ResourceSlice",
        vec![
            (
                json!({"spec": {}}),
                texts([
                    "spec.driver: Required value",
                    "spec.pool.name: Required value",
                    "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
                    "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
                 `perDeviceNodeSelection` is required",
                ]),
            ),
            (
                slice(
                    json!({"driver": "A b", "pool": {"name": "A b/c", "generation": -1, "resourceSliceCount": 0}}),
                ),
                texts([
                    "spec.driver: Invalid value: \"A b\": a lowercase RFC 1123 subdomain must consist of lower \
                 case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric \
                 character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                    "spec.pool.name: Invalid value: \"A b\": a lowercase RFC 1123 subdomain must consist of \
                 lower case alphanumeric characters, '-' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                    "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
                    "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero",
                ]),
            ),
            (
                slice(json!({"nodeName": ""})),
                texts([
                    "spec.nodeName: Invalid value: \"\": must be either unset or set to a non-empty string",
                    "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, \
                 `perDeviceNodeSelection` is required",
                ]),
            ),
            (
                slice(json!({"nodeName": "A b"})),
                texts([
                    "spec.nodeName: Invalid value: \"A b\": a lowercase RFC 1123 subdomain must consist of \
                 lower case alphanumeric characters, '-' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                ]),
            ),
            (
                slice(json!({"allNodes": true})),
                texts(["spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, \
                 `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are \
                 set"]),
            ),
            (
                slice(json!({"allNodes": false})),
                texts(["spec.allNodes: Invalid value: false: must be either unset or set to true"]),
            ),
            (
                slice(json!({"nodeName": null, "nodeSelector": {"nodeSelectorTerms": []}})),
                texts([
                    "spec.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector \
                 term",
                    "spec.nodeSelector.nodeSelectorTerms: Invalid value: []: must have exactly one node \
                 selector term",
                ]),
            ),
        ],
    );
}

#[test]
fn devices_are_refused_for_names_and_attributes() {
    refused(
        "ResourceSlice",
        vec![
            (
                slice(json!({"devices": [{"name": "d"}, {"name": "d"}, {"name": "A b"}]})),
                texts([
                    "spec.devices[2].name: Invalid value: \"A b\": a lowercase RFC 1123 label must consist of \
                 lower case alphanumeric characters or '-', and must start and end with an alphanumeric \
                 character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                    "spec.devices[1]: Duplicate value: \"d\"",
                ]),
            ),
            (
                slice(json!({"devices": [{"name": "d", "attributes": {"1": {"int": 1}}}]})),
                texts([
                    "spec.devices[0].attributes[1]: Invalid value: \"1\": a valid C identifier must start with \
                 alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. \
                 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is \
                 '[A-Za-z_][A-Za-z0-9_]*')",
                ]),
            ),
            (
                slice(json!({"devices": [{"name": "d", "attributes": {"/x": {"int": 1}}}]})),
                texts(["spec.devices[0].attributes[/x]: Invalid value: \"\": the domain must not be empty"]),
            ),
            (
                slice(json!({"devices": [{"name": "d", "attributes": {"a.b/": {"int": 1}}}]})),
                texts(["spec.devices[0].attributes[a.b/]: Invalid value: \"\": the name must not be empty"]),
            ),
            (
                slice(json!({"devices": [{"name": "d", "attributes": {"a": {}}}]})),
                texts([
                    "spec.devices[0].attributes[a]: Invalid value: \"\": exactly one value must be specified",
                ]),
            ),
            (
                slice(json!({"devices": [{"name": "d", "attributes": {"a": {"int": 1, "bool": true}}}]})),
                texts(["spec.devices[0].attributes[a]: Invalid value: \
                 {\"IntValue\":1,\"BoolValue\":true,\"StringValue\":null,\"VersionValue\":null}: exactly \
                 one value must be specified"]),
            ),
            (
                slice(json!({"devices": [{"name": "d", "attributes": {"a": {"version": "1.2"}}}]})),
                texts(["spec.devices[0].attributes[a].version: Invalid value: \"1.2\": must be a string \
                 compatible with semver.org spec 2.0.0"]),
            ),
            (
                slice(json!({"devices": [{"name": "d", "attributes": {"a": {"string": "x".repeat(65)}}}]})),
                texts(["spec.devices[0].attributes[a].string: Too long: may not be more than 64 bytes"]),
            ),
            (
                slice(json!({"devices": [{"name": "d", "capacity": {"A b": {"value": "1"}}}]})),
                texts([
                    "spec.devices[0].capacity[A b]: Invalid value: \"A b\": a valid C identifier must start \
                 with alphabetic character or '_', followed by a string of alphanumeric characters or '_' \
                 (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is \
                 '[A-Za-z_][A-Za-z0-9_]*')",
                ]),
            ),
            (
                slice(json!({
                    "devices": [
                        {
                            "name": "d",
                            "attributes": {
                                "a0": {"int": 1}, "a1": {"int": 1}, "a2": {"int": 1}, "a3": {"int": 1},
                                "a4": {"int": 1}, "a5": {"int": 1}, "a6": {"int": 1}, "a7": {"int": 1},
                                "a8": {"int": 1}, "a9": {"int": 1}, "a10": {"int": 1}, "a11": {"int": 1},
                                "a12": {"int": 1}, "a13": {"int": 1}, "a14": {"int": 1}, "a15": {"int": 1},
                                "a16": {"int": 1}, "a17": {"int": 1}, "a18": {"int": 1}, "a19": {"int": 1},
                                "a20": {"int": 1}, "a21": {"int": 1}, "a22": {"int": 1}, "a23": {"int": 1},
                                "a24": {"int": 1}, "a25": {"int": 1}, "a26": {"int": 1}, "a27": {"int": 1},
                                "a28": {"int": 1}, "a29": {"int": 1}, "a30": {"int": 1}, "a31": {"int": 1},
                                "a32": {"int": 1},
                            },
                        },
                    ],
                })),
                texts([
                    "spec.devices[0]: Invalid value: 33: the total number of attributes and capacities must \
                 not exceed 32",
                ]),
            ),
        ],
    );
}

#[test]
fn the_nodes_of_a_slice_are_immutable() {
    assert_eq!(
        update(
            "ResourceSlice",
            slice(json!({})),
            slice(json!({
                "driver": "other", "nodeName": "m",
                "pool": {"name": "q", "generation": 1, "resourceSliceCount": 1},
            }))
        ),
        Err(texts([
            "spec.pool.name: Invalid value: \"q\": field is immutable",
            "spec.driver: Invalid value: \"other\": field is immutable",
            "spec.nodeName: Invalid value: \"m\": field is immutable",
        ]))
    );
}
