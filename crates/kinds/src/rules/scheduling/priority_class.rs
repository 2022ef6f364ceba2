//! PriorityClass. Two names and the highest values are reserved for the system; value and policy are immutable.

use model::Object;
use model::error::FieldError;
use model::object::{is_true, map_mut, number, set_default, text, value};

use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::immutable;
use crate::rules::{Claim, KindRules, Refusal};

const SYSTEM_PREFIX: &str = "system-";
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
const USER_VALUE_MAX: i64 = 1_000_000_000;
const POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];

pub(super) const RULES: KindRules = KindRules {
    group: "scheduling.k8s.io",
    kind: "PriorityClass",
    default: |object| set_default(object, "preemptionPolicy", POLICIES[0]),
    prepare_create: |object| {
        map_mut(object, "metadata").insert("generation".to_owned(), 1.into());
    },
    validate_create: validate,
    validate_update: |new, old| {
        let mut errors = Vec::new();
        if number(new, &["value"]) != number(old, &["value"]) {
            errors.push(FieldError::forbidden("value", "may not be changed in an update."));
        }
        errors.extend(immutable(new, old, "preemptionPolicy"));
        errors
    },
    allocate: Some(|class, _, pool| match pool.owner(Claim::DefaultPriority) {
        Some(other) if is_true(class, &["globalDefault"]) => Err(Refusal::Forbidden(format!(
            "PriorityClass {other} is already marked as default. Only one default can exist"
        ))),
        _ => Ok(()),
    }),
    claims: |class| {
        is_true(class, &["globalDefault"]).then_some(Claim::DefaultPriority).into_iter().collect()
    },
    forbids_deletion: |name| {
        let is_system = SYSTEM_CLASSES.iter().any(|(class, _)| *class == name);
        is_system.then_some("this is a system priority class and cannot be deleted")
    },
    columns: &[
        NAME,
        Column::new("Value", "integer", "The priority of pods of this class."),
        Column::new("Global-Default", "boolean", "Whether it is the default class of pods."),
        AGE,
        Column::new("PreemptionPolicy", "string", "The preemption policy of its pods."),
    ],
    cells: |object, now| {
        vec![
            name(object),
            number(object, &["value"]).into(),
            is_true(object, &["globalDefault"]).into(),
            age(object, now),
            text(object, &["preemptionPolicy"]).into(),
        ]
    },
    ..KindRules::PLAIN
};

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text(object, &["metadata", "name"]);
    if name.starts_with(SYSTEM_PREFIX) {
        errors.extend(not_a_system_class(object, name).map(|problem| {
            let rule = "priority class names with 'system-' prefix are reserved for system use only. error: ";
            FieldError::forbidden("metadata.name", format!("{rule}{problem}"))
        }));
    } else if number(object, &["value"]) > USER_VALUE_MAX {
        let problem = format!("maximum allowed value of a user defined priority is {USER_VALUE_MAX}");
        errors.push(FieldError::forbidden("value", problem));
    }
    match value(object, &["preemptionPolicy"]).and_then(serde_json::Value::as_str) {
        Some("") => errors.push(FieldError::required("preemptionPolicy", "")),
        Some(policy) if !POLICIES.contains(&policy) => {
            errors.push(FieldError::not_supported("preemptionPolicy", policy, &POLICIES));
        }
        _ => {}
    }
    errors
}

fn not_a_system_class(object: &Object, name: &str) -> Option<String> {
    let Some((_, value)) = SYSTEM_CLASSES.iter().find(|(class, _)| *class == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if number(object, &["value"]) != *value {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    is_true(object, &["globalDefault"])
        .then(|| format!("globalDefault of {name} PriorityClass must be false"))
}
