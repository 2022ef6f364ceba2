//! The checks of the baseline level.

use std::collections::BTreeSet;

use model::Object;
use model::error::quote;
use model::object::{is_true, items, maps, number, text, texts, value};

use super::checks::{
    Pod, Violation, containers_named, has_flag, plural, quoted, security_of, setters, sorted,
};

const APP_ARMOR_ANNOTATIONS: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD_ANNOTATION: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_ANNOTATIONS: &str = "container.seccomp.security.alpha.kubernetes.io/";

const DEFAULT_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Namespaced sysctls, with the version since which they are allowed.
const SYSCTLS: [(&str, u64); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

const SE_LINUX_TYPES: [&str; 4] = ["", "container_t", "container_init_t", "container_kvm_t"];

/// The type of a profile that a security context sets.
pub(super) fn profile<'a>(security: Option<&'a Object>, field: &str) -> Option<&'a str> {
    security?.get(field)?.as_object().map(|profile| text(profile, &["type"]))
}

pub(super) fn is_confining(profile: &str) -> bool {
    matches!(profile, "RuntimeDefault" | "Localhost")
}

fn forbidden_profile<'a>(security: Option<&'a Object>, field: &str) -> Option<&'a str> {
    profile(security, field).filter(|profile| !is_confining(profile))
}

/// The containers with a profile that is not allowed, and all such profiles.
pub(super) fn forbidden_profiles<'a>(pod: &Pod<'a>, field: &str) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let containers =
        pod.containers_where(|container| forbidden_profile(security_of(container), field).is_some());
    let of_containers = pod.containers().iter().copied().map(security_of);
    let all = of_containers.chain([pod.security()]);
    (containers, sorted(all.filter_map(|security| forbidden_profile(security, field))))
}

pub(super) fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
    let field = "appArmorProfile";
    let (containers, values) = forbidden_profiles(pod, field);
    let is_allowed =
        |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotations = pod.annotations().into_iter().flatten().filter_map(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        let is_forbidden = key.starts_with(APP_ARMOR_ANNOTATIONS) && !is_allowed(value);
        is_forbidden.then(|| format!("{key}={}", quote(value)))
    });
    let annotations: BTreeSet<String> = annotations.collect();
    let is_pod = forbidden_profile(pod.security(), field).is_some();
    let mut setters: Vec<String> = setters(is_pod, &containers).into_iter().collect();
    if !annotations.is_empty() {
        setters.push(plural(annotations.len(), "annotation", "annotations").to_owned());
    }
    if setters.is_empty() {
        return None;
    }
    let count = values.len() + annotations.len();
    let all = values.iter().copied().chain(annotations.iter().map(String::as_str));
    Some(Violation {
        reason: plural(count, "forbidden AppArmor profile", "forbidden AppArmor profiles"),
        detail: format!("{} must not set AppArmor profile type to {}", setters.join(" and "), quoted(all)),
    })
}

/// The capabilities that a container adds and may not.
pub(super) fn added(container: &Object, is_allowed: fn(&str) -> bool) -> impl Iterator<Item = &str> {
    let added = texts(container, &["securityContext", "capabilities", "add"]);
    added.into_iter().filter(move |name| !is_allowed(name))
}

/// The message about the forbidden capabilities that containers add.
pub(super) fn added_capabilities(pod: &Pod<'_>, is_allowed: fn(&str) -> bool) -> Option<String> {
    let containers = pod.containers_where(|container| added(container, is_allowed).next().is_some());
    let all = sorted(pod.containers().iter().flat_map(|container| added(container, is_allowed)));
    (!containers.is_empty()).then(|| {
        let setters = containers_named(&containers);
        format!("{setters} must not include {} in securityContext.capabilities.add", quoted(all))
    })
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let detail = added_capabilities(pod, |name| DEFAULT_CAPABILITIES.contains(&name))?;
    Some(Violation { reason: "non-default capabilities", detail })
}

pub(super) fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let spec = pod.spec()?;
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| is_true(spec, &[field]));
    let shared: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    (!shared.is_empty()).then(|| Violation { reason: "host namespaces", detail: shared.join(", ") })
}

pub(super) fn host_path_volumes(pod: &Pod<'_>) -> Option<Violation> {
    let volumes = pod.volumes().filter(|volume| value(volume, &["hostPath"]).is_some_and(|v| !v.is_null()));
    let names: Vec<&str> = volumes.map(|volume| text(volume, &["name"])).collect();
    (!names.is_empty()).then(|| {
        let detail = format!("{} {}", plural(names.len(), "volume", "volumes"), quoted(names));
        Violation { reason: "hostPath volumes", detail }
    })
}

pub(super) fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let ports = |container| {
        maps(container, &["ports"]).map(|(_, port)| number(port, &["hostPort"])).filter(|port| *port != 0)
    };
    let containers = pod.containers_where(|container| ports(container).next().is_some());
    if containers.is_empty() {
        return None;
    }
    let all: BTreeSet<String> =
        pod.containers().iter().flat_map(|container| ports(container)).map(|port| port.to_string()).collect();
    let words = (plural(containers.len(), "uses", "use"), plural(all.len(), "hostPort", "hostPorts"));
    let listed = all.into_iter().collect::<Vec<_>>().join(", ");
    let detail = format!("{} {} {} {listed}", containers_named(&containers), words.0, words.1);
    Some(Violation { reason: "hostPort", detail })
}

/// The hosts that the probes and handlers of a container name.
fn hosts(container: &Object) -> impl Iterator<Item = &str> {
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| container.get(probe));
    let handlers = ["postStart", "preStop"].map(|handler| value(container, &["lifecycle", handler]));
    let all = probes.into_iter().chain(handlers).flatten().filter_map(|handler| handler.as_object());
    all.flat_map(|handler| ["httpGet", "tcpSocket"].map(|action| text(handler, &[action, "host"])))
        .filter(|host| !host.is_empty())
}

