//! PersistentVolume.

mod sources;
mod spec;

use model::Object;
use model::error::{FieldError, Path};
use model::object::{copy, has, items, map_mut, set_default, text, value};
use serde_json::{Value, json};

use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::keep_all_but_status;
use crate::rules::storage::old_label;
use crate::rules::{KindRules, Subresource};

pub(in crate::rules) use spec::{Inline, bad_modes, bad_volume_spec};

/// The time of the last change of the phase.
const TRANSITION: &str = "lastPhaseTransitionTime";
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) const RULES: KindRules = KindRules {
    kind: "PersistentVolume",
    default: |object| {
        let spec = map_mut(object, "spec");
        set_default(spec, "persistentVolumeReclaimPolicy", "Retain");
        set_default(spec, "volumeMode", "Filesystem");
        sources::default(spec);
        set_default(map_mut(object, "status"), "phase", "Pending");
    },
    prepare_create: |object| {
        object.insert("status".to_owned(), json!({"phase": "Pending"}));
    },
    prepare_update: |new, old| copy(new, old, "status"),
    stamp: |new, old, writer| {
        let of = |object, field| value(object, &["status", field]);
        let was = |field| old.and_then(|old| of(old, field));
        let time = of(new, TRANSITION);
        if of(new, "phase") != was("phase") && (time.is_none() || time == was(TRANSITION)) {
            map_mut(new, "status").insert(TRANSITION.to_owned(), writer.now.into());
        }
    },
    validate_create: |object| bad_spec(object),
    validate_update,
    warnings: |object, _| warnings(object),
    subresources: &[Subresource {
        name: "status",
        prepare_update: |new, old| {
            keep_all_but_status(new, old);
            let phase = |object| text(object, &["status", "phase"]);
            if phase(new) == phase(old)
                && !has(new, &["status", TRANSITION])
                && let Some(time) = value(old, &["status", TRANSITION])
            {
                map_mut(new, "status").insert(TRANSITION.to_owned(), time.clone());
            }
        },
        validate_update: |_, _| Vec::new(),
    }],
    columns: &[
        NAME,
        Column::new("Capacity", "string", "The capacity of the volume."),
        Column::new("Access Modes", "string", "The access modes of the volume."),
        Column::new("Reclaim Policy", "string", "The action after its claim is deleted."),
        Column::new("Status", "string", "The phase of the volume."),
        Column::new("Claim", "string", "The claim that is bound to it."),
        Column::new("StorageClass", "string", "Its StorageClass."),
        Column::new("VolumeAttributesClass", "string", "Its VolumeAttributesClass."),
        Column::new("Reason", "string", "The reason of its phase."),
        AGE,
        Column::new("VolumeMode", "string", "Filesystem or block device.").wide(),
    ],
    cells,
    ..KindRules::PLAIN
};

fn bad_spec(object: &Object) -> Vec<FieldError> {
    match object.get("spec").and_then(Value::as_object) {
        Some(spec) => bad_volume_spec(&Path::SPEC, spec, Inline::No),
        None => Vec::new(),
    }
}

fn validate_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = bad_spec(new);
    let of = |object: &Object, path: &[&str]| value(object, path).cloned().unwrap_or_default();
    let source = |object: &Object| {
        let spec = object.get("spec").and_then(Value::as_object);
        sources::NAMES.map(|name| spec.and_then(|spec| spec.get(name)).cloned())
    };
    let mut with_secret = old.clone();
    // A Secret for expansion may be added later.
    let secret = ["spec", "csi", "controllerExpandSecretRef"];
    if has(old, &["spec", "csi"]) && !has(old, &secret) && has(new, &secret) {
        let csi = map_mut(map_mut(&mut with_secret, "spec"), "csi");
        csi.insert(secret[2].to_owned(), of(new, &secret));
    }
    if source(new) != source(&with_secret) {
        let problem = "spec.persistentvolumesource is immutable after creation\n";
        errors.push(FieldError::forbidden("spec.persistentvolumesource", problem));
    }
    let mode = ["spec", "volumeMode"];
    if value(new, &mode) != value(old, &mode) {
        errors.push(FieldError::invalid("volumeMode", of(new, &mode), "field is immutable"));
    }
    let affinity = ["spec", "nodeAffinity"];
    if has(old, &affinity) && value(new, &affinity) != value(old, &affinity) {
        let problem = "field is immutable, except for updating from beta label to GA";
        errors.push(FieldError::invalid("nodeAffinity", of(new, &affinity), problem));
    }
    let class = ["spec", "volumeAttributesClassName"];
    if has(old, &class) && !has(new, &class) {
        let problem = "update from non-nil value to nil is forbidden";
        errors.push(FieldError::forbidden("spec.volumeAttributesClassName", problem));
    }
    errors
}

