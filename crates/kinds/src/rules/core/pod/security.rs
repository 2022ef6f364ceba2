//! Security contexts of Pods and containers.

use model::Object;
use model::error::{FieldError, Path};
use model::names::dns1123_subdomain;
use model::object::{is_true, items, text};
use serde_json::Value;

use super::fields::{
    Errors, all_containers, descending, invalid, object, objects, one_of, range_rule, set_text, texts, within,
};
use super::go;

const ID_MAX: i64 = i32::MAX as i64;
const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const APP_ARMOR_PROFILE_MAX: usize = 4095;
const SYSCTL_NAME_MAX: usize = 253;
const SYSCTL_RULE: &str = "must have at most 253 characters and match regex \
                           ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Validates the security context of a container.
pub fn check_container(errors: &mut Errors, context: &Object, path: &Path<'_>, host_users: bool) {
    within(errors, context, path, "runAsUser", 0, ID_MAX);
    within(errors, context, path, "runAsGroup", 0, ID_MAX);
    if let Some(mount) = set_text(context, "procMount") {
        let path = path.field("procMount");
        one_of(errors, &path, mount, &["Default", "Unmasked"]);
        if host_users && mount == "Unmasked" {
            errors.push(FieldError::invalid(path, mount, "`hostUsers` must be false to use `Unmasked`"));
        }
    }
    check_seccomp(errors, context, path);
    if context.get("allowPrivilegeEscalation") == Some(&Value::Bool(false)) {
        let mut wrong = |rule: &str| {
            let value = Value::Object(context.clone());
            let rule = format!("cannot set `allowPrivilegeEscalation` to false and {rule}");
            errors.push(go::invalid(path, Some(&value), &go::SECURITY_CONTEXT, &rule));
        };
        if is_true(context, &["privileged"]) {
            wrong("`privileged` to true");
        }
        let added = object(context, "capabilities");
        for _ in added.iter().flat_map(|added| texts(added, "add")).filter(|name| *name == "CAP_SYS_ADMIN") {
            wrong("`capabilities.Add` CAP_SYS_ADMIN");
        }
    }
    check_windows_options(errors, context, path);
    check_app_armor(errors, context, path);
}

/// Validates the security context of a Pod.
pub fn check_pod(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    let Some(context) = object(spec, "securityContext") else { return };
    let path = &path.field("securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        within(errors, context, path, field, 0, ID_MAX);
    }
    for (index, group) in items(context, &["supplementalGroups"]).iter().enumerate() {
        if group.as_i64().is_some_and(|group| !(0..=ID_MAX).contains(&group)) {
            let path = path.item("supplementalGroups", index);
            errors.push(FieldError::invalid(path, group.clone(), range_rule(0, ID_MAX)));
        }
    }
    if is_true(spec, &["shareProcessNamespace"]) && is_true(spec, &["hostPID"]) {
        let rule = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(path.field("shareProcessNamespace"), true, rule));
    }
    check_sysctls(errors, spec, context, &path.field("sysctls"));
    if let Some(policy) = set_text(context, "fsGroupChangePolicy") {
        one_of(errors, &path.field("fsGroupChangePolicy"), policy, &["Always", "OnRootMismatch"]);
    }
    check_seccomp(errors, context, path);
    check_windows_options(errors, context, path);
    check_app_armor(errors, context, path);
    if let Some(policy) = set_text(context, "supplementalGroupsPolicy") {
        one_of(errors, &path.field("supplementalGroupsPolicy"), policy, &["Merge", "Strict"]);
    }
    if let Some(policy) = set_text(context, "seLinuxChangePolicy") {
        one_of(errors, &path.field("seLinuxChangePolicy"), policy, &["Recursive"]);
    }
}

fn check_sysctls(errors: &mut Errors, spec: &Object, context: &Object, path: &Path<'_>) {
    let mut names: Vec<&str> = Vec::new();
    for (index, sysctl) in objects(context, "sysctls") {
        let path = path.at(index);
        let path = path.field("name");
        let name = text(sysctl, &["name"]);
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else if !is_sysctl(name) {
            errors.push(FieldError::invalid(path, name, SYSCTL_RULE));
        } else if names.contains(&name) {
            errors.push(FieldError::duplicate(path, name));
        }
        let dotted = name.replace('/', ".");
        let of_network = dotted.starts_with("net.");
        let of_processes =
            ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|prefix| dotted.starts_with(prefix))
                || dotted == "kernel.sem";
        if is_true(spec, &["hostNetwork"]) && of_network {
            errors.push(FieldError::invalid(path, name, "may not be specified when 'hostNetwork' is true"));
        } else if is_true(spec, &["hostIPC"]) && of_processes {
            errors.push(FieldError::invalid(path, name, "may not be specified when 'hostIPC' is true"));
        }
        names.push(name);
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        bytes.first().is_some_and(|byte| is_end(*byte))
            && bytes.last().is_some_and(|byte| is_end(*byte))
            && bytes.iter().all(|byte| is_end(*byte) || b"-_".contains(byte))
    };
    name.len() <= SYSCTL_NAME_MAX && name.split(['.', '/']).all(is_segment)
}

