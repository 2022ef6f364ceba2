//! StatefulSet. Most of its spec is immutable.

use std::borrow::Cow;

use model::Object;
use model::error::{FieldError, Path};
use model::names::{NameRule, annotation_key, dns1123_label, label_value, qualified_name};
use model::object::{entries, items, map_mut, set_default, text, value};
use serde_json::{Value, json};

use super::deployment::ready;
use crate::rules::columns::{AGE, Column, NAME, age, name};
use crate::rules::common::keep_all_but_status;
use crate::rules::core::bad_claim_template;
use crate::rules::core::pod;
use crate::rules::go::{Fields, Go, NUMBER, OPTIONAL, TEXT};
use crate::rules::label_selector::invalid;
use crate::rules::selection::{Selection, bad_selector};
use crate::rules::workload::{
    CONTAINERS, IMAGES, bad_int_or_percent, bad_required_selector, container_cells, default_template,
    ending_template, exceeding, fewer_collisions, int_or_percent, invalid_shown, map_at, more_than_all,
    negative, optional, present, reset_status, template_warnings, unselected,
};
use crate::rules::{KindRules, Subresource};

const RETENTION: &str = "persistentVolumeClaimRetentionPolicy";
const RETENTION_POLICIES: [&str; 2] = ["Retain", "Delete"];
const ROLLING_UPDATE: Fields = &[("partition", NUMBER), ("maxUnavailable", OPTIONAL)];
const STRATEGY: Go = Go::Struct(&[("type", TEXT), ("rollingUpdate", Go::Pointer(ROLLING_UPDATE))]);

/// The mutable fields of a spec.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    RETENTION,
    "minReadySeconds",
];

pub(super) const RULES: KindRules = KindRules {
    group: "apps",
    kind: "StatefulSet",
    name: NameRule::Dns1123Label,
    default,
    prepare_create: |object| {
        reset_status(object, json!({"replicas": 0, "availableReplicas": 0}));
        drop_unavailable(object, None);
    },
    prepare_update: |new, old| {
        model::object::copy(new, old, "status");
        drop_unavailable(new, Some(old));
    },
    validate_create: |object| validate(object, true),
    validate_update: |new, old| {
        let mut errors = validate(new, false);
        if fixed(new).ne(fixed(old)) {
            let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                          'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                          'minReadySeconds' are forbidden";
            errors.push(FieldError::forbidden("spec", detail));
        }
        errors
    },
    warnings: |new, old| {
        let mut warnings = template_warnings(new, old, &["spec"]);
        if optional(new, &["spec", "revisionHistoryLimit"]).is_some_and(|limit| limit < 0) {
            warnings.push(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is \
                 recommended"
                    .to_owned(),
            );
        }
        warnings
    },
    subresources: &[Subresource {
        name: "status",
        prepare_update: keep_all_but_status,
        validate_update: validate_status,
    }],
    columns: &[NAME, Column::new("Ready", "string", "Ready and desired pods."), AGE, CONTAINERS, IMAGES],
    cells: |object, now| {
        let [containers, images] = container_cells(map_at(object, &["spec"]));
        vec![name(object), ready(object), age(object, now), containers, images]
    },
    ..KindRules::WITH_STATUS
};

fn default(object: &mut Object) {
    let spec = map_mut(object, "spec");
    default_template(spec);
    set_default(spec, "podManagementPolicy", "OrderedReady");
    let strategy = map_mut(spec, "updateStrategy");
    if text(strategy, &["type"]).is_empty() {
        strategy.insert("type".to_owned(), "RollingUpdate".into());
        map_mut(strategy, "rollingUpdate");
    }
    if text(strategy, &["type"]) == "RollingUpdate" && map_at(strategy, &["rollingUpdate"]).is_some() {
        map_mut(strategy, "rollingUpdate").entry("partition").or_insert_with(|| 0.into());
    }
    let retention = map_mut(spec, RETENTION);
    set_default(retention, "whenDeleted", RETENTION_POLICIES[0]);
    set_default(retention, "whenScaled", RETENTION_POLICIES[0]);
    spec.entry("replicas").or_insert_with(|| 1.into());
    spec.entry("revisionHistoryLimit").or_insert_with(|| 10.into());
    for claim in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(claim) = claim.as_object_mut() else { continue };
        set_default(claim, "apiVersion", "v1");
        set_default(claim, "kind", "PersistentVolumeClaim");
        set_default(map_mut(claim, "spec"), "volumeMode", "Filesystem");
        set_default(map_mut(claim, "status"), "phase", "Pending");
    }
}

