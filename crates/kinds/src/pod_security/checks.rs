//! The checks of each level and version, and their evaluation.

use std::collections::BTreeSet;
use std::ops::Range;

use model::Object;
use model::object::{is_true, items, text, value};

use super::standard::{Level, Standard, Version};
use super::{baseline, restricted};

/// The newest version with a change of the checks.
const NEWEST: u64 = 35;

const ALWAYS: Range<u64> = 0..u64::MAX;
const NEVER: Range<u64> = 0..0;

/// The violations of a Pod; empty if it is allowed.
#[derive(Debug, Default, PartialEq)]
pub struct Violations(Vec<Violation>);

/// One check that a Pod fails.
#[derive(Debug, PartialEq)]
pub(super) struct Violation {
    /// The name of the check.
    pub reason: &'static str,
    /// The containers or fields at fault.
    pub detail: String,
}

impl Violations {
    /// Whether there are no violations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the failed checks.
    pub fn reasons(&self) -> String {
        self.0.iter().map(|violation| violation.reason).collect::<Vec<_>>().join(", ")
    }

    /// The names of the failed checks, with their details.
    pub fn details(&self) -> String {
        let shown = |violation: &Violation| format!("{} ({})", violation.reason, violation.detail);
        self.0.iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}

/// A check and its range of versions.
struct Check {
    baseline: Range<u64>,
    restricted: Range<u64>,
    judge: fn(&Pod<'_>) -> Option<Violation>,
}

const fn check(
    baseline: Range<u64>,
    restricted: Range<u64>,
    judge: fn(&Pod<'_>) -> Option<Violation>,
) -> Check {
    Check { baseline, restricted, judge }
}

const fn from(minor: u64) -> Range<u64> {
    minor..u64::MAX
}

/// Sorted as messages are. A restricted check that replaces one of the baseline overrides it.
const CHECKS: &[Check] = &[
    check(ALWAYS, ALWAYS, baseline::app_armor),
    check(ALWAYS, 0..22, baseline::capabilities),
    check(ALWAYS, ALWAYS, baseline::host_namespaces),
    check(ALWAYS, NEVER, baseline::host_path_volumes),
    check(ALWAYS, ALWAYS, baseline::host_ports),
    check(from(34), from(34), baseline::hosts_of_handlers),
    check(ALWAYS, ALWAYS, baseline::privileged),
    check(0..35, 0..35, baseline::proc_mount),
    check(from(35), NEVER, baseline::proc_mount_outside_user_namespaces),
    check(0..31, 0..31, baseline::se_linux),
    check(from(31), from(31), baseline::se_linux_with_engines),
    check(0..19, 0..19, baseline::seccomp_annotations),
    check(from(19), NEVER, baseline::seccomp),
    check(0..27, 0..27, |pod| baseline::sysctls(pod, 0)),
    check(27..29, 27..29, |pod| baseline::sysctls(pod, 27)),
    check(29..32, 29..32, |pod| baseline::sysctls(pod, 29)),
    check(from(32), from(32), |pod| baseline::sysctls(pod, 32)),
    check(ALWAYS, ALWAYS, baseline::windows_host_process),
    check(NEVER, 8..25, restricted::privilege_escalation),
    check(NEVER, from(25), |pod| pod.unless_windows(restricted::privilege_escalation)),
    check(NEVER, 22..25, restricted::capabilities),
    check(NEVER, from(25), |pod| pod.unless_windows(restricted::capabilities)),
    check(NEVER, from(35), baseline::proc_mount),
    check(NEVER, ALWAYS, restricted::volumes),
    check(NEVER, 0..35, restricted::non_root),
    check(NEVER, from(35), |pod| pod.unless_in_user_namespace(restricted::non_root)),
    check(NEVER, 23..35, restricted::root_user),
    check(NEVER, from(35), |pod| pod.unless_in_user_namespace(restricted::root_user)),
    check(NEVER, 19..25, restricted::seccomp),
    check(NEVER, from(25), |pod| pod.unless_windows(restricted::seccomp)),
];

/// The violations of a Pod or of a Pod template.
pub fn violations(standard: Standard, pod: &Object) -> Violations {
    let range = match standard.level {
        Level::Privileged => return Violations::default(),
        Level::Baseline => |check: &Check| check.baseline.clone(),
        Level::Restricted => |check: &Check| check.restricted.clone(),
    };
    let minor = match standard.version {
        Version::Minor(minor) => minor.min(NEWEST),
        Version::Latest => NEWEST,
    };
    let pod = Pod::new(pod);
    let holds = CHECKS.iter().filter(|check| range(check).contains(&minor));
    Violations(holds.filter_map(|check| (check.judge)(&pod)).collect())
}

/// A Pod with its containers collected for the checks.
pub(super) struct Pod<'a> {
    object: &'a Object,
    containers: Vec<&'a Object>,
}

impl<'a> Pod<'a> {
    fn new(object: &'a Object) -> Self {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let containers =
            lists.iter().flat_map(|list| items(object, &["spec", list])).filter_map(|c| c.as_object());
        Self { object, containers: containers.collect() }
    }

