//! PriorityLevelConfigurations.

use serde_json::json;

use super::*;

/// A limited level with these fields added.
fn limited(fields: Value) -> Value {
    let mut limits = json!({"limitResponse": {"type": "Reject"}});
    for (key, value) in fields.as_object().unwrap() {
        limits[key] = value.clone();
    }
    json!({"metadata": {"name": "policy-x"}, "spec": {"type": "Limited", "limited": limits}})
}

#[test]
fn a_priority_level_has_default_shares_and_queues() {
    made(
        "PriorityLevelConfiguration",
        vec![
            (
                limited(json!({})),
                json!({
                    "metadata": {"name": "policy-x"},
                    "spec": {
                        "type": "Limited",
                        "limited": {
                            "nominalConcurrencyShares": 30, "limitResponse": {"type": "Reject"},
                            "lendablePercent": 0,
                        },
                    },
                    "status": {},
                }),
            ),
            (
                limited(json!({"limitResponse": {"type": "Queue", "queuing": {}}})),
                json!({
                    "metadata": {"name": "policy-x"},
                    "spec": {
                        "type": "Limited",
                        "limited": {
                            "nominalConcurrencyShares": 30,
                            "limitResponse": {
                                "type": "Queue",
                                "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50},
                            },
                            "lendablePercent": 0,
                        },
                    },
                    "status": {},
                }),
            ),
            (
                limited(json!({
                    "limitResponse": {
                        "type": "Queue", "queuing": {"queues": 128, "handSize": 6, "queueLengthLimit": 1},
                    },
                })),
                json!({
                    "metadata": {"name": "policy-x"},
                    "spec": {
                        "type": "Limited",
                        "limited": {
                            "nominalConcurrencyShares": 30,
                            "limitResponse": {
                                "type": "Queue",
                                "queuing": {"queues": 128, "handSize": 6, "queueLengthLimit": 1},
                            },
                            "lendablePercent": 0,
                        },
                    },
                    "status": {},
                }),
            ),
            (
                limited(
                    json!({"nominalConcurrencyShares": 0, "lendablePercent": 100, "borrowingLimitPercent": 200}),
                ),
                json!({
                    "metadata": {"name": "policy-x"},
                    "spec": {
                        "type": "Limited",
                        "limited": {
                            "nominalConcurrencyShares": 0, "limitResponse": {"type": "Reject"},
                            "lendablePercent": 100, "borrowingLimitPercent": 200,
                        },
                    },
                    "status": {},
                }),
            ),
        ],
    );
}

#[test]
fn priority_levels_are_refused_for_type_shares_and_queues() {
    refused(
        "PriorityLevelConfiguration",
        vec![
            (
                json!({"metadata": {"name": "policy-x"}, "spec": {}}),
                texts(["spec.type: Unsupported value: \"\": supported values: \"Exempt\", \"Limited\""]),
            ),
            (
                json!({"metadata": {"name": "policy-x"}, "spec": {"type": "Exempt"}}),
                texts([
                    "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
                ]),
            ),
            (
                json!({
                    "metadata": {"name": "policy-x"},
                    "spec": {
                        "type": "Exempt", "limited": {"limitResponse": {"type": "Reject"}},
                        "exempt": {"nominalConcurrencyShares": -1, "lendablePercent": 101},
                    },
                }),
                texts([
                    "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
                    "spec.limited: Forbidden: must be nil if the type is not Limited",
                    "spec.exempt.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
                    "spec.exempt.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
                ]),
            ),
            (
                json!({"metadata": {"name": "policy-x"}, "spec": {"type": "Limited", "exempt": {}}}),
                texts([
                    "spec.exempt: Forbidden: must be nil if the type is Limited",
                    "spec.limited: Required value: must not be empty when type is Limited",
                ]),
            ),
            (
                limited(
                    json!({"nominalConcurrencyShares": -1, "lendablePercent": -1, "borrowingLimitPercent": -1}),
                ),
                texts([
                    "spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
                    "spec.limited.lendablePercent: Invalid value: -1: must be between 0 and 100, inclusive",
                    "spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a \
                 non-negative integer",
                ]),
            ),
            (
                limited(json!({"limitResponse": {"type": "Reject", "queuing": {}}})),
                texts([
                    "spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type \
                 is not Limited",
                ]),
            ),
            (
                limited(json!({"limitResponse": {"type": "Queue"}})),
                texts(["spec.limited.limitResponse.queuing: Required value: must not be empty if \
                 limited.limitResponse.type is Limited"]),
            ),
            (
                limited(json!({"limitResponse": {"type": "x"}})),
                texts([
                    "spec.limited.limitResponse.type: Unsupported value: \"x\": supported values: \"Queue\", \
                 \"Reject\"",
                ]),
            ),
            (
                limited(json!({
                    "limitResponse": {
                        "type": "Queue", "queuing": {"queues": -1, "handSize": -1, "queueLengthLimit": -1},
                    },
                })),
                texts([
                    "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive",
                    "spec.limited.limitResponse.queuing.queues: Invalid value: -1: must be positive",
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive",
                ]),
            ),
            (
                limited(json!({"limitResponse": {"type": "Queue", "queuing": {"queues": 10000001}}})),
                texts([
                    "spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater \
                 than 10000000",
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: 8: required entropy bits of \
                 deckSize 10000001 and handSize 8 should not be greater than 60",
                ]),
            ),
            (
                limited(json!({"limitResponse": {"type": "Queue", "queuing": {"queues": 4}}})),
                texts([
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: 8: should not be greater than \
                 queues (4)",
                ]),
            ),
            (
                limited(
                    json!({"limitResponse": {"type": "Queue", "queuing": {"queues": 10000000, "handSize": 8}}}),
                ),
                texts([
                    "spec.limited.limitResponse.queuing.handSize: Invalid value: 8: required entropy bits of \
                 deckSize 10000000 and handSize 8 should not be greater than 60",
                ]),
            ),
        ],
    );
    assert_eq!(
        update("PriorityLevelConfiguration", limited(json!({})), limited(json!({"lendablePercent": 101}))),
        Err(texts([
            "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
        ]))
    );
}
