//! Containers, init containers and ephemeral containers.

use std::collections::BTreeSet;

use model::Object;
use model::address::{bad_port, bad_port_name};
use model::error::{FieldError, Path};
use model::names::dns1123_label;
use model::object::{items, number, text};
use serde_json::Value;

use super::env;
use super::fields::{Errors, invalid, object, objects, one_of, require, require_one_of, set_text, texts};
use super::handlers::{check_lifecycle, check_probes};
use super::mounts;
use super::resources;
use super::security;
use super::volumes::Volumes;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
pub const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;

/// The context of a container's validation.
pub struct Surroundings<'a> {
    /// The Pod spec.
    pub spec: &'a Object,
    /// The volumes of the Pod.
    pub volumes: &'a Volumes<'a>,
    /// The names of its resource claims.
    pub claims: &'a [&'a str],
}

impl Surroundings<'_> {
    /// The grace period of the Pod.
    fn grace(&self) -> Option<i64> {
        self.spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64)
    }

    fn uses_host_users(&self) -> bool {
        self.spec.get("hostUsers") != Some(&Value::Bool(false))
    }
}

/// Validates all containers of a Pod.
pub fn check(errors: &mut Errors, around: &Surroundings<'_>, path: &Path<'_>) {
    check_regular(errors, around, &path.field("containers"));
    check_first(errors, around, &path.field("initContainers"));
    check_later(errors, around, &path.field("ephemeralContainers"));
}

fn check_regular(errors: &mut Errors, around: &Surroundings<'_>, path: &Path<'_>) {
    if items(around.spec, &["containers"]).is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut names = BTreeSet::new();
    let grace = around.grace();
    for (index, container) in objects(around.spec, "containers") {
        let path = path.at(index);
        check_common(errors, around, container, &path);
        let name = text(container, &["name"]);
        if !names.insert(name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
        check_lifecycle(errors, container, &path, grace);
        check_probes(errors, container, &path, grace);
        check_restart(errors, container, &path);
    }
    let mut ports = BTreeSet::new();
    for (index, container) in objects(around.spec, "containers") {
        host_port_conflicts(errors, container, &path.at(index), &mut ports);
    }
}

fn check_first(errors: &mut Errors, around: &Surroundings<'_>, path: &Path<'_>) {
    if items(around.spec, &["initContainers"]).is_empty() {
        return;
    }
    let mut names: BTreeSet<&str> =
        objects(around.spec, "containers").map(|(_, container)| text(container, &["name"])).collect();
    let grace = around.grace();
    for (index, container) in objects(around.spec, "initContainers") {
        let list = path;
        let path = path.at(index);
        check_common(errors, around, container, &path);
        let policy = set_text(container, "restartPolicy");
        if policy == Some("Always") {
            if !items(container, &["restartPolicyRules"]).is_empty() {
                let rule =
                    "restartPolicyRules are not allowed for init containers with restart policy Always";
                errors.push(FieldError::forbidden(path.field("restartPolicyRules"), rule));
            }
        } else if policy.is_some() {
            check_restart(errors, container, &path);
        } else if !items(container, &["restartPolicyRules"]).is_empty() {
            errors.push(rules_without_policy(&path));
        }
        let name = text(container, &["name"]);
        if names.contains(name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        } else if !name.is_empty() {
            names.insert(name);
        }
        // Init containers run one after the other; Kubernetes reports each with the index 0.
        host_port_conflicts(errors, container, &list.at(0), &mut BTreeSet::new());
        if policy == Some("Always") {
            check_lifecycle(errors, container, &path, grace);
            check_probes(errors, container, &path, grace);
        } else {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container.contains_key(field) {
                    let rule = "may not be set for init containers without restartPolicy=Always";
                    errors.push(FieldError::forbidden(path.field(field), rule));
                }
            }
        }
    }
}

/// Fields that ephemeral containers may not have, in Kubernetes' order.
const NOT_LATER: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

fn check_later(errors: &mut Errors, around: &Surroundings<'_>, path: &Path<'_>) {
    if items(around.spec, &["ephemeralContainers"]).is_empty() {
        return;
    }
    let of = |field| objects(around.spec, field).map(|(_, container)| text(container, &["name"]));
    let others: BTreeSet<&str> = of("containers").chain(of("initContainers")).collect();
    let mut names = others.clone();
    for (index, container) in objects(around.spec, "ephemeralContainers") {
        let path = path.at(index);
        check_common(errors, around, container, &path);
        check_image_spaces(errors, container, &path);
        let name = text(container, &["name"]);
        if !names.insert(name) {
            errors.push(FieldError::duplicate(path.field("name"), name));
        }
        let target = text(container, &["targetContainerName"]);
        if !target.is_empty() && !others.contains(target) {
            errors.push(FieldError::not_found(path.field("targetContainerName"), target));
        }
        let rule = "cannot be set for an Ephemeral Container";
        for field in NOT_LATER {
            let is_set = match container.get(field) {
                Some(Value::Object(fields)) if field == "resources" => !fields.is_empty(),
                value => value.is_some(),
            };
            if is_set {
                errors.push(FieldError::forbidden(path.field(field), rule));
            }
        }
        for (at, mount) in objects(container, "volumeMounts") {
            for field in ["subPath", "subPathExpr"] {
                if !text(mount, &[field]).is_empty() {
                    errors.push(FieldError::forbidden(path.item("volumeMounts", at).field(field), rule));
                }
            }
        }
    }
}

