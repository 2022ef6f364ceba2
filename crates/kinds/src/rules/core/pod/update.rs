//! Creates and updates of Pods, ephemeral containers and resizes.

use model::Object;
use model::error::{FieldError, Path, quote};
use model::object::{copy, entries, items, number, text};
use serde_json::Value;

use super::annotations::{self, APP_ARMOR, MIRROR};
use super::containers::check_image_spaces;
use super::fields::{Errors, object, objects, set_number};
use super::resources::quality_of_service;
use super::scheduling::check_tolerations;
use super::{go, spec, volumes};

const CHANGEABLE: &str = "pod updates may not change fields other than \
                          `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                          `spec.tolerations` (only additions to existing tolerations),\
                          `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

fn map_or<'a>(pod: &'a Object, field: &str, empty: &'a Object) -> &'a Object {
    object(pod, field).unwrap_or(empty)
}

/// Validates a new Pod.
pub fn validate_create(pod: &Object) -> Errors {
    let (mut errors, empty) = (Errors::new(), Object::new());
    let (metadata, spec) = (map_or(pod, "metadata", &empty), map_or(pod, "spec", &empty));
    check_whole(&mut errors, pod);
    if !items(spec, &["ephemeralContainers"]).is_empty() {
        errors.push(FieldError::forbidden("spec.ephemeralContainers", "cannot be set on create"));
    }
    if !text(spec, &["nodeName"]).is_empty() && !items(spec, &["schedulingGates"]).is_empty() {
        let rule = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden("spec.nodeName", rule));
    }
    annotations::check_agreement(&mut errors, metadata, spec, &Path::SPEC);
    errors
}

/// Validates a Pod on create and update.
fn check_whole(errors: &mut Errors, pod: &Object) {
    let empty = Object::new();
    let (metadata, spec) = (map_or(pod, "metadata", &empty), map_or(pod, "spec", &empty));
    annotations::check_known(errors, metadata, spec, &Path::root("metadata.annotations"));
    spec::check(errors, spec, &Path::SPEC, Some(metadata));
    volumes::check_tokens(errors, spec);
    for field in ["containers", "initContainers"] {
        for (index, container) in objects(spec, field) {
            check_image_spaces(errors, container, &Path::SPEC.item(field, index));
        }
    }
}

/// Validates an update of a Pod.
pub fn validate_update(new: &Object, old: &Object) -> Errors {
    let (mut errors, empty) = (Errors::new(), Object::new());
    check_whole(&mut errors, new);
    check_annotations(&mut errors, new, old);
    let (new, old) = (map_or(new, "spec", &empty), map_or(old, "spec", &empty));
    for field in ["containers", "initContainers"] {
        if items(new, &[field]).len() != items(old, &[field]).len() {
            let rule = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(Path::SPEC.field(field), rule));
            return errors;
        }
        for (index, container) in objects(new, field) {
            let path = Path::SPEC.item(field, index);
            super::fields::require(&mut errors, container, &path, "image");
            check_image_spaces(&mut errors, container, &path);
        }
    }
    if check_deadline(&mut errors, new, old) {
        return errors;
    }
    check_added_tolerations(&mut errors, new, old);
    for (index, gate) in objects(new, "schedulingGates") {
        let name = text(gate, &["name"]);
        if !objects(old, "schedulingGates").any(|(_, old)| text(old, &["name"]) == name) {
            let rule = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(Path::SPEC.item("schedulingGates", index).field("name"), rule));
        }
    }
    if new != old {
        check_rest(&mut errors, new, old);
    }
    errors
}

/// `activeDeadlineSeconds` may decrease. Returns whether the validation ends here.
fn check_deadline(errors: &mut Errors, new: &Object, old: &Object) -> bool {
    let path = &Path::root("spec.activeDeadlineSeconds");
    match (set_number(new, "activeDeadlineSeconds"), set_number(old, "activeDeadlineSeconds")) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            errors.push(FieldError::invalid(path, new, super::fields::range_rule(0, i64::from(i32::MAX))));
            true
        }
        (Some(new), Some(old)) if new > old => {
            errors.push(FieldError::invalid(path, new, "must be less than or equal to previous value"));
            true
        }
        (None, Some(_)) => {
            let rule = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(path, Value::Null, rule));
            false
        }
        _ => false,
    }
}

