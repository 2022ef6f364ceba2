//! NetworkPolicy.

use model::Object;
use model::address::{Range, bad_port, bad_port_name, bad_range, range_warnings};
use model::error::{FieldError, Path};
use model::object::{items, items_in, map_mut, set_default, text_in, value};
use serde_json::{Value, json};

use super::GROUP;
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::unsupported;
use crate::rules::label_selector::bad_label_selector;
use crate::rules::selection::Selection;

/// The rule lists, and their fields of peers.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "NetworkPolicy",
    default,
    validate_create: |object| validate(object, &[]),
    validate_update: |new, old| validate(new, &known_ranges(old)),
    warnings: |object, _| warnings(object),
    counts_generations: true,
    columns: &[
        NAME,
        Column::new("Pod-Selector", "string", "The selector of the pods that it applies to."),
        AGE,
    ],
    cells: |object, now| {
        let pods = Selection::shown(value(object, &["spec", "podSelector"]));
        vec![name(object), pods.into(), age(object, now)]
    },
    ..KindRules::PLAIN
};

fn default(object: &mut Object) {
    let spec = map_mut(object, "spec");
    for (direction, _) in DIRECTIONS {
        for rule in spec.get_mut(direction).and_then(Value::as_array_mut).into_iter().flatten() {
            for port in rule.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Value::Object(port) = port {
                    set_default(port, "protocol", "TCP");
                }
            }
        }
    }
    if items(spec, &["policyTypes"]).is_empty() {
        let both = !items(spec, &["egress"]).is_empty();
        let types = if both { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        spec.insert("policyTypes".to_owned(), types);
    }
}

fn validate(object: &Object, known: &[Value]) -> Vec<FieldError> {
    let mut errors =
        bad_label_selector(&Path::root("spec.podSelector"), value(object, &["spec", "podSelector"]));
    for (direction, peers) in DIRECTIONS {
        for (index, rule) in items(object, &["spec", direction]).iter().enumerate() {
            let path = Path::SPEC.item(direction, index);
            for (index, port) in items_in(rule, "ports").iter().enumerate() {
                errors.extend(bad_policy_port(&path.item("ports", index), port));
            }
            for (index, peer) in items_in(rule, peers).iter().enumerate() {
                errors.extend(bad_peer(&path.item(peers, index), peer, known));
            }
        }
    }
    let types = items(object, &["spec", "policyTypes"]);
    if types.len() > 2 {
        let problem = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid("spec.policyTypes", Value::Array(types.to_vec()), problem));
        return errors;
    }
    for (index, policy) in types.iter().enumerate() {
        let path = Path::SPEC.item("policyTypes", index);
        errors.extend(unsupported(&path, policy.as_str().unwrap_or_default(), &["Ingress", "Egress"]));
    }
    errors
}

fn bad_policy_port(path: &Path<'_>, port: &Value) -> Vec<FieldError> {
    let end_path = path.field("endPort");
    let end = port.get("endPort").and_then(Value::as_i64);
    let mut errors: Vec<FieldError> =
        unsupported(&path.field("protocol"), text_in(port, "protocol"), &["TCP", "UDP", "SCTP"])
            .into_iter()
            .collect();
    match (port.get("port"), end) {
        (Some(Value::String(name)), end) => {
            errors.extend(end.map(|end| {
                FieldError::invalid(end_path, end, "may not be specified when `port` is non-numeric")
            }));
            errors.extend(bad_port_name(&path.field("port"), name));
        }
        (Some(number), end) => {
            let number = number.as_i64().unwrap_or_default();
            errors.extend(bad_port(&path.field("port"), number));
            if let Some(end) = end {
                if end < number {
                    let problem = "must be greater than or equal to `port`";
                    errors.push(FieldError::invalid(end_path, number, problem));
                }
                errors.extend(bad_port(&end_path, end));
            }
        }
        (None, Some(end)) => {
            let problem = "may not be specified when `port` is not specified";
            errors.push(FieldError::invalid(end_path, end, problem));
        }
        (None, None) => {}
    }
    errors
}

fn bad_peer(path: &Path<'_>, peer: &Value, known: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut peers = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = peer.get(field) {
            peers += 1;
            errors.extend(bad_label_selector(&path.field(field), Some(selector)));
        }
    }
    let block = peer.get("ipBlock");
    if let Some(block) = block {
        peers += 1;
        errors.extend(bad_block(&path.field("ipBlock"), block, known));
    }
    if peers == 0 {
        errors.push(FieldError::required(path, "must specify a peer"));
    } else if peers > 1 && block.is_some() {
        errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"));
    }
    errors
}

fn bad_block(path: &Path<'_>, block: &Value, known: &[Value]) -> Vec<FieldError> {
    let text = text_in(block, "cidr");
    if text.is_empty() {
        return vec![FieldError::required(path.field("cidr"), "")];
    }
    let mut errors: Vec<FieldError> = bad_range(&path.field("cidr"), text, known).into_iter().collect();
    let Some(range) = Range::parse(text) else { return errors };
    for (index, except) in items_in(block, "except").iter().enumerate() {
        let (path, text) = (path.item("except", index), except.as_str().unwrap_or_default());
        errors.extend(bad_range(&path, text, known));
        if Range::parse(text).is_some_and(|except| !range.strictly_contains(except)) {
            errors.push(FieldError::invalid(path, text, "must be a strict subset of `cidr`"));
        }
    }
    errors
}

/// The IP blocks of a policy, with their paths.
fn blocks(object: &Object) -> impl Iterator<Item = (String, &Value)> {
    DIRECTIONS.into_iter().flat_map(move |(direction, peers)| {
        let rules = items(object, &["spec", direction]).iter().enumerate();
        rules.flat_map(move |(i, rule)| {
            let peers_of = items_in(rule, peers).iter().enumerate();
            peers_of.filter_map(move |(j, peer)| {
                peer.get("ipBlock").map(|block| {
                    (Path::SPEC.item(direction, i).item(peers, j).field("ipBlock").into(), block)
                })
            })
        })
    })
}

fn known_ranges(object: &Object) -> Vec<Value> {
    let ranges = |(_, block): (String, &Value)| {
        let mut ranges = items_in(block, "except").to_vec();
        ranges.extend(block.get("cidr").cloned());
        ranges
    };
    blocks(object).flat_map(ranges).collect()
}

fn warnings(object: &Object) -> Vec<String> {
    blocks(object)
        .flat_map(|(path, block)| {
            let path = Path::root(&path);
            let mut warnings = range_warnings(&path.field("cidr"), text_in(block, "cidr"));
            for (index, except) in items_in(block, "except").iter().enumerate() {
                let path = path.item("except", index);
                warnings.extend(range_warnings(&path, except.as_str().unwrap_or_default()));
            }
            warnings
        })
        .collect()
}