/// Images of Pods, other than those of templates, have no surrounding spaces.
pub fn check_image_spaces(errors: &mut Errors, container: &Object, path: &Path<'_>) {
    let image = text(container, &["image"]);
    if image.trim() != image {
        let rule = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(path.field("image"), image, rule));
    }
}

fn check_common(errors: &mut Errors, around: &Surroundings<'_>, container: &Object, path: &Path<'_>) {
    match text(container, &["name"]) {
        "" => errors.push(FieldError::required(path.field("name"), "")),
        name => invalid(errors, &path.field("name"), name, dns1123_label(name)),
    }
    require(errors, container, path, "image");
    require_one_of(errors, container, path, "terminationMessagePolicy", &MESSAGE_POLICIES);
    check_ports(errors, container, &path.field("ports"));
    env::check(errors, container, path);
    mounts::check(errors, container, path, around.volumes);
    require_one_of(errors, container, path, "imagePullPolicy", &PULL_POLICIES);
    if let Some(resources) = object(container, "resources") {
        resources::check_container(errors, resources, &path.field("resources"), around.claims);
    }
    check_resize_policy(
        errors,
        container,
        &path.field("resizePolicy"),
        text(around.spec, &["restartPolicy"]),
    );
    if let Some(context) = object(container, "securityContext") {
        security::check_container(errors, context, &path.field("securityContext"), around.uses_host_users());
    }
}

fn check_ports(errors: &mut Errors, container: &Object, path: &Path<'_>) {
    let mut names = BTreeSet::new();
    for (index, port) in objects(container, "ports") {
        let path = path.at(index);
        let name = text(port, &["name"]);
        if !name.is_empty() {
            let problems = bad_port_name(&path.field("name"), name);
            if problems.is_empty() && !names.insert(name) {
                errors.push(FieldError::duplicate(path.field("name"), name));
            }
            errors.extend(problems);
        }
        match number(port, &["containerPort"]) {
            0 => errors.push(FieldError::required(path.field("containerPort"), "")),
            number => errors.extend(bad_port(&path.field("containerPort"), number)),
        }
        match number(port, &["hostPort"]) {
            0 => {}
            number => errors.extend(bad_port(&path.field("hostPort"), number)),
        }
        require_one_of(errors, port, &path, "protocol", &PROTOCOLS);
    }
}

fn host_port_conflicts(
    errors: &mut Errors,
    container: &Object,
    path: &Path<'_>,
    taken: &mut BTreeSet<String>,
) {
    for (index, port) in objects(container, "ports") {
        let number = number(port, &["hostPort"]);
        if number == 0 {
            continue;
        }
        let key = format!("{}/{}/{number}", text(port, &["protocol"]), text(port, &["hostIP"]));
        if taken.contains(&key) {
            errors.push(FieldError::duplicate(path.item("ports", index).field("hostPort"), key));
        } else {
            taken.insert(key);
        }
    }
}

fn check_resize_policy(errors: &mut Errors, container: &Object, path: &Path<'_>, pod_restart: &str) {
    let mut seen = BTreeSet::new();
    for (index, policy) in objects(container, "resizePolicy") {
        let (resource, restart) = (text(policy, &["resourceName"]), text(policy, &["restartPolicy"]));
        if !seen.insert(resource) {
            errors.push(FieldError::duplicate(path.at(index), resource));
        }
        let named: [(&str, &[&str]); 2] =
            [(resource, &["cpu", "memory"]), (restart, &["NotRequired", "RestartContainer"])];
        for (value, supported) in named {
            match value {
                "" => errors.push(FieldError::required(path, "")),
                value => one_of(errors, path, value, supported),
            }
        }
        if pod_restart == "Never" && restart != "NotRequired" {
            let rule = "must be 'NotRequired' when `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, rule));
        }
    }
}

fn rules_without_policy(path: &Path<'_>) -> FieldError {
    let rule = "must specify restartPolicy when restart rules are used";
    FieldError::required(path.field("restartPolicy"), rule)
}

/// Validates the restart policy and rules of a container.
fn check_restart(errors: &mut Errors, container: &Object, path: &Path<'_>) {
    let rules = items(container, &["restartPolicyRules"]);
    match set_text(container, "restartPolicy") {
        None if rules.is_empty() => return,
        None => errors.push(rules_without_policy(path)),
        Some(policy) => one_of(errors, &path.field("restartPolicy"), policy, &RESTART_POLICIES),
    }
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_long(path.field("restartPolicyRules"), RULES_MAX));
    }
    for (index, rule) in objects(container, "restartPolicyRules") {
        let path = path.item("restartPolicyRules", index);
        one_of(errors, &path.field("action"), text(rule, &["action"]), &["Restart"]);
        let Some(codes) = object(rule, "exitCodes") else {
            errors.push(FieldError::required(path.field("exitCodes"), "must be specified"));
            continue;
        };
        let path = path.field("exitCodes");
        one_of(errors, &path.field("operator"), text(codes, &["operator"]), &["In", "NotIn"]);
        if texts(codes, "values").count() > EXIT_CODES_MAX {
            errors.push(FieldError::too_long(path.field("values"), EXIT_CODES_MAX));
        }
    }
}
