//! PriorityLevelConfiguration.

use model::Object;
use model::error::{FieldError, Path};
use model::object::{has, map_mut, number, text, value};
use serde_json::Value;

use super::{GROUP, STATUS, bootstrap};
use crate::rules::KindRules;
use crate::rules::columns::{AGE, Column, NAME, age, name};

const EXEMPT: &str = "exempt";
const TYPES: [&str; 2] = ["Exempt", "Limited"];
const RESPONSES: [&str; 2] = ["Queue", "Reject"];
const SHARES: i64 = 30;
const QUEUES_MAX: i64 = 10_000_000;
const HASH_BITS: f64 = 60.0;
/// An annotation of older versions.
const OLD_ANNOTATION: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "PriorityLevelConfiguration",
    default: |object| default_spec(map_mut(object, "spec")),
    validate_create: validate,
    validate_update: |new, _| validate(new),
    subresources: &[STATUS],
    columns: &[
        NAME,
        Column::new("Type", "string", "Limited or exempt."),
        Column::new("NominalConcurrencyShares", "string", "Its share of the concurrent requests."),
        Column::new("Queues", "string", "The number of queues."),
        Column::new("HandSize", "string", "The number of queues of a flow."),
        Column::new("QueueLengthLimit", "string", "The maximum length of a queue."),
        AGE,
    ],
    cells: |object, now| {
        let limited = |path: &[&str]| {
            let limits = value(object, &["spec", "limited"]).and_then(Value::as_object);
            limits.and_then(|limits| value(limits, path)).cloned().unwrap_or_else(|| "<none>".into())
        };
        let queuing = |field| limited(&["limitResponse", "queuing", field]);
        vec![
            name(object),
            text(object, &["spec", "type"]).into(),
            limited(&["nominalConcurrencyShares"]),
            queuing("queues"),
            queuing("handSize"),
            queuing("queueLengthLimit"),
            age(object, now),
        ]
    },
    ..KindRules::WITH_STATUS
};

fn default_spec(spec: &mut Object) {
    for (field, shares) in [("exempt", 0), ("limited", SHARES)] {
        if let Some(Value::Object(limits)) = spec.get_mut(field) {
            for (field, default) in [("nominalConcurrencyShares", shares), ("lendablePercent", 0)] {
                if !has(limits, &[field]) {
                    limits.insert(field.to_owned(), default.into());
                }
            }
        }
    }
    let response = spec.get_mut("limited").and_then(|limited| limited.get_mut("limitResponse"));
    if let Some(Value::Object(queuing)) = response.and_then(|response| response.get_mut("queuing")) {
        for (field, default) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
            if number(queuing, &[field]) == 0 {
                queuing.insert(field.to_owned(), default.into());
            }
        }
    }
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(spec) = value(object, &["spec"]).and_then(Value::as_object) else { return errors };
    if has(object, &["metadata", "annotations", OLD_ANNOTATION]) {
        let detail = format!("annotation '{OLD_ANNOTATION}' is forbidden");
        errors.push(FieldError::forbidden("metadata.annotations", detail));
    }
    let (name, kind) = (text(object, &["metadata", "name"]), text(spec, &["type"]));
    if (name == EXEMPT) != (kind == TYPES[0]) {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid("spec.type", kind, detail));
    }
    let limits = |field| value(spec, &[field]).and_then(Value::as_object);
    match (kind, limits("limited"), limits("exempt")) {
        ("Exempt", limited, exempt) => {
            let detail = "must be nil if the type is not Limited";
            errors.extend(limited.map(|_| FieldError::forbidden("spec.limited", detail)));
            errors
                .extend(exempt.into_iter().flat_map(|exempt| bad_shares(&Path::root("spec.exempt"), exempt)));
        }
        ("Limited", limited, exempt) => {
            let detail = "must be nil if the type is Limited";
            errors.extend(exempt.map(|_| FieldError::forbidden("spec.exempt", detail)));
            match limited {
                Some(limited) => errors.extend(bad_limits(&Path::root("spec.limited"), limited)),
                None => {
                    let detail = "must not be empty when type is Limited";
                    errors.push(FieldError::required("spec.limited", detail));
                }
            }
        }
        _ => errors.push(FieldError::not_supported("spec.type", kind, &TYPES)),
    }
    errors.extend(changed_mandatory(name, spec));
    errors
}