fn check_added_tolerations(errors: &mut Errors, new: &Object, old: &Object) {
    let same = |new: &Object, old: &Object| {
        ["key", "operator", "value", "effect"].iter().all(|field| text(new, &[field]) == text(old, &[field]))
    };
    let is_kept = |old: &Object| objects(new, "tolerations").any(|(_, new)| same(new, old));
    if !objects(old, "tolerations").all(|(_, old)| is_kept(old)) {
        let rule = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden("spec.tolerations", rule));
        return;
    }
    check_tolerations(errors, new, &Path::root("spec.tolerations"));
}

/// No other field may change, except scheduling constraints of a gated Pod.
fn check_rest(errors: &mut Errors, new: &Object, old: &Object) {
    let mut new = new.clone();
    for field in ["containers", "initContainers"] {
        let containers = new.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, old) in containers.filter_map(Value::as_object_mut).zip(objects(old, field)) {
            copy(container, old.1, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        copy(&mut new, old, field);
    }
    let grace = "terminationGracePeriodSeconds";
    if number(old, &[grace]) < 0 && number(&new, &[grace]) == 1 {
        copy(&mut new, old, grace);
    }
    if !items(old, &["schedulingGates"]).is_empty() {
        let kept = entries(old, &["nodeSelector"])
            .all(|(key, value)| object(&new, "nodeSelector").and_then(|new| new.get(key)) == Some(value));
        if !kept {
            errors.push(FieldError::invalid(
                "spec.nodeSelector",
                new.get("nodeSelector").cloned().unwrap_or_default(),
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
            ));
        }
        copy(&mut new, old, "nodeSelector");
        check_node_affinity(errors, &mut new, old);
    }
    if new != *old {
        errors.push(FieldError::forbidden("spec", CHANGEABLE));
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// The node affinity of a gated Pod may become narrower.
fn check_node_affinity(errors: &mut Errors, new: &mut Object, old: &Object) {
    let nodes =
        |spec: &Object| object(spec, "affinity").and_then(|affinity| affinity.get("nodeAffinity").cloned());
    let (new_nodes, old_nodes) = (nodes(new), nodes(old));
    if new_nodes == old_nodes {
        return;
    }
    let terms = |nodes: &Option<Value>| -> Option<Vec<Value>> {
        nodes.as_ref()?.get(REQUIRED)?.get("nodeSelectorTerms")?.as_array().cloned()
    };
    let path = Path::SPEC.field("affinity.nodeAffinity");
    let path = path.field(REQUIRED);
    let path = path.field("nodeSelectorTerms");
    if let Some(old) = terms(&old_nodes) {
        let new = terms(&new_nodes).unwrap_or_default();
        if new.len() == old.len() {
            for (index, (new, old)) in new.iter().zip(&old).enumerate() {
                if !only_adds(new, old) {
                    let path = path.at(index);
                    let rule = "only additions are allowed (no mutations or deletions)";
                    errors.push(go::invalid(&path, Some(new), &go::NODE_TERM, rule));
                }
            }
        } else {
            let shown = (!new.is_empty()).then_some(Value::Array(new));
            let rule = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
            errors.push(go::invalid(&path, shown.as_ref(), &go::NODE_TERMS, rule));
        }
    }
    match (new.get_mut("affinity").and_then(Value::as_object_mut), old_nodes) {
        (None, None) => {}
        (None, Some(nodes)) => {
            new.insert("affinity".to_owned(), serde_json::json!({"nodeAffinity": nodes}));
        }
        (Some(affinity), None) if !old.contains_key("affinity") && affinity.len() == 1 => {
            new.remove("affinity");
        }
        (Some(affinity), None) => {
            affinity.remove("nodeAffinity");
        }
        (Some(affinity), Some(nodes)) => {
            affinity.insert("nodeAffinity".to_owned(), nodes);
        }
    }
}

fn only_adds(new: &Value, old: &Value) -> bool {
    let list =
        |term: &Value, field: &str| term.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let is_empty =
        |term: &Value| list(term, "matchExpressions").is_empty() && list(term, "matchFields").is_empty();
    (!is_empty(old) || is_empty(new))
        && ["matchExpressions", "matchFields"]
            .iter()
            .all(|field| list(new, field).starts_with(&list(old, field)))
}

fn check_annotations(errors: &mut Errors, new: &Object, old: &Object) {
    let empty = Object::new();
    let of = |pod| object(pod, "metadata").and_then(|metadata| object(metadata, "annotations"));
    let (added, removed) = (of(new).unwrap_or(&empty), of(old).unwrap_or(&empty));
    let kind = |key: &str| match key {
        MIRROR => Some("mirror pod annotation"),
        key if key.starts_with(APP_ARMOR) => Some("AppArmor annotations"),
        _ => None,
    };
    for (key, _) in removed.iter().filter(|(key, value)| added.get(*key) != Some(*value)) {
        errors.extend(kind(key).map(|kind| {
            FieldError::forbidden(
                Path::METADATA.field("annotations").key(key),
                format!("may not remove or update {kind}"),
            )
        }));
    }
    for (key, _) in added.iter().filter(|(key, _)| !removed.contains_key(*key)) {
        errors.extend(kind(key).map(|kind| {
            FieldError::forbidden(Path::METADATA.field("annotations").key(key), format!("may not add {kind}"))
        }));
    }
    let metadata = map_or(new, "metadata", &empty);
    annotations::check_known(
        errors,
        metadata,
        map_or(new, "spec", &empty),
        &Path::root("metadata.annotations"),
    );
}

/// Restores everything from the old Pod but the ephemeral containers.
pub fn keep_all_but_ephemeral(new: &mut Object, old: &Object) {
    let added = new.get("spec").and_then(|spec| spec.get("ephemeralContainers")).cloned();
    keep_old(new, old);
    if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) {
        match added {
            Some(added) => spec.insert("ephemeralContainers".to_owned(), added),
            None => spec.remove("ephemeralContainers"),
        };
    }
}

/// Restores spec, status, and user-written metadata from the old Pod.
fn keep_old(new: &mut Object, old: &Object) {
    copy(new, old, "spec");
    copy(new, old, "status");
    let (Some(Value::Object(new)), Some(old)) = (new.get_mut("metadata"), object(old, "metadata")) else {
        return;
    };
    for field in ["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"] {
        copy(new, old, field);
    }
}

/// Validates ephemeral containers that are added to a Pod.
pub fn validate_ephemeral(new: &Object, old: &Object) -> Errors {
    let (mut errors, empty) = (Errors::new(), Object::new());
    if is_mirror(old) {
        return vec![FieldError::forbidden("", "static pods do not support ephemeral containers")];
    }
    check_whole(&mut errors, new);
    check_annotations(&mut errors, new, old);
    let (new, old) = (map_or(new, "spec", &empty), map_or(old, "spec", &empty));
    for (_, before) in objects(old, "ephemeralContainers") {
        let name = text(before, &["name"]);
        let after =
            objects(new, "ephemeralContainers").filter(|(_, after)| text(after, &["name"]) == name).last();
        let change = match after {
            None => "removed",
            Some((_, after)) if after != before => "changed",
            Some(_) => continue,
        };
        let rule = format!("existing ephemeral containers {} may not be {change}\n", quote(name));
        errors.push(FieldError::forbidden("spec.ephemeralContainers", rule));
    }
    errors
}

fn is_mirror(pod: &Object) -> bool {
    let annotations = object(pod, "metadata").and_then(|metadata| object(metadata, "annotations"));
    annotations.is_some_and(|annotations| annotations.contains_key(MIRROR))
}

/// Restores everything from the old Pod but the resources of its containers.
pub fn keep_all_but_resources(new: &mut Object, old: &Object) {
    let empty = Object::new();
    let (new_spec, old_spec) = (map_or(new, "spec", &empty), map_or(old, "spec", &empty));
    let names = |spec, field| {
        objects(spec, field).map(|(_, container)| text(container, &["name"])).collect::<Vec<_>>()
    };
    let lists = ["containers", "initContainers"];
    if lists.iter().any(|field| items(new_spec, &[field]).len() != items(old_spec, &[field]).len()) {
        return;
    }
    let mut kept = Vec::new();
    for field in lists {
        let mut containers = new_spec.get(field).cloned().unwrap_or(Value::Null);
        if names(new_spec, field) == names(old_spec, field) {
            for (container, (_, old)) in containers
                .as_array_mut()
                .into_iter()
                .flatten()
                .filter_map(Value::as_object_mut)
                .zip(objects(old_spec, field))
            {
                let mut merged = old.clone();
                copy(&mut merged, container, "resources");
                copy(&mut merged, container, "resizePolicy");
                *container = merged;
            }
        }
        kept.push((field, containers));
    }
    keep_old(new, old);
    if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) {
        for (field, containers) in kept.into_iter().filter(|(_, containers)| !containers.is_null()) {
            spec.insert(field.to_owned(), containers);
        }
    }
}

/// Validates a resize.
pub fn validate_resize(new: &Object, old: &Object) -> Errors {
    let (mut errors, empty) = (Errors::new(), Object::new());
    check_whole(&mut errors, new);
    let (new_spec, old_spec) = (map_or(new, "spec", &empty), map_or(old, "spec", &empty));
    if is_mirror(old) {
        return vec![FieldError::forbidden("", "static pods cannot be resized")];
    }
    if text(old_spec, &["os", "name"]) == "windows" {
        return vec![FieldError::forbidden("", "windows pods cannot be resized")];
    }
    let class = text(old, &["status", "qosClass"]);
    if class != quality_of_service(new_spec) {
        let rule = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid("spec", text(new, &["status", "qosClass"]), rule));
    }
    let has_level = |spec: &Object| {
        object(spec, "resources")
            .is_some_and(|all| ["requests", "limits"].iter().any(|field| all.contains_key(*field)))
    };
    if has_level(old_spec) || has_level(new_spec) {
        let rule = "resize of pods with pod-level resources is forbidden when \
                    InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled";
        errors.push(FieldError::forbidden("", rule));
        return errors;
    }
    if check_same_containers(&mut errors, new_spec, old_spec) {
        check_resized(&mut errors, new_spec, old_spec);
    }
    errors
}

