//! ResourceQuotas and LimitRanges.

use serde_json::json;

use super::*;

#[test]
fn a_quota_limits_known_resources_to_quantities() {
    made(
        "ResourceQuota",
        vec![
            (json!({}), json!({"metadata": {}, "spec": {}, "status": {}})),
            (
                json!({
                    "spec": {
                        "hard": {
                            "cpu": "2000m", "requests.memory": "1024Mi", "pods": 10,
                            "count/deployments.apps": "5", "requests.example.com/gpu": "2",
                        },
                        "scopes": [],
                    },
                }),
                json!({
                    "metadata": {},
                    "spec": {
                        "hard": {
                            "count/deployments.apps": "5", "cpu": "2", "pods": "10",
                            "requests.example.com/gpu": "2", "requests.memory": "1Gi",
                        },
                    },
                    "status": {},
                }),
            ),
            (
                json!({"spec": {"hard": {"pods": "1"}}, "status": {"hard": {"pods": "1"}}}),
                json!({"metadata": {}, "spec": {"hard": {"pods": "1"}}, "status": {}}),
            ),
            (
                json!({"spec": {"hard": {"hugepages-2Mi": "1"}}}),
                json!({"metadata": {}, "spec": {"hard": {"hugepages-2Mi": "1"}}, "status": {}}),
            ),
            (
                json!({"spec": {"hard": {"requests.hugepages-2Mi": "1"}}}),
                json!({"metadata": {}, "spec": {"hard": {"requests.hugepages-2Mi": "1"}}, "status": {}}),
            ),
        ],
    );
    refused(
        "ResourceQuota",
        vec![
            (
                json!({"spec": {"hard": {"foo": "1"}}}),
                texts([
                    "spec.hard[foo]: Invalid value: \"foo\": must be a standard resource type or fully \
                 qualified",
                    "spec.hard[foo]: Invalid value: \"foo\": must be a standard resource for quota",
                ]),
            ),
            (
                json!({"spec": {"hard": {"a b": "1"}}}),
                texts([
                    "spec.hard[a b]: Invalid value: \"a b\": name part must consist of alphanumeric \
                 characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
                 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    "spec.hard[a b]: Invalid value: \"a b\": must be a standard resource for quota",
                ]),
            ),
            (
                json!({"spec": {"hard": {"storage": "1"}}}),
                texts([
                    "spec.hard[storage]: Invalid value: \"storage\": must be a standard resource for quota",
                ]),
            ),
            (
                json!({"spec": {"hard": {"cpu": "-1"}}}),
                texts(["spec.hard[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"]),
            ),
            (
                json!({"spec": {"hard": {"pods": "1.5"}}}),
                texts(["spec.hard[pods]: Invalid value: \"1500m\": must be an integer"]),
            ),
            (
                json!({"spec": {"hard": {"example.com/gpu": "0.5"}}}),
                texts(["spec.hard[example.com/gpu]: Invalid value: \"500m\": must be an integer"]),
            ),
        ],
    );
}