fn changed_mandatory(name: &str, spec: &Object) -> Option<FieldError> {
    let mut fixed = bootstrap::mandatory_priority_level(name)?;
    let mut found = spec.clone();
    let mut except = "";
    if name == EXEMPT {
        except = " except the 'spec.exempt' field";
        fixed.remove("exempt");
        found.remove("exempt");
    }
    (fixed != found).then(|| {
        let detail = format!("spec of '{name}'{except} must equal the fixed value");
        FieldError::invalid("spec", Value::Object(spec.clone()), detail)
    })
}

fn bad_shares(path: &Path<'_>, limits: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let shares = number(limits, &["nominalConcurrencyShares"]);
    if shares < 0 {
        let path = path.field("nominalConcurrencyShares");
        errors.push(FieldError::invalid(path, shares, "must be a non-negative integer"));
    }
    errors.extend(bad_percentage(path, limits));
    errors
}

fn bad_percentage(path: &Path<'_>, limits: &Object) -> Option<FieldError> {
    let percent = number(limits, &["lendablePercent"]);
    let detail = "must be between 0 and 100, inclusive";
    (!(0..=100).contains(&percent))
        .then(|| FieldError::invalid(path.field("lendablePercent"), percent, detail))
}

fn bad_limits(path: &Path<'_>, limits: &Object) -> Vec<FieldError> {
    let mut errors = bad_shares(path, limits);
    // The error of the percentage follows that of the response.
    let percentage = errors.pop_if(|error| error.path.ends_with("lendablePercent"));
    let response_path = path.field("limitResponse");
    let queuing_path = response_path.field("queuing");
    let queuing = value(limits, &["limitResponse", "queuing"]).and_then(Value::as_object);
    match (text(limits, &["limitResponse", "type"]), queuing) {
        ("Reject", Some(_)) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            errors.push(FieldError::forbidden(queuing_path, detail));
        }
        ("Reject", None) => {}
        ("Queue", Some(queuing)) => errors.extend(bad_queuing(&queuing_path, queuing)),
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(FieldError::required(queuing_path, detail));
        }
        (kind, _) => {
            errors.push(FieldError::not_supported(response_path.field("type"), kind, &RESPONSES));
        }
    }
    errors.extend(percentage);
    let borrowing = number(limits, &["borrowingLimitPercent"]);
    if borrowing < 0 {
        let detail = "if specified, must be a non-negative integer";
        errors.push(FieldError::invalid(path.field("borrowingLimitPercent"), borrowing, detail));
    }
    errors
}

fn bad_queuing(path: &Path<'_>, queuing: &Object) -> Vec<FieldError> {
    let read = |field: &str| number(queuing, &[field]);
    let (queues, hand) = (read("queues"), read("handSize"));
    let positive = "must be positive".to_owned();
    let length_problem = (read("queueLengthLimit") <= 0).then(|| positive.clone());
    let queues_problem = match queues {
        ..=0 => Some(positive.clone()),
        _ => (queues > QUEUES_MAX).then(|| format!("must not be greater than {QUEUES_MAX}")),
    };
    let hand_problem = match hand {
        ..=0 => Some(positive),
        _ if hand > queues => Some(format!("should not be greater than queues ({queues})")),
        _ => (entropy_bits(queues, hand) > HASH_BITS).then(|| {
            format!(
                "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
            )
        }),
    };
    let problems =
        [("queueLengthLimit", length_problem), ("queues", queues_problem), ("handSize", hand_problem)];
    let error = |(field, problem): (&str, Option<String>)| {
        Some(FieldError::invalid(path.field(field), read(field), problem?))
    };
    problems.into_iter().filter_map(error).collect()
}

/// The bits of entropy of a hand dealt from a deck.
#[expect(clippy::cast_precision_loss, reason = "both are far below what a double counts exactly")]
fn entropy_bits(deck: i64, hand: i64) -> f64 {
    ((deck as f64).log2() * hand as f64).ceil()
}