fn check_seccomp(errors: &mut Errors, context: &Object, path: &Path<'_>) {
    let Some(profile) = object(context, "seccompProfile") else { return };
    let path = path.field("seccompProfile");
    let local = set_text(profile, "localhostProfile");
    match text(profile, &["type"]) {
        "" => {
            let rule = "type is required when seccompProfile is set";
            errors.push(FieldError::required(path.field("type"), rule));
        }
        kind => one_of(errors, &path.field("type"), kind, &PROFILE_TYPES),
    }
    let path = path.field("localhostProfile");
    match (text(profile, &["type"]), local) {
        ("Localhost", None) => {
            errors.push(FieldError::required(path, "must be set when seccomp type is Localhost"));
        }
        ("Localhost", Some(local)) => descending(errors, &path, local),
        (_, Some(_)) => {
            let rule = "can only be set when seccomp type is Localhost";
            errors.push(go::invalid(
                &path,
                Some(&Value::Object(profile.clone())),
                &go::SECCOMP_PROFILE,
                rule,
            ));
        }
        (_, None) => {}
    }
}

fn check_app_armor(errors: &mut Errors, context: &Object, path: &Path<'_>) {
    let Some(profile) = object(context, "appArmorProfile") else { return };
    let path = path.field("appArmorProfile");
    let local_path = path.field("localhostProfile");
    let local = set_text(profile, "localhostProfile");
    match text(profile, &["type"]) {
        "Localhost" => {
            let local = local.unwrap_or_default();
            if local.trim() != local {
                errors.push(FieldError::invalid(local_path, local, "must not be padded with whitespace"));
            } else if local.is_empty() {
                let rule = "must be set when AppArmor type is Localhost";
                errors.push(FieldError::required(local_path, rule));
            }
            if local.len() > APP_ARMOR_PROFILE_MAX {
                errors.push(FieldError::too_long(local_path, APP_ARMOR_PROFILE_MAX));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            let rule = "can only be set when AppArmor type is Localhost";
            errors.extend(local.map(|local| FieldError::invalid(local_path, local, rule)));
        }
        "" => {
            let rule = "type is required when appArmorProfile is set";
            errors.push(FieldError::required(path.field("type"), rule));
        }
        kind => errors.push(FieldError::not_supported(path.field("type"), kind, &PROFILE_TYPES)),
    }
}

const SPEC_KIB_MAX: usize = 64;
const DOMAIN_MAX: usize = 256;
const USER_MAX: usize = 104;

fn check_windows_options(errors: &mut Errors, context: &Object, path: &Path<'_>) {
    let Some(options) = object(context, "windowsOptions") else { return };
    let path = path.field("windowsOptions");
    if let Some(name) = set_text(options, "gmsaCredentialSpecName") {
        invalid(errors, &path.field("gmsaCredentialSpecName"), name, dns1123_subdomain(name));
    }
    if let Some(spec) = set_text(options, "gmsaCredentialSpec") {
        let problem = match spec.len() {
            0 => Some("gmsaCredentialSpec cannot be an empty string".to_owned()),
            length if length > SPEC_KIB_MAX * 1024 => {
                Some(format!("gmsaCredentialSpec size must be under {SPEC_KIB_MAX} KiB"))
            }
            _ => None,
        };
        invalid(errors, &path.field("gmsaCredentialSpec"), spec, problem.into_iter().collect());
    }
    if let Some(name) = set_text(options, "runAsUserName") {
        let problems = user_name_problems(name).into_iter().map(|problem| format!("runAsUserName{problem}"));
        invalid(errors, &path.field("runAsUserName"), name, problems.collect());
    }
}

/// The problems of a Windows user name.
fn user_name_problems(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec![" cannot be an empty string".to_owned()];
    }
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return vec![" cannot contain control characters".to_owned()];
    }
    let (domain, user) = match name.split('\\').collect::<Vec<_>>().as_slice() {
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec![" cannot contain more than one backslash".to_owned()],
    };
    let mut problems = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_MAX) {
        problems.push(format!("'s Domain length must be under {DOMAIN_MAX} characters"));
    }
    if domain.is_some_and(|domain| !is_windows_domain(domain)) {
        problems.push("'s Domain doesn't match the NetBios nor the DNS format".to_owned());
    }
    if user.is_empty() {
        problems.push("'s User cannot be empty".to_owned());
    } else if user.len() > USER_MAX {
        problems.push(format!("'s User length must not be longer than {USER_MAX} characters"));
    }
    if !user.is_empty() && user.bytes().all(|byte| b". ".contains(&byte)) {
        problems.push("'s User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        problems.push("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]".to_owned());
    }
    problems
}