#[test]
fn the_scopes_of_a_quota_apply_to_its_resources() {
    made(
        "ResourceQuota",
        vec![
            (
                json!({"spec": {"hard": {"pods": "1", "cpu": "1"}, "scopes": ["Terminating", "PriorityClass"]}}),
                json!({
                    "metadata": {},
                    "spec": {"hard": {"cpu": "1", "pods": "1"}, "scopes": ["Terminating", "PriorityClass"]},
                    "status": {},
                }),
            ),
            (
                json!({
                    "spec": {
                        "scopeSelector": {
                            "matchExpressions": [
                                {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]},
                                {"scopeName": "Terminating", "operator": "Exists"},
                            ],
                        },
                    },
                }),
                json!({
                    "metadata": {},
                    "spec": {
                        "scopeSelector": {
                            "matchExpressions": [
                                {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]},
                                {"scopeName": "Terminating", "operator": "Exists"},
                            ],
                        },
                    },
                    "status": {},
                }),
            ),
        ],
    );
    refused(
        "ResourceQuota",
        vec![
            (
                json!({"spec": {"scopes": ["Foo"]}}),
                texts(["spec.scopes: Invalid value: [\"Foo\"]: unsupported scope"]),
            ),
            (
                json!({"spec": {"hard": {"services": "1", "secrets": "1"}, "scopes": ["NotTerminating"]}}),
                texts([
                    "spec.scopes: Invalid value: [\"NotTerminating\"]: unsupported scope applied to resource",
                    "spec.scopes: Invalid value: [\"NotTerminating\"]: unsupported scope applied to resource",
                ]),
            ),
            (
                json!({"spec": {"hard": {"pods": "1"}, "scopes": ["VolumeAttributesClass"]}}),
                texts([
                    "spec.scopes: Invalid value: [\"VolumeAttributesClass\"]: unsupported scope applied to \
                 resource",
                ]),
            ),
            (
                json!({"spec": {"scopes": ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating"]}}),
                texts([
                    "spec.scopes: Invalid value: \
                 [\"BestEffort\",\"NotBestEffort\",\"Terminating\",\"NotTerminating\"]: conflicting scopes",
                    "spec.scopes: Invalid value: \
                 [\"BestEffort\",\"NotBestEffort\",\"Terminating\",\"NotTerminating\"]: conflicting scopes",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "scopeSelector": {
                            "matchExpressions": [
                                {"scopeName": "PriorityClass", "operator": "In"},
                                {"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]},
                                {"scopeName": "PriorityClass", "operator": "Foo"},
                                {"scopeName": "Foo", "operator": "Exists"},
                            ],
                        },
                    },
                }),
                texts([
                    "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value \
                 when `operator` is 'In' or 'NotIn' for scope selector",
                    "spec.scopeSelector.matchExpressions.values: Invalid value: [\"a\"]: must be no value when \
                 `operator` is 'Exist' or 'DoesNotExist' for scope selector",
                    "spec.scopeSelector.matchExpressions.operator: Invalid value: \"Foo\": not a valid \
                 selector operator",
                    "spec.scopeSelector.matchExpressions.scopeName: Invalid value: \"Foo\": unsupported scope",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "scopeSelector": {
                            "matchExpressions": [
                                {"scopeName": "BestEffort", "operator": "In", "values": ["x"]},
                                {"scopeName": "NotBestEffort", "operator": "Exists"},
                            ],
                        },
                    },
                }),
                texts([
                    "spec.scopeSelector.matchExpressions.operator: Invalid value: \"In\": must be 'Exists' \
                 when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, \
                 ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
                 ResourceQuotaScopeCrossNamespacePodAffinity",
                    "spec.scopeSelector.matchExpressions: Invalid value: null: conflicting scopes",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "scopeSelector": {
                            "matchExpressions": [
                                {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]},
                            ],
                        },
                        "hard": {"services": "1"},
                    },
                }),
                texts(["spec.scopeSelector.matchExpressions: Invalid value: \
                 {\"MatchExpressions\":[{\"ScopeName\":\"PriorityClass\",\"Operator\":\"In\",\"Values\":[\"a\"]}]}: \
                 unsupported scope applied to resource"]),
            ),
        ],
    );
}

