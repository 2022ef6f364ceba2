//! RuntimeClasses.

use serde_json::json;

use super::*;

#[test]
fn a_runtime_class_has_handler_overhead_and_scheduling() {
    made(
        "RuntimeClass",
        vec![
            (json!({"handler": "h"}), json!({"metadata": {}, "handler": "h"})),
            (
                json!({
                    "handler": "h", "overhead": {"podFixed": {"cpu": "0.5", "memory": "1024Mi"}},
                    "scheduling": {
                        "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}],
                    },
                }),
                json!({
                    "metadata": {}, "handler": "h",
                    "overhead": {"podFixed": {"cpu": "500m", "memory": "1Gi"}},
                    "scheduling": {
                        "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}],
                    },
                }),
            ),
        ],
    );
}

#[test]
fn handler_overhead_and_scheduling_of_a_runtime_class_are_validated() {
    refused(
        "RuntimeClass",
        vec![
            (
                json!({}),
                texts([
                    "handler: Invalid value: \"\": a lowercase RFC 1123 label must consist of lower case \
                 alphanumeric characters or '-', and must start and end with an alphanumeric character \
                 (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                ]),
            ),
            (
                json!({"handler": "A.b"}),
                texts([
                    "handler: Invalid value: \"A.b\": a lowercase RFC 1123 label must consist of lower case \
                 alphanumeric characters or '-', and must start and end with an alphanumeric character \
                 (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                ]),
            ),
            (
                json!({"handler": "h", "overhead": {"podFixed": {"foo": "1"}}}),
                texts([
                    "overhead.limits[foo]: Invalid value: \"foo\": must be a standard resource type or fully \
                 qualified",
                    "overhead.limits[foo]: Invalid value: \"foo\": must be a standard resource for containers",
                ]),
            ),
            (
                json!({"handler": "h", "overhead": {"podFixed": {"cpu": "-1"}}}),
                texts(["overhead.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"]),
            ),
            (
                json!({"handler": "h", "overhead": {"podFixed": {"example.com/x": "1.5"}}}),
                texts(["overhead.limits[example.com/x]: Invalid value: \"1500m\": must be an integer"]),
            ),
            (
                json!({"handler": "h", "overhead": {"podFixed": {"hugepages-2Mi": "2Mi"}}}),
                texts(["overhead: Forbidden: HugePages require cpu or memory"]),
            ),
            (
                json!({"handler": "h", "scheduling": {"nodeSelector": {"a b": "c d"}}}),
                texts([
                    "scheduling.nodeSelector: Invalid value: \"a b\": name part must consist of alphanumeric \
                 characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
                 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    "scheduling.nodeSelector: Invalid value: \"c d\": a valid label must be an empty string or \
                 consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
                 validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
                ]),
            ),
            (
                json!({
                    "handler": "h",
                    "scheduling": {
                        "tolerations": [
                            {}, {"operator": "Foo", "key": "a"}, {"operator": "Exists", "value": "v"},
                            {"key": "a b", "value": "c d", "effect": "Foo"},
                            {"key": "a", "tolerationSeconds": 1},
                        ],
                    },
                }),
                texts([
                    "scheduling.tolerations[0].operator: Invalid value: \"\": operator must be Exists when \
                 `key` is empty, which means \"match all values and all keys\"",
                    "scheduling.tolerations[1].operator: Unsupported value: \"Foo\": supported values: \
                 \"Equal\", \"Exists\"",
                    "scheduling.tolerations[2].operator: Invalid value: \"v\": value must be empty when \
                 `operator` is 'Exists'",
                    "scheduling.tolerations[3].key: Invalid value: \"a b\": name part must consist of \
                 alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                 character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                    "scheduling.tolerations[3].operator: Invalid value: \"c d\": a valid label must be an \
                 empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and \
                 end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
                 used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
                    "scheduling.tolerations[3].effect: Unsupported value: \"Foo\": supported values: \
                 \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                    "scheduling.tolerations[4].effect: Invalid value: \"\": effect must be 'NoExecute' when \
                 `tolerationSeconds` is set",
                ]),
            ),
            (
                json!({
                    "handler": "h",
                    "scheduling": {
                        "tolerations": [
                            {"key": "a"}, {"key": "a", "tolerationSeconds": 1, "effect": "NoExecute"},
                            {"key": "a"},
                        ],
                    },
                }),
                texts(["scheduling.tolerations[2]: Duplicate value: \
                 {\"Key\":\"a\",\"Operator\":\"\",\"Value\":\"\",\"Effect\":\"\",\"TolerationSeconds\":null}"]),
            ),
        ],
    );
}

#[test]
fn the_handler_is_immutable() {
    assert_eq!(
        update("RuntimeClass", json!({"handler": "h"}), json!({"handler": "other"})),
        Err(texts(["handler: Invalid value: \"other\": field is immutable"]))
    );
}
