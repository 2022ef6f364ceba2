//! APIServices.

use serde_json::json;

use super::*;

/// An APIService with these fields added to its spec.
fn service(fields: Value) -> Value {
    let mut spec =
        json!({"group": "policy.example", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1});
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": "v1.policy.example"}, "spec": spec})
}

#[test]
fn an_api_service_is_local_unless_it_names_a_service() {
    made(
        "APIService",
        vec![
            (
                service(json!({})),
                json!({
                    "metadata": {"name": "v1.policy.example"},
                    "spec": {
                        "group": "policy.example", "version": "v1", "groupPriorityMinimum": 1,
                        "versionPriority": 1,
                    },
                    "status": {
                        "conditions": [
                            {
                                "type": "Available", "status": "True",
                                "lastTransitionTime": "2026-11-16T03:36:55Z", "reason": "Local",
                                "message": "Local APIServices are always available",
                            },
                        ],
                    },
                }),
            ),
            (
                service(json!({"service": {"namespace": "n", "name": "s"}, "caBundle": "eA=="})),
                json!({
                    "metadata": {"name": "v1.policy.example"},
                    "spec": {
                        "service": {"namespace": "n", "name": "s", "port": 443}, "group": "policy.example",
                        "version": "v1", "caBundle": "eA==", "groupPriorityMinimum": 1,
                        "versionPriority": 1,
                    },
                    "status": {},
                }),
            ),
            (
                service(
                    json!({"service": {"namespace": "n", "name": "s", "port": 1}, "insecureSkipTLSVerify": true}),
                ),
                json!({
                    "metadata": {"name": "v1.policy.example"},
                    "spec": {
                        "service": {"namespace": "n", "name": "s", "port": 1}, "group": "policy.example",
                        "version": "v1", "insecureSkipTLSVerify": true, "groupPriorityMinimum": 1,
                        "versionPriority": 1,
                    },
                    "status": {},
                }),
            ),
        ],
    );
}

#[test]
fn api_services_are_refused_for_name_priority_and_trust() {
    refused(
        "APIService",
        vec![
            (
                json!({"metadata": {"name": "v1.policy.example"}, "spec": {}}),
                texts([
                    "metadata.name: Invalid value: \"v1.policy.example\": must be \
                 `spec.version+\".\"+spec.group`: \".\"",
                    "spec.group: Required value: only v1 may have an empty group and it better be legacy kube",
                    "spec.version: Invalid value: \"\": a DNS-1035 label must consist of lower case \
                 alphanumeric characters or '-', start with an alphabetic character, and end with an \
                 alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
                 '[a-z]([-a-z0-9]*[a-z0-9])?')",
                    "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
                    "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
                ]),
            ),
            (
                service(
                    json!({"group": "A b", "version": "1", "groupPriorityMinimum": 20001, "versionPriority": 1001}),
                ),
                texts([
                    "metadata.name: Invalid value: \"v1.policy.example\": must be \
                 `spec.version+\".\"+spec.group`: \"1.A b\"",
                    "spec.group: Invalid value: \"A b\": a lowercase RFC 1123 subdomain must consist of lower \
                 case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric \
                 character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                    "spec.version: Invalid value: \"1\": a DNS-1035 label must consist of lower case \
                 alphanumeric characters or '-', start with an alphabetic character, and end with an \
                 alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
                 '[a-z]([-a-z0-9]*[a-z0-9])?')",
                    "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000",
                    "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
                ]),
            ),
            (
                service(json!({"version": "v2"})),
                texts(["metadata.name: Invalid value: \"v1.policy.example\": must be \
                 `spec.version+\".\"+spec.group`: \"v2.policy.example\""]),
            ),
            (
                service(json!({"caBundle": "eA==", "insecureSkipTLSVerify": true})),
                texts([
                    "spec.caBundle: Invalid value: \"1 bytes\": local APIServices may not have a caBundle",
                    "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have \
                 insecureSkipTLSVerify",
                ]),
            ),
            (
                service(json!({"service": {"port": 0}, "caBundle": "eA==", "insecureSkipTLSVerify": true})),
                texts([
                    "spec.service.namespace: Required value",
                    "spec.service.name: Required value",
                    "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, \
                 inclusive",
                    "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
                ]),
            ),
        ],
    );
}

#[test]
fn the_status_of_an_api_service_is_a_subresource() {
    assert_eq!(
        write_subresource(
            "APIService",
            "status",
            service(json!({"service": {"namespace": "n", "name": "s"}})),
            json!({
                "metadata": {"name": "v1.policy.example"},
                "spec": {
                    "group": "policy.example", "version": "v1", "groupPriorityMinimum": 1,
                    "versionPriority": 1, "service": {"namespace": "n", "name": "s"},
                },
                "status": {"conditions": [{"type": "Available", "status": "x"}]},
            })
        ),
        Err(texts([
            "status.conditions[0].status: Unsupported value: \"x\": supported values: \"True\", \"False\", \
             \"Unknown\"",
        ]))
    );
}
