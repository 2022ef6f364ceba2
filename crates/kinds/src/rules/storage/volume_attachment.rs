//! VolumeAttachment.

use model::Object;
use model::error::{FieldError, Path};
use model::names::dns1123_subdomain;
use model::object::{copy, entries, is_true, text, value};
use serde_json::{Value, json};

use super::GROUP;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::{invalid_for, keep_metadata};
use crate::rules::core::{Inline, bad_volume_spec};
use crate::rules::storage::bad_driver_name;
use crate::rules::{KindRules, Subresource};

const METADATA_MAX: usize = 256 << 10;
const MESSAGE_MAX: usize = 1024;
const ONE_OF: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

pub(super) const RULES: KindRules = KindRules {
    group: GROUP,
    kind: "VolumeAttachment",
    prepare_create: |object| {
        object.insert("status".to_owned(), json!({"attached": false}));
    },
    prepare_update: |new, old| copy(new, old, "status"),
    validate_create: |object| {
        let mut errors = validate(object);
        errors.extend(bad_driver_name(&Path::root("spec.attacher"), text(object, &["spec", "attacher"])));
        let volume = value(object, &["spec", "source", "persistentVolumeName"]).and_then(Value::as_str);
        if let Some(volume) = volume {
            let path = &Path::root("spec.source.persistentVolumeName");
            errors.extend(invalid_for(path, volume, dns1123_subdomain(volume)));
        }
        errors
    },
    validate_update,
    subresources: &[Subresource {
        name: "status",
        prepare_update: |new, old| {
            copy(new, old, "spec");
            keep_metadata(new, old);
        },
        validate_update,
    }],
    unconditional_update: false,
    columns: &[
        NAME,
        Column { format: "name", ..Column::new("Attacher", "string", "The driver that attaches it.") },
        Column::new("PV", "string", "The volume."),
        Column::new("Node", "string", "The node."),
        Column::new("Attached", "boolean", "Whether it is attached."),
        AGE,
    ],
    cells: |object, now| {
        vec![
            name(object),
            text(object, &["spec", "attacher"]).into(),
            text(object, &["spec", "source", "persistentVolumeName"]).into(),
            text(object, &["spec", "nodeName"]).into(),
            is_true(object, &["status", "attached"]).into(),
            age(object, now),
        ]
    },
    ..KindRules::PLAIN
};

fn validate_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = validate(new);
    if new.get("spec") != old.get("spec") {
        let (attacher, node) = (text(new, &["spec", "attacher"]), text(new, &["spec", "nodeName"]));
        let volume = value(new, &["spec", "source", "persistentVolumeName"]).cloned().unwrap_or_default();
        let shown = format!(
            "{{\"Attacher\":\"{attacher}\",\"Source\":{{\"PersistentVolumeName\":{volume},\"InlineVolumeSpec\":null}},\
             \"NodeName\":\"{node}\"}}"
        );
        errors.push(FieldError::invalid("spec", "", "field is immutable").showing(&shown));
    }
    errors
}

fn validate(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(object, &["spec", "attacher"]).is_empty() {
        errors.push(FieldError::required("spec.attacher", ""));
    }
    let source = |field| value(object, &["spec", "source", field]).filter(|value| !value.is_null());
    match (source("inlineVolumeSpec"), source("persistentVolumeName")) {
        (None, None) => errors.push(FieldError::required("spec.source", ONE_OF)),
        (Some(_), Some(_)) => errors.push(FieldError::forbidden("spec.source", ONE_OF)),
        (None, Some(volume)) if volume == "" => {
            let path = &Path::root("spec.source.persistentVolumeName");
            errors.push(FieldError::required(path, "must specify non empty persistentVolumeName"));
        }
        (None, Some(_)) => {}
        (Some(Value::Object(spec)), None) => {
            errors.extend(bad_volume_spec(&Path::root("spec.source.inlineVolumeSpec"), spec, Inline::Yes));
        }
        (Some(_), None) => {}
    }
    let node = text(object, &["spec", "nodeName"]);
    errors.extend(invalid_for(&Path::root("spec.nodeName"), node, dns1123_subdomain(node)));
    errors.extend(bad_status(object));
    errors
}

fn bad_status(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let pairs = entries(object, &["status", "attachmentMetadata"]);
    let size: usize = pairs.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > METADATA_MAX {
        errors.push(FieldError::too_long("status.attachmentMetadata", METADATA_MAX));
    }
    for field in ["attachError", "detachError"] {
        if text(object, &["status", field, "message"]).len() > MESSAGE_MAX {
            errors.push(FieldError::too_long(Path::STATUS.field(field).field("message"), METADATA_MAX));
        }
        let code = value(object, &["status", field, "errorCode"]).and_then(Value::as_i64);
        if let Some(code) = code.filter(|code| *code < 0) {
            let problem = "must be between 0 and 2147483647, inclusive";
            errors.push(FieldError::invalid(Path::STATUS.field(field).field("errorCode"), code, problem));
        }
    }
    errors
}
