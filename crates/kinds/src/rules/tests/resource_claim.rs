//! ResourceClaims.

use serde_json::json;

use super::*;

#[test]
fn a_claim_requests_one_device_by_default() {
    made(
        "ResourceClaim",
        vec![
            (
                json!({"spec": {}}),
                json!({"metadata": {}, "spec": {"devices": {"requests": null}}, "status": {}}),
            ),
            (
                json!({"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}}}),
                json!({
                    "metadata": {},
                    "spec": {
                        "devices": {
                            "requests": [
                                {
                                    "name": "a",
                                    "exactly": {
                                        "deviceClassName": "c", "allocationMode": "ExactCount", "count": 1,
                                    },
                                },
                            ],
                        },
                    },
                    "status": {},
                }),
            ),
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [
                                {
                                    "name": "a",
                                    "exactly": {
                                        "deviceClassName": "c", "allocationMode": "All",
                                        "selectors": [{"cel": {"expression": "true"}}],
                                    },
                                },
                                {
                                    "name": "b",
                                    "firstAvailable": [
                                        {
                                            "name": "x", "deviceClassName": "c",
                                            "tolerations": [{"operator": "Exists"}],
                                        },
                                        {"name": "y", "deviceClassName": "c", "count": 2},
                                    ],
                                },
                            ],
                            "constraints": [{"requests": ["a", "b/x"], "matchAttribute": "d.example.com/n"}],
                            "config": [
                                {
                                    "requests": ["b"],
                                    "opaque": {"driver": "d.example.com", "parameters": {"a": 1}},
                                },
                            ],
                        },
                    },
                }),
                json!({
                    "metadata": {},
                    "spec": {
                        "devices": {
                            "requests": [
                                {
                                    "name": "a",
                                    "exactly": {
                                        "deviceClassName": "c",
                                        "selectors": [{"cel": {"expression": "true"}}],
                                        "allocationMode": "All",
                                    },
                                },
                                {
                                    "name": "b",
                                    "firstAvailable": [
                                        {
                                            "name": "x", "deviceClassName": "c",
                                            "allocationMode": "ExactCount", "count": 1,
                                        },
                                        {
                                            "name": "y", "deviceClassName": "c",
                                            "allocationMode": "ExactCount", "count": 2,
                                        },
                                    ],
                                },
                            ],
                            "constraints": [{"requests": ["a", "b/x"], "matchAttribute": "d.example.com/n"}],
                            "config": [
                                {
                                    "requests": ["b"],
                                    "opaque": {"driver": "d.example.com", "parameters": {"a": 1}},
                                },
                            ],
                        },
                    },
                    "status": {},
                }),
            ),
        ],
    );
}

#[test]
fn claims_are_refused_for_their_requests() {
    refused(
        "ResourceClaim",
        vec![
            (
                json!({"spec": {"devices": {"requests": [{}]}}}),
                texts([
                    "spec.devices.requests[0].name: Invalid value: \"\": a lowercase RFC 1123 label must \
                 consist of lower case alphanumeric characters or '-', and must start and end with an \
                 alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                    "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is \
                 required",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [
                                {
                                    "name": "A b", "exactly": {"deviceClassName": "c"},
                                    "firstAvailable": [{"name": "x", "deviceClassName": "c"}],
                                },
                            ],
                        },
                    },
                }),
                texts([
                    "spec.devices.requests[0].name: Invalid value: \"A b\": a lowercase RFC 1123 label must \
                 consist of lower case alphanumeric characters or '-', and must start and end with an \
                 alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                    "spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or \
                 `firstAvailable` is required, but multiple fields are set",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [
                                {"name": "a", "exactly": {"deviceClassName": "c"}},
                                {"name": "a", "exactly": {"deviceClassName": "c"}},
                            ],
                        },
                    },
                }),
                texts(["spec.devices.requests[1]: Duplicate value: \"a\""]),
            ),
            (
                json!({"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": ""}}]}}}),
                texts(["spec.devices.requests[0].exactly.deviceClassName: Required value"]),
            ),
            (
                json!({"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "A b"}}]}}}),
                texts([
                    "spec.devices.requests[0].exactly.deviceClassName: Invalid value: \"A b\": a lowercase RFC \
                 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
                 start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                 validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [
                                {
                                    "name": "a",
                                    "exactly": {"deviceClassName": "c", "allocationMode": "All", "count": 1},
                                },
                            ],
                        },
                    },
                }),
                texts([
                    "spec.devices.requests[0].exactly.count: Invalid value: 1: must not be specified when \
                 allocationMode is 'All'",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [{"name": "a", "exactly": {"deviceClassName": "c", "count": -1}}],
                        },
                    },
                }),
                texts([
                    "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [
                                {"name": "a", "exactly": {"deviceClassName": "c", "allocationMode": "x"}},
                            ],
                        },
                    },
                }),
                texts([
                    "spec.devices.requests[0].exactly.allocationMode: Unsupported value: \"x\": supported \
                 values: \"All\", \"ExactCount\"",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [
                                {"name": "a", "exactly": {"deviceClassName": "c", "selectors": [{}]}},
                            ],
                        },
                    },
                }),
                texts(["spec.devices.requests[0].exactly.selectors[0].cel: Required value"]),
            ),
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [
                                {
                                    "name": "b",
                                    "firstAvailable": [{"name": "x", "deviceClassName": "c"}, {"name": "x"}],
                                },
                            ],
                        },
                    },
                }),
                texts([
                    "spec.devices.requests[0].firstAvailable[1].deviceClassName: Required value",
                    "spec.devices.requests[0].firstAvailable[1]: Duplicate value: \"x\"",
                ]),
            ),
        ],
    );
}