#[test]
fn scopes_are_immutable_and_the_status_is_a_subresource() {
    assert_eq!(
        update(
            "ResourceQuota",
            json!({"spec": {"scopes": ["Terminating"]}}),
            json!({"spec": {"scopes": ["PriorityClass"]}})
        ),
        Err(texts(["spec.scopes: Invalid value: [\"PriorityClass\"]: field is immutable"]))
    );
    assert_eq!(
        update(
            "ResourceQuota",
            json!({"spec": {"hard": {"pods": "1"}}}),
            json!({"spec": {"hard": {"pods": "2"}}, "status": {"hard": {"pods": "7"}}})
        ),
        Ok(json!({"metadata": {}, "spec": {"hard": {"pods": "2"}}, "status": {}}))
    );
    assert_eq!(
        write_subresource(
            "ResourceQuota",
            "status",
            json!({"spec": {"hard": {"pods": "1"}}}),
            json!({"spec": {"hard": {"pods": "2"}}, "status": {"hard": {"pods": "7"}, "used": {"pods": "3"}}})
        ),
        Ok(json!({
            "metadata": {}, "spec": {"hard": {"pods": "1"}},
            "status": {"hard": {"pods": "7"}, "used": {"pods": "3"}},
        }))
    );
    assert_eq!(
        write_subresource(
            "ResourceQuota",
            "status",
            json!({"spec": {}}),
            json!({"status": {"hard": {"pods": "-1"}, "used": {"foo": "1"}}})
        ),
        Err(texts([
            "status.hard[pods]: Invalid value: \"-1\": must be greater than or equal to 0",
            "status.used[foo]: Invalid value: \"foo\": must be a standard resource type or fully qualified",
            "status.used[foo]: Invalid value: \"foo\": must be a standard resource for quota",
        ]))
    );
}

#[test]
fn limit_defaults_of_containers_follow_from_each_other() {
    made(
        "LimitRange",
        vec![
            (json!({}), json!({"metadata": {}, "spec": {"limits": null}})),
            (
                json!({"spec": {"limits": [{"type": "Container"}]}}),
                json!({"metadata": {}, "spec": {"limits": [{"type": "Container"}]}}),
            ),
            (
                json!({
                    "spec": {
                        "limits": [
                            {
                                "type": "Container", "max": {"cpu": "2", "memory": "1Gi"},
                                "min": {"cpu": "100m"}, "default": {"cpu": "1"},
                            },
                            {"type": "Pod", "max": {"cpu": "4"}},
                            {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
                            {"type": "example.com/x", "max": {"cpu": "1"}},
                        ],
                    },
                }),
                json!({
                    "metadata": {},
                    "spec": {
                        "limits": [
                            {
                                "type": "Container", "max": {"cpu": "2", "memory": "1Gi"},
                                "min": {"cpu": "100m"}, "default": {"cpu": "1", "memory": "1Gi"},
                                "defaultRequest": {"cpu": "1", "memory": "1Gi"},
                            },
                            {"type": "Pod", "max": {"cpu": "4"}},
                            {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
                            {"type": "example.com/x", "max": {"cpu": "1"}},
                        ],
                    },
                }),
            ),
        ],
    );
}

#[test]
fn limit_ranges_are_refused_for_types_and_names() {
    refused(
        "LimitRange",
        vec![
            (
                json!({
                    "spec": {
                        "limits": [{}, {"type": "Foo"}, {"type": "a b"}, {"type": "Pod"}, {"type": "Pod"}],
                    },
                }),
                texts([
                    "spec.limits[0].type: Invalid value: \"\": name part must be non-empty",
                    "spec.limits[0].type: Invalid value: \"\": name part must consist of alphanumeric \
                 characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
                 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    "spec.limits[1].type: Invalid value: \"Foo\": must be a standard limit type or fully \
                 qualified",
                    "spec.limits[2].type: Invalid value: \"a b\": name part must consist of alphanumeric \
                 characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
                 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    "spec.limits[4].type: Duplicate value: \"Pod\"",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "limits": [
                            {"type": "Pod", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}},
                            {"type": "PersistentVolumeClaim", "max": {"cpu": "1"}},
                        ],
                    },
                }),
                texts([
                    "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                    "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
                    "spec.limits[1].limits: Required value: either minimum or maximum storage value is \
                 required, but neither was provided",
                ]),
            ),
            (
                json!({"spec": {"limits": [{"type": "Container", "max": {"foo": "1"}}]}}),
                texts([
                    "spec.limits[0].max[foo]: Invalid value: \"foo\": must be a standard resource type or \
                 fully qualified",
                    "spec.limits[0].max[foo]: Invalid value: \"foo\": must be a standard resource for \
                 containers",
                    "spec.limits[0].default[foo]: Invalid value: \"foo\": must be a standard resource type or \
                 fully qualified",
                    "spec.limits[0].default[foo]: Invalid value: \"foo\": must be a standard resource for \
                 containers",
                    "spec.limits[0].defaultRequest[foo]: Invalid value: \"foo\": must be a standard resource \
                 type or fully qualified",
                    "spec.limits[0].defaultRequest[foo]: Invalid value: \"foo\": must be a standard resource \
                 for containers",
                ]),
            ),
            (
                json!({"spec": {"limits": [{"type": "Container", "max": {"pods": "1"}}]}}),
                texts([
                    "spec.limits[0].max[pods]: Invalid value: \"pods\": must be a standard resource for \
                 containers",
                    "spec.limits[0].default[pods]: Invalid value: \"pods\": must be a standard resource for \
                 containers",
                    "spec.limits[0].defaultRequest[pods]: Invalid value: \"pods\": must be a standard resource \
                 for containers",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "limits": [
                            {"type": "Pod", "max": {"storage": "1"}},
                            {"type": "PersistentVolumeClaim", "min": {"storage": "1", "bar": "1"}},
                        ],
                    },
                }),
                texts([
                    "spec.limits[0].max[storage]: Invalid value: \"storage\": must be a standard resource for \
                 containers",
                    "spec.limits[1].min[bar]: Invalid value: \"bar\": must be a standard resource type or \
                 fully qualified",
                ]),
            ),
        ],
    );
}