/// Drops `maxUnavailable`, whose feature gate is off.
fn drop_unavailable(new: &mut Object, old: Option<&Object>) {
    const PATH: [&str; 4] = ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"];
    if map_at(new, &PATH[..3]).is_some() && old.and_then(|old| value(old, &PATH)).is_none() {
        map_mut(map_mut(map_mut(new, PATH[0]), PATH[1]), PATH[2]).remove(PATH[3]);
    }
}

/// The immutable fields of the spec.
fn fixed(object: &Object) -> impl Iterator<Item = (&String, &Value)> {
    entries(object, &["spec"]).filter(|(field, _)| !MUTABLE.contains(&field.as_str()))
}

fn validate(object: &Object, is_new: bool) -> Vec<FieldError> {
    let Some(spec) = map_at(object, &["spec"]) else { return Vec::new() };
    let mut errors: Vec<FieldError> = bad_management(spec).into_iter().collect();
    errors.extend(bad_strategy(spec));
    for field in ["whenDeleted", "whenScaled"] {
        let policy = text(spec, &[RETENTION, field]);
        if !RETENTION_POLICIES.contains(&policy) {
            let policies = Path::SPEC.field(RETENTION);
            let path = policies.field(field);
            errors.push(FieldError::not_supported(path, policy, &RETENTION_POLICIES));
        }
    }
    if is_new {
        errors.extend(bad_claims(spec));
    }
    errors.extend(negative(spec, &Path::SPEC, &["replicas", "minReadySeconds"]));
    errors.extend(
        map_at(spec, &["ordinals"])
            .map(|ordinals| negative(ordinals, &Path::root("spec.ordinals"), &["start"]))
            .unwrap_or_default(),
    );
    let service = text(spec, &["serviceName"]);
    if is_new && !service.is_empty() {
        errors.extend(invalid(&Path::root("spec.serviceName"), service, dns1123_label(service)));
    }
    errors.extend(bad_required_selector(spec, "statefulset"));
    let selector = present(spec, &["selector"]);
    match Selection::read(selector) {
        None => errors.push(bad_selector(&Path::root("spec.selector"), selector, "")),
        Some(selection) => {
            errors.extend(unselected(spec, &selection));
            errors.extend(bad_template(spec));
        }
    }
    errors.extend(ending_template(spec, "StatefulSet"));
    errors
}

fn bad_claims(spec: &Object) -> impl Iterator<Item = FieldError> {
    let claims = items(spec, &["volumeClaimTemplates"]).iter().filter_map(Value::as_object).enumerate();
    claims
        .flat_map(|(index, claim)| bad_claim_template(&Path::SPEC.item("volumeClaimTemplates", index), claim))
}

fn bad_management(spec: &Object) -> Option<FieldError> {
    const PATH: &str = "spec.podManagementPolicy";
    match text(spec, &["podManagementPolicy"]) {
        "" => Some(FieldError::required(PATH, "")),
        "OrderedReady" | "Parallel" => None,
        policy => Some(FieldError::invalid(PATH, policy, "must be 'OrderedReady' or 'Parallel'")),
    }
}