#[test]
fn constraints_and_configurations_refer_to_requests() {
    refused(
        "ResourceClaim",
        vec![
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}],
                            "constraints": [{}],
                        },
                    },
                }),
                texts(["spec.devices.constraints[0].matchAttribute: Required value"]),
            ),
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}],
                            "constraints": [
                                {"matchAttribute": "x", "requests": ["b", "a/x", "a/b/c", "a", "a"]},
                            ],
                        },
                    },
                }),
                texts([
                    "spec.devices.constraints[0].requests[0]: Invalid value: \"b\": must be the name of a \
                 request in the claim or the name of a request and a subrequest separated by '/'",
                    "spec.devices.constraints[0].requests[1]: Invalid value: \"a/x\": must be the name of a \
                 request in the claim or the name of a request and a subrequest separated by '/'",
                    "spec.devices.constraints[0].requests[2]: Invalid value: \"a/b/c\": must be the name of a \
                 request in the claim or the name of a request and a subrequest separated by '/'",
                    "spec.devices.constraints[0].requests[4]: Duplicate value: \"a\"",
                    "spec.devices.constraints[0].matchAttribute: Invalid value: \"x\": a fully qualified name \
                 must be a domain and a name separated by a slash",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}],
                            "constraints": [{"matchAttribute": "d.example.com/1"}, {"matchAttribute": "/"}],
                        },
                    },
                }),
                texts([
                    "spec.devices.constraints[0].matchAttribute: Invalid value: \"1\": a valid C identifier \
                 must start with alphabetic character or '_', followed by a string of alphanumeric \
                 characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation \
                 is '[A-Za-z_][A-Za-z0-9_]*')",
                    "spec.devices.constraints[1].matchAttribute: Invalid value: \"\": the domain must not be \
                 empty",
                    "spec.devices.constraints[1].matchAttribute: Invalid value: \"\": the name must not be \
                 empty",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "devices": {
                            "requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}],
                            "config": [{"requests": ["b"]}],
                        },
                    },
                }),
                texts([
                    "spec.devices.config[0].requests[0]: Invalid value: \"b\": must be the name of a request \
                 in the claim or the name of a request and a subrequest separated by '/'",
                    "spec.devices.config[0].opaque: Required value",
                ]),
            ),
        ],
    );
}

#[test]
fn the_spec_of_a_claim_is_immutable_and_its_status_a_subresource() {
    assert_eq!(
        write_subresource(
            "ResourceClaim",
            "status",
            json!({"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}}}),
            json!({
                "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}},
                "status": {
                    "allocation": {
                        "devices": {
                            "results": [
                                {"request": "a", "driver": "d.example.com", "pool": "p", "device": "x"},
                            ],
                        },
                    },
                    "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
                    "devices": [{"driver": "d.example.com", "pool": "p", "device": "x"}],
                },
            })
        ),
        Ok(json!({
            "metadata": {},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "a",
                            "exactly": {
                                "deviceClassName": "c", "allocationMode": "ExactCount", "count": 1,
                            },
                        },
                    ],
                },
            },
            "status": {
                "allocation": {
                    "devices": {
                        "results": [
                            {"request": "a", "driver": "d.example.com", "pool": "p", "device": "x"},
                        ],
                    },
                },
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
                "devices": [{"driver": "d.example.com", "pool": "p", "device": "x", "conditions": null}],
            },
        }))
    );
    assert_eq!(
        write_subresource(
            "ResourceClaim",
            "status",
            json!({"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}}}),
            json!({
                "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}},
                "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}, {}]},
            })
        ),
        Err(texts([
            "status.reservedFor[1].resource: Required value",
            "status.reservedFor[1].name: Required value",
            "status.reservedFor[1].uid: Required value",
            "status.reservedFor: Forbidden: may not be specified when `allocated` is not set",
        ]))
    );
    assert_eq!(
        write_subresource(
            "ResourceClaim",
            "status",
            json!({"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}}}),
            json!({
                "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c"}}]}},
                "status": {
                    "allocation": {
                        "devices": {
                            "results": [{"request": "b", "driver": "", "pool": "A b", "device": ""}],
                            "config": [
                                {"source": "", "opaque": {"driver": "d", "parameters": {}}},
                                {"source": "x"},
                            ],
                        },
                    },
                },
            })
        ),
        Err(texts([
            "status.allocation.devices.results[0].request: Invalid value: \"b\": must be the name of a \
             request in the claim or the name of a request and a subrequest separated by '/'",
            "status.allocation.devices.results[0].driver: Required value",
            "status.allocation.devices.results[0].pool: Invalid value: \"A b\": a lowercase RFC 1123 \
             subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and \
             end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            "status.allocation.devices.results[0].device: Invalid value: \"\": a lowercase RFC 1123 label \
             must consist of lower case alphanumeric characters or '-', and must start and end with an \
             alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            "status.allocation.devices.config[0].source: Required value",
            "status.allocation.devices.config[1].source: Unsupported value: \"x\": supported values: \
             \"FromClaim\", \"FromClass\"",
            "status.allocation.devices.config[1].opaque: Required value",
        ]))
    );
}