pub(super) fn hosts_of_handlers(pod: &Pod<'_>) -> Option<Violation> {
    let containers = sorted(pod.containers_where(|container| hosts(container).next().is_some()));
    if containers.is_empty() {
        return None;
    }
    let all = sorted(pod.containers().iter().flat_map(|container| hosts(container)));
    let use_or_uses = plural(containers.len(), "uses", "use");
    let containers: Vec<&str> = containers.into_iter().collect();
    let what = plural(all.len(), "probe or lifecycle host", "probe or lifecycle hosts");
    let detail = format!("{} {use_or_uses} {what} {}", containers_named(&containers), quoted(all));
    Some(Violation { reason: "probe or lifecycle host", detail })
}

pub(super) fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let containers = pod.containers_where(|container| has_flag(container, "privileged"));
    (!containers.is_empty()).then(|| Violation {
        reason: "privileged",
        detail: format!("{} must not set securityContext.privileged=true", containers_named(&containers)),
    })
}

pub(super) fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    fn other(container: &Object) -> Option<&str> {
        let mount = value(container, &["securityContext", "procMount"])?.as_str()?;
        (mount != "Default").then_some(mount)
    }
    let containers = pod.containers_where(|container| other(container).is_some());
    let all = sorted(pod.containers().iter().filter_map(|container| other(container)));
    (!containers.is_empty()).then(|| {
        let setters = containers_named(&containers);
        let detail = format!("{setters} must not set securityContext.procMount to {}", quoted(all));
        Violation { reason: "procMount", detail }
    })
}

pub(super) fn proc_mount_outside_user_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    pod.unless_in_user_namespace(proc_mount)
}

pub(super) fn se_linux(pod: &Pod<'_>) -> Option<Violation> {
    se_linux_of(pod, |kind| SE_LINUX_TYPES.contains(&kind))
}

pub(super) fn se_linux_with_engines(pod: &Pod<'_>) -> Option<Violation> {
    se_linux_of(pod, |kind| SE_LINUX_TYPES.contains(&kind) || kind == "container_engine_t")
}

fn se_linux_of(pod: &Pod<'_>, is_allowed: fn(&str) -> bool) -> Option<Violation> {
    fn options(security: Option<&Object>) -> Option<&Object> {
        security?.get("seLinuxOptions")?.as_object()
    }
    let is_bad = |options: &Object| {
        !is_allowed(text(options, &["type"]))
            || ["user", "role"].iter().any(|field| !text(options, &[field]).is_empty())
    };
    let containers = pod.containers_where(|container| options(security_of(container)).is_some_and(is_bad));
    let setters = setters(options(pod.security()).is_some_and(is_bad), &containers)?;
    let all = pod.containers().iter().copied().map(security_of).chain([pod.security()]).filter_map(options);
    let all: Vec<&Object> = all.collect();
    let kinds = sorted(all.iter().map(|options| text(options, &["type"])).filter(|kind| !is_allowed(kind)));
    let mut wrong = Vec::new();
    if !kinds.is_empty() {
        wrong.push(format!("{} {}", plural(kinds.len(), "type", "types"), quoted(kinds)));
    }
    for field in ["user", "role"] {
        if all.iter().any(|options| !text(options, &[field]).is_empty()) {
            wrong.push(format!("{field} may not be set"));
        }
    }
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {}", wrong.join("; "));
    Some(Violation { reason: "seLinuxOptions", detail })
}

pub(super) fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let annotations = pod.annotations()?;
    let is_allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let of_containers = pod.containers().iter();
    let of_containers =
        of_containers.map(|container| format!("{SECCOMP_ANNOTATIONS}{}", text(container, &["name"])));
    let keys = of_containers.chain([SECCOMP_POD_ANNOTATION.to_owned()]);
    let forbidden: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = annotations.get(&key)?.as_str()?;
            (!is_allowed(value)).then(|| format!("{key}={}", quote(value)))
        })
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    let what = plural(forbidden.len(), "annotation", "annotations");
    let listed = forbidden.into_iter().collect::<Vec<_>>().join(", ");
    Some(Violation { reason: "seccompProfile", detail: format!("forbidden {what} {listed}") })
}

pub(super) fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    let field = "seccompProfile";
    let (containers, values) = forbidden_profiles(pod, field);
    let setters = setters(forbidden_profile(pod.security(), field).is_some(), &containers)?;
    let detail = format!("{setters} must not set securityContext.seccompProfile.type to {}", quoted(values));
    Some(Violation { reason: "seccompProfile", detail })
}

pub(super) fn sysctls(pod: &Pod<'_>, minor: u64) -> Option<Violation> {
    let is_allowed = |name: &str| SYSCTLS.iter().any(|(known, since)| *known == name && *since <= minor);
    let all = items(pod.security()?, &["sysctls"]).iter().filter_map(|sysctl| sysctl.as_object());
    let forbidden: Vec<&str> =
        all.map(|sysctl| text(sysctl, &["name"])).filter(|name| !is_allowed(name)).collect();
    (!forbidden.is_empty()).then(|| Violation { reason: "forbidden sysctls", detail: forbidden.join(", ") })
}

pub(super) fn windows_host_process(pod: &Pod<'_>) -> Option<Violation> {
    let is_set = |security: &Object| is_true(security, &["windowsOptions", "hostProcess"]);
    let containers = pod.containers_where(|container| security_of(container).is_some_and(is_set));
    let setters = setters(pod.security().is_some_and(is_set), &containers)?;
    let detail = format!("{setters} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation { reason: "hostProcess", detail })
}