fn is_windows_domain(domain: &str) -> bool {
    let is_short = !domain.is_empty()
        && domain.chars().count() <= 15
        && !domain.starts_with('.')
        && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|']);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    is_short || domain.split('.').all(is_label)
}

/// Validates Windows host process containers.
pub fn check_host_processes(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    let asked = |of: &Object| {
        object(of, "securityContext")
            .and_then(|context| object(context, "windowsOptions"))
            .and_then(|options| options.get("hostProcess"))
            .and_then(Value::as_bool)
    };
    let pod = asked(spec);
    let (mut count, mut on_host) = (0, 0);
    for (path, container) in all_containers(spec, path) {
        count += 1;
        let own = asked(container);
        if let (Some(pod), Some(own)) = (pod, own)
            && pod != own
        {
            let rule = format!("pod hostProcess value must be identical if both are specified, was {pod}");
            errors.push(FieldError::invalid(
                path.field("securityContext.windowsOptions.hostProcess"),
                own,
                rule,
            ));
        }
        on_host += usize::from(own.or(pod).unwrap_or_default());
    }
    if on_host == 0 {
        return;
    }
    if on_host != count {
        let rule =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(FieldError::invalid(path, "", rule));
    }
    if !is_true(spec, &["hostNetwork"]) {
        let rule = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(path.field("hostNetwork"), false, rule));
    }
}

/// Validates a Pod in a user namespace.
pub fn check_host_users(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    if spec.get("hostUsers") != Some(&Value::Bool(false)) {
        return;
    }
    let rule = "when `hostUsers` is false";
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if is_true(spec, &[field]) {
            errors.push(FieldError::forbidden(path.field(shown), rule));
        }
    }
    for (path, container) in all_containers(spec, path) {
        if !items(container, &["volumeDevices"]).is_empty() {
            errors.push(FieldError::forbidden(path.field("volumeDevices"), rule));
        }
    }
}

/// Security context fields that a Windows Pod may not have.
const NOT_OF_WINDOWS: [&str; 12] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "shareProcessNamespace",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];
const NOT_OF_WINDOWS_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Validates a Pod with `os`.
pub fn check_os(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    let Some(os) = object(spec, "os") else { return };
    let os_path = path.field("os");
    match text(os, &["name"]) {
        "" => errors.push(FieldError::required(os_path.field("name"), "")),
        "linux" => {
            let pod = [(path.to_owned(), spec)].into_iter();
            for (path, of) in pod.chain(all_containers(spec, path)) {
                if object(of, "securityContext").is_some_and(|context| context.contains_key("windowsOptions"))
                {
                    let rule = "windows options cannot be set for a linux pod";
                    errors.push(FieldError::forbidden(path.field("securityContext.windowsOptions"), rule));
                }
            }
        }
        "windows" => check_windows(errors, spec, path),
        name => errors.push(FieldError::not_supported(os_path, name, &["linux", "windows"])),
    }
}

fn check_windows(errors: &mut Errors, spec: &Object, path: &Path<'_>) {
    let rule = "cannot be set for a windows pod";
    let context = object(spec, "securityContext");
    let has = |field: &str| context.is_some_and(|context| context.contains_key(field));
    for field in NOT_OF_WINDOWS {
        match field {
            "seccompProfile" => {
                for (field, is_set) in [
                    ("hostUsers", spec.contains_key("hostUsers")),
                    ("hostPID", is_true(spec, &["hostPID"])),
                    ("hostIPC", is_true(spec, &["hostIPC"])),
                ] {
                    if is_set {
                        errors.push(FieldError::forbidden(path.field(field), rule));
                    }
                }
                if has(field) {
                    errors.push(FieldError::forbidden(path.field("securityContext").field(field), rule));
                }
            }
            "shareProcessNamespace" if spec.contains_key(field) => {
                errors.push(FieldError::forbidden(path.field(field), rule));
            }
            field if has(field) => {
                errors.push(FieldError::forbidden(path.field("securityContext").field(field), rule));
            }
            _ => {}
        }
    }
    for (path, container) in all_containers(spec, path) {
        let Some(context) = object(container, "securityContext") else { continue };
        for field in NOT_OF_WINDOWS_CONTAINERS.iter().filter(|field| context.contains_key(**field)) {
            errors.push(FieldError::forbidden(path.field("securityContext").field(field), rule));
        }
    }
}