    pub fn annotations(&self) -> Option<&'a Object> {
        value(self.object, &["metadata", "annotations"])?.as_object()
    }

    pub fn spec(&self) -> Option<&'a Object> {
        self.object.get("spec")?.as_object()
    }

    /// The security context of the Pod.
    pub fn security(&self) -> Option<&'a Object> {
        value(self.object, &["spec", "securityContext"])?.as_object()
    }

    /// All containers (init, regular and ephemeral), in the order of messages.
    pub fn containers(&self) -> &[&'a Object] {
        &self.containers
    }

    pub fn volumes(&self) -> impl Iterator<Item = &'a Object> {
        items(self.object, &["spec", "volumes"]).iter().filter_map(|volume| volume.as_object())
    }

    /// The names of the containers for which `is_bad` holds.
    pub fn containers_where(&self, is_bad: impl Fn(&'a Object) -> bool) -> Vec<&'a str> {
        let containers = self.containers.iter().copied();
        containers.filter(|container| is_bad(container)).map(|container| text(container, &["name"])).collect()
    }

    fn unless_windows(&self, judge: fn(&Pod<'_>) -> Option<Violation>) -> Option<Violation> {
        if text(self.object, &["spec", "os", "name"]) == "windows" { None } else { judge(self) }
    }

    /// Skips a check for a Pod in a user namespace: its root is not the root of the host.
    pub fn unless_in_user_namespace(&self, judge: fn(&Pod<'_>) -> Option<Violation>) -> Option<Violation> {
        let host_users = value(self.object, &["spec", "hostUsers"]).and_then(serde_json::Value::as_bool);
        if host_users == Some(false) { None } else { judge(self) }
    }
}

/// The security context of a container.
pub(super) fn security_of(container: &Object) -> Option<&Object> {
    container.get("securityContext")?.as_object()
}

/// Whether a flag of the security context of a container is set.
pub(super) fn has_flag(container: &Object, flag: &str) -> bool {
    is_true(container, &["securityContext", flag])
}

/// `"a", "b"`
pub(super) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// `one` for a count of one, `more` otherwise.
pub(super) fn plural(count: usize, one: &'static str, more: &'static str) -> &'static str {
    if count == 1 { one } else { more }
}

/// `container "a"` or `containers "a", "b"`.
pub(super) fn containers_named(names: &[&str]) -> String {
    format!("{} {}", plural(names.len(), "container", "containers"), quoted(names.iter().copied()))
}

/// `pod`, `container "a"`, or both: the places that set a field.
pub(super) fn setters(is_pod: bool, containers: &[&str]) -> Option<String> {
    let mut setters = Vec::new();
    if is_pod {
        setters.push("pod".to_owned());
    }
    if !containers.is_empty() {
        setters.push(containers_named(containers));
    }
    (!setters.is_empty()).then(|| setters.join(" and "))
}

/// Texts sorted and without duplicates.
pub(super) fn sorted<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    texts.into_iter().collect()
}
