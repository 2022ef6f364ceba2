//! Pod, and the Pod templates of other kinds.

mod annotations;
mod binding;
mod columns;
mod containers;
mod defaults;
mod env;
mod fields;
mod go;
mod handlers;
mod image;
mod mounts;
mod overlaps;
mod prepare;
mod projected;
mod resources;
mod scheduling;
mod security;
mod sources;
mod spec;
mod status;
mod update;
mod volumes;
mod warnings;

use model::Object;
use model::error::{FieldError, Path};
use model::names::dns1123_label;
use model::object::{copy, is_true, items, number, text};
use serde_json::Value;

use self::fields::object;
use crate::rules::{KindRules, SelectableField, Subresource};

pub use binding::{bind, validate_binding};
pub(in crate::rules) use defaults::default_template;
pub(in crate::rules) use resources::check_container as check_container_resources;
pub(in crate::rules) use scheduling::check_tolerations;
pub(in crate::rules) use sources::check_claim_metadata;

/// A selectable string in the spec or status of a Pod.
macro_rules! selectable {
    ($part:literal, $field:literal) => {
        SelectableField {
            path: concat!($part, ".", $field),
            value: |object| text(object, &[$part, $field]).into(),
        }
    };
}

pub(super) const RULES: KindRules = KindRules {
    kind: "Pod",
    default: defaults::default_pod,
    prepare_create: prepare::prepare_create,
    prepare_update: |new, old| copy(new, old, "status"),
    stamp: prepare::stamp,
    validate_create: update::validate_create,
    validate_update: update::validate_update,
    warnings: |new, old| if old.is_some() { Vec::new() } else { pod_warnings(new) },
    grace: Some(grace),
    subresources: &[
        Subresource { name: "status", prepare_update: status::prepare, validate_update: status::validate },
        Subresource {
            name: "ephemeralcontainers",
            prepare_update: update::keep_all_but_ephemeral,
            validate_update: update::validate_ephemeral,
        },
        Subresource {
            name: "resize",
            prepare_update: update::keep_all_but_resources,
            validate_update: update::validate_resize,
        },
        // These two are verbs in the form of subresources: they do not update the Pod by themselves.
        Subresource { name: "binding", prepare_update: |_, _| {}, validate_update: |_, _| Vec::new() },
        Subresource { name: "eviction", prepare_update: |_, _| {}, validate_update: |_, _| Vec::new() },
    ],
    counts_generations: true,
    selectable: &[
        selectable!("spec", "nodeName"),
        selectable!("spec", "restartPolicy"),
        selectable!("spec", "schedulerName"),
        selectable!("spec", "serviceAccountName"),
        SelectableField {
            path: "spec.hostNetwork",
            value: |pod| if is_true(pod, &["spec", "hostNetwork"]) { "true".into() } else { "false".into() },
        },
        selectable!("status", "phase"),
        SelectableField { path: "status.podIP", value: |pod| first_address(pod).into() },
        selectable!("status", "podIPs"),
        selectable!("status", "nominatedNodeName"),
    ],
    columns: columns::COLUMNS,
    cells: columns::cells,
    ..KindRules::PLAIN
};

/// A Pod that is not scheduled or has terminated is deleted at once.
fn grace(pod: &Object, asked: Option<i64>) -> i64 {
    let is_over = matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded");
    if is_over || text(pod, &["spec", "nodeName"]).is_empty() {
        return 0;
    }
    let seconds = asked.unwrap_or_else(|| number(pod, &["spec", "terminationGracePeriodSeconds"]));
    if seconds < 0 { 1 } else { seconds }
}

fn first_address(pod: &Object) -> &str {
    items(pod, &["status", "podIPs"])
        .first()
        .and_then(|ip| ip.get("ip"))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn pod_warnings(pod: &Object) -> Vec<String> {
    let empty = Object::new();
    let mut warnings: Vec<String> = name_warning(
        pod,
        "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended",
    )
    .into_iter()
    .collect();
    let (metadata, spec) = (object(pod, "metadata").unwrap_or(&empty), object(pod, "spec").unwrap_or(&empty));
    warnings.extend(warnings::of(metadata, spec, &Path::OBJECT));
    warnings
}

/// A warning about a name that is not a DNS label.
pub(in crate::rules) fn name_warning(object: &Object, advice: &str) -> Option<String> {
    let problems = dns1123_label(text(object, &["metadata", "name"]));
    (!problems.is_empty()).then(|| format!("metadata.name: {advice}: [{}]", problems.join(" ")))
}

/// Validates the Pod template in the field `path`.
pub(in crate::rules) fn validate_template(template: &Object, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    spec::check_template(&mut errors, template, path);
    errors
}

/// Warnings about the valid Pod template in the field `path`.
pub(in crate::rules) fn template_warnings(template: &Object, path: &Path<'_>) -> Vec<String> {
    let empty = Object::new();
    let (metadata, spec) =
        (object(template, "metadata").unwrap_or(&empty), object(template, "spec").unwrap_or(&empty));
    warnings::of(metadata, spec, path)
}

/// Names and images of the containers of a template, as tables show them.
pub(in crate::rules) fn container_cells(template: Option<&Object>) -> [Value; 2] {
    ["name", "image"].map(|field| {
        let spec = template.and_then(|template| object(template, "spec"));
        let containers = spec.into_iter().flat_map(|spec| fields::objects(spec, "containers"));
        let texts: Vec<&str> = containers.map(|(_, container)| text(container, &[field])).collect();
        texts.join(",").into()
    })
}