fn check_same_containers(errors: &mut Errors, new: &Object, old: &Object) -> bool {
    let before = errors.len();
    for field in ["containers", "initContainers"] {
        if items(new, &[field]).len() != items(old, &[field]).len() {
            let rule = format!("{field} may not be added or removed on resize");
            errors.push(FieldError::forbidden(Path::SPEC.field(field), rule));
            continue;
        }
        for ((index, new), (_, old)) in objects(new, field).zip(objects(old, field)) {
            if text(new, &["name"]) != text(old, &["name"]) {
                let rule = format!("{field} may not be renamed or reordered on resize");
                errors.push(FieldError::forbidden(Path::SPEC.item(field, index).field("name"), rule));
            }
        }
    }
    errors.len() == before
}

fn check_resized(errors: &mut Errors, new: &Object, old: &Object) {
    let stays = |container: &Object| text(container, &["restartPolicy"]) == "Always";
    for field in ["initContainers", "containers"] {
        for ((index, new), (_, old)) in objects(new, field).zip(objects(old, field)) {
            if field == "initContainers" && !stays(old) {
                continue;
            }
            for kind in ["requests", "limits"] {
                let has = |of: &Object, name: &str| {
                    entries(of, &["resources", kind]).any(|(other, _)| other == name)
                };
                if entries(old, &["resources", kind]).any(|(name, _)| !has(new, name)) {
                    let path = Path::SPEC.item(field, index);
                    let path = path.field("resources");
                    errors.push(FieldError::forbidden(
                        path.field(kind),
                        format!("resource {kind} cannot be removed"),
                    ));
                }
            }
        }
    }
    let rules = [
        ("containers", "only cpu and memory resources are mutable"),
        ("initContainers", "only cpu and memory resources for sidecar containers are mutable"),
    ];
    for (field, rule) in rules {
        for ((_, new), (_, old)) in objects(new, field).zip(objects(old, field)) {
            let may = field == "containers" || stays(new);
            let rule = if may { rule } else { "resources for non-sidecar init containers are immutable" };
            if (may && without_basics(new) != without_basics(old)) || (!may && new != old) {
                errors.push(FieldError::forbidden("spec", rule));
            }
        }
    }
}

/// A container without the resources that may be resized.
fn without_basics(container: &Object) -> Object {
    let mut container = container.clone();
    if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
        for kind in ["requests", "limits"] {
            if let Some(amounts) = resources.get_mut(kind).and_then(Value::as_object_mut) {
                amounts.remove("cpu");
                amounts.remove("memory");
            }
            resources.entry(kind).or_insert_with(|| serde_json::json!({}));
        }
    }
    container
}