fn warnings(object: &Object) -> Vec<String> {
    let mut warnings = Vec::new();
    for (key, advice) in [
        (CLASS_ANNOTATION, "deprecated since v1.8; use \"storageClassName\" attribute instead"),
        (
            "volume.beta.kubernetes.io/mount-options",
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ] {
        if has(object, &["metadata", "annotations", key]) {
            warnings.push(format!("metadata.annotations[{key}]: {advice}"));
        }
    }
    if text(object, &["spec", "persistentVolumeReclaimPolicy"]) == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let terms = items(object, &["spec", "nodeAffinity", "required", "nodeSelectorTerms"]).iter().enumerate();
    for (i, term) in terms.filter_map(|(i, term)| term.as_object().map(|term| (i, term))) {
        let path = Path::SPEC.item("nodeAffinity.required.nodeSelectorTerms", i);
        for (j, expression) in items(term, &["matchExpressions"]).iter().enumerate() {
            let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
            let path = path.item("matchExpressions", j);
            warnings.extend(old_label(key).map(|advice| format!("{path}.key: {key} is {advice}")));
        }
    }
    let old = sources::OLD.iter().filter(|(source, ..)| has(object, &["spec", source]));
    warnings.extend(old.map(|(_, path, advice)| format!("spec.{path}: {advice}")));
    warnings
}

/// The class of a volume or claim; the annotation takes precedence.
pub(super) fn class(object: &Object) -> &str {
    match text(object, &["metadata", "annotations", CLASS_ANNOTATION]) {
        "" => text(object, &["spec", "storageClassName"]),
        class => class,
    }
}

/// Abbreviated access modes.
pub(super) fn short_modes(modes: &[Value]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short = short.into_iter().filter(|(mode, _)| modes.iter().any(|other| other == mode));
    short.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

/// The phase, or `Terminating`.
pub(super) fn phase(object: &Object) -> &str {
    if has(object, &["metadata", "deletionTimestamp"]) {
        return "Terminating";
    }
    text(object, &["status", "phase"])
}

/// A text, or `<unset>` if it is empty.
pub(super) fn or_unset<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    value(object, path).and_then(Value::as_str).unwrap_or("<unset>")
}

fn cells(object: &Object, now: jiff::Timestamp) -> Vec<Value> {
    let claim = |field| text(object, &["spec", "claimRef", field]);
    let claim = match has(object, &["spec", "claimRef"]) {
        true => format!("{}/{}", claim("namespace"), claim("name")),
        false => String::new(),
    };
    let capacity = value(object, &["spec", "capacity", "storage"]).and_then(Value::as_str).unwrap_or("0");
    vec![
        name(object),
        capacity.into(),
        short_modes(items(object, &["spec", "accessModes"])).into(),
        text(object, &["spec", "persistentVolumeReclaimPolicy"]).into(),
        phase(object).into(),
        claim.into(),
        class(object).into(),
        or_unset(object, &["spec", "volumeAttributesClassName"]).into(),
        text(object, &["status", "reason"]).into(),
        age(object, now),
        or_unset(object, &["spec", "volumeMode"]).into(),
    ]
}