#[test]
fn the_bounds_of_a_limit_range_are_in_order() {
    refused(
        "LimitRange",
        vec![
            (
                json!({"spec": {"limits": [{"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}}),
                texts([
                    "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "limits": [
                            {
                                "type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "3"},
                                "default": {"cpu": "4"}, "defaultRequest": {"cpu": "1"},
                            },
                        ],
                    },
                }),
                texts([
                    "spec.limits[0].defaultRequest[cpu]: Invalid value: \"1\": min value 2 is greater than \
                 default request value 1",
                    "spec.limits[0].default[cpu]: Invalid value: \"3\": default value 4 is greater than max \
                 value 3",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "limits": [
                            {
                                "type": "Container", "min": {"cpu": "2"}, "default": {"cpu": "1"},
                                "defaultRequest": {"cpu": "5"}, "max": {"cpu": "4"},
                            },
                        ],
                    },
                }),
                texts([
                    "spec.limits[0].defaultRequest[cpu]: Invalid value: \"5\": default request value 5 is \
                 greater than max value 4",
                    "spec.limits[0].defaultRequest[cpu]: Invalid value: \"5\": default request value 5 is \
                 greater than default limit value 1",
                    "spec.limits[0].default[cpu]: Invalid value: \"2\": min value 2 is greater than default \
                 value 1",
                ]),
            ),
            (
                json!({"spec": {"limits": [{"type": "Pod", "maxLimitRequestRatio": {"cpu": "0.5"}}]}}),
                texts([
                    "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"500m\": ratio 500m is less \
                 than 1",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "limits": [
                            {
                                "type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "3"},
                                "maxLimitRequestRatio": {"cpu": "4"},
                            },
                        ],
                    },
                }),
                texts([
                    "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"4\": ratio 4 is greater than \
                 max/min = 3.000000",
                ]),
            ),
            (
                json!({
                    "spec": {
                        "limits": [
                            {
                                "type": "Container", "default": {"example.com/gpu": "2"},
                                "defaultRequest": {"example.com/gpu": "1"},
                            },
                        ],
                    },
                }),
                texts([
                    "spec.limits[0].defaultRequest[example.com/gpu]: Invalid value: \"1\": default value 2 \
                 must equal to defaultRequest value 1 in example.com/gpu",
                ]),
            ),
        ],
    );
    assert_eq!(
        update(
            "LimitRange",
            json!({"spec": {"limits": [{"type": "Pod"}]}}),
            json!({"spec": {"limits": [{"type": "Foo"}]}})
        ),
        Err(texts([
            "spec.limits[0].type: Invalid value: \"Foo\": must be a standard limit type or fully qualified",
        ]))
    );
}