fn bad_strategy(spec: &Object) -> Vec<FieldError> {
    const PATH: &str = "spec.updateStrategy";
    let Some(strategy) = map_at(spec, &["updateStrategy"]) else { return Vec::new() };
    match (text(strategy, &["type"]), map_at(strategy, &["rollingUpdate"])) {
        ("", _) => vec![FieldError::required(PATH, "")],
        ("OnDelete", Some(_)) => {
            let shown = Go::Pointer(ROLLING_UPDATE).write(strategy.get("rollingUpdate"));
            let path = Path::SPEC.field("updateStrategy.rollingUpdate");
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            vec![invalid_shown(&path, &shown, detail)]
        }
        ("RollingUpdate", Some(rolling)) => bad_rolling_update(rolling),
        ("OnDelete" | "RollingUpdate", None) => Vec::new(),
        _ => {
            let shown = STRATEGY.write(spec.get("updateStrategy"));
            vec![invalid_shown(&Path::root(PATH), &shown, "must be 'RollingUpdate' or 'OnDelete'")]
        }
    }
}

fn bad_rolling_update(rolling: &Object) -> Vec<FieldError> {
    const PATH: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";
    let mut errors = negative(rolling, &Path::root("spec.updateStrategy.rollingUpdate"), &["partition"]);
    if let Some(unavailable) = present(rolling, &["maxUnavailable"]) {
        errors.extend(bad_int_or_percent(&Path::root(PATH), unavailable));
        if int_or_percent(Some(unavailable)) == 0 {
            errors.push(FieldError::invalid(PATH, unavailable.clone(), "cannot be 0"));
        }
        errors.extend(more_than_all(&Path::root(PATH), unavailable));
    }
    errors
}

fn bad_template(spec: &Object) -> Vec<FieldError> {
    const PATH: Path<'static> = Path::root("spec.template");
    let Some(template) = map_at(spec, &["template"]) else { return Vec::new() };
    let mut errors = pod::validate_template(&as_pods_are_made(spec, template), &PATH);
    // Kubernetes validates labels and annotations of this kind's template twice.
    let path = PATH.field("labels");
    for (key, label) in entries(template, &["metadata", "labels"]) {
        let label = label.as_str().unwrap_or_default();
        errors.extend(invalid(&path, key, qualified_name(key)));
        errors.extend(invalid(&path, label, label_value(label)));
    }
    let path = PATH.field("annotations");
    for (key, _) in entries(template, &["metadata", "annotations"]) {
        errors.extend(invalid(&path, key, annotation_key(key)));
    }
    errors
}

/// The template with the values that the controller sets: host names, and a volume per claim.
fn as_pods_are_made<'a>(spec: &Object, template: &'a Object) -> Cow<'a, Object> {
    let claims = items(spec, &["volumeClaimTemplates"]);
    let is_named = ["hostname", "subdomain"].iter().any(|field| !text(template, &["spec", field]).is_empty());
    if claims.is_empty() && !is_named {
        return Cow::Borrowed(template);
    }
    let mut template = template.clone();
    let pod = map_mut(&mut template, "spec");
    pod.remove("hostname");
    pod.remove("subdomain");
    if !claims.is_empty() {
        let name = |item: &Value, path: &str| item.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let names: Vec<String> =
            claims.iter().map(|claim| name(claim, "/metadata/name").unwrap_or_default()).collect();
        let volume = |name: &String| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        let mut volumes: Vec<Value> = names.iter().map(volume).collect();
        let own = pod.get("volumes").and_then(Value::as_array).into_iter().flatten();
        let own = own.filter(|own| name(own, "/name").is_none_or(|name| !names.contains(&name)));
        volumes.extend(own.cloned());
        pod.insert("volumes".to_owned(), volumes.into());
    }
    Cow::Owned(template)
}

fn validate_status(new: &Object, old: &Object) -> Vec<FieldError> {
    let Some(status) = map_at(new, &["status"]) else { return Vec::new() };
    let mut errors = negative(
        status,
        &Path::STATUS,
        &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
    );
    let fields = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    errors.extend(exceeding(status, &fields, "replicas", "cannot be greater than status.replicas"));
    let fields = ["availableReplicas"];
    errors.extend(exceeding(status, &fields, "readyReplicas", "cannot be greater than status.readyReplicas"));
    errors.extend(fewer_collisions(new, old));
    errors
}
