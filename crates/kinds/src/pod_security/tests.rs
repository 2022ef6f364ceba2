//! Pods against the standards, and changed labels of namespaces.

use model::Object;
use serde_json::{Value, json};

use super::namespace::labels;
use super::{
    Configuration, Exemptions, Judged, Level, NamespaceVerdict, PodRequest, Policy, Standard, Subject,
    Version, violations,
};

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap()
}

fn standard(text: &str) -> Standard {
    let (level, version) = text.split_once(':').unwrap();
    Standard { level: Level::parse(level).unwrap(), version: Version::parse(version).unwrap() }
}

fn broken(standard_text: &str, pod: &Value) -> String {
    violations(standard(standard_text), pod.as_object().unwrap()).details()
}

/// A Pod that the restricted level allows, with changes.
fn pod(changes: Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "a", "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]}});
    crate::patch::merge::apply(&mut pod, &changes).unwrap();
    pod
}

fn bare() -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}})
}

#[test]
fn violations_of_a_bare_pod_depend_on_the_version() {
    let root =
        "runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true)";
    let escalation = "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set \
                      securityContext.allowPrivilegeEscalation=false)";
    let capabilities = "unrestricted capabilities (containers \"a\", \"b\" must set \
                        securityContext.capabilities.drop=[\"ALL\"])";
    let seccomp = "seccompProfile (pod or containers \"a\", \"b\" must set \
                   securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";
    for (version, expected) in [
        ("restricted:v1.0", vec![root]),
        ("restricted:v1.8", vec![escalation, root]),
        ("restricted:v1.19", vec![escalation, root, seccomp]),
        ("restricted:v1.22", vec![escalation, capabilities, root, seccomp]),
        ("restricted:latest", vec![escalation, capabilities, root, seccomp]),
        ("restricted:v1.9000", vec![escalation, capabilities, root, seccomp]),
        ("baseline:latest", vec![]),
        ("privileged:latest", vec![]),
    ] {
        assert_eq!(broken(version, &bare()), expected.join(", "), "{version}");
    }
}

#[test]
fn windows_and_user_namespaces_relax_some_checks() {
    let mut windows = bare();
    windows["spec"]["os"] = json!({"name": "windows"});
    assert!(broken("restricted:v1.24", &windows).contains("seccompProfile"));
    assert_eq!(
        broken("restricted:v1.25", &windows),
        "runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true)"
    );
    let own_users = pod(
        json!({"spec": {"hostUsers": false, "securityContext": {"runAsUser": 0, "runAsNonRoot": false}}}),
    );
    assert_eq!(broken("restricted:v1.35", &own_users), "");
    assert_eq!(
        broken("restricted:v1.34", &own_users),
        "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), \
         runAsUser=0 (pod must not set runAsUser=0)"
    );
}

#[test]
fn each_baseline_check_has_its_message() {
    let container = |security: Value| json!([{"name": "a", "securityContext": security}]);
    let cases = [
        (
            json!({"spec": {"hostPID": true, "hostNetwork": true}}),
            "host namespaces (hostNetwork=true, hostPID=true)",
        ),
        (
            json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}),
            "hostPath volumes (volume \"v\")",
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 443}]}]}}),
            "hostPort (container \"a\" uses hostPorts 443, 80)",
        ),
        (
            json!({"spec": {"containers": container(json!({"privileged": true}))}}),
            "privileged (container \"a\" must not set securityContext.privileged=true)",
        ),
        (
            json!({"spec": {"containers": container(json!({"capabilities": {"add": ["NET_ADMIN", "CHOWN"]}}))}}),
            "non-default capabilities (container \"a\" must not include \"NET_ADMIN\" in \
             securityContext.capabilities.add)",
        ),
        (
            json!({"spec": {"containers": container(json!({"seLinuxOptions": {"type": "x", "user": "u", "role": "r"}}))}}),
            "seLinuxOptions (container \"a\" set forbidden securityContext.seLinuxOptions: type \"x\"; \
             user may not be set; role may not be set)",
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"host": "h"}}}]}}),
            "probe or lifecycle host (container \"a\" uses probe or lifecycle host \"h\")",
        ),
        (
            json!({"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/a": "unconfined"}}}),
            "forbidden AppArmor profile (annotation must not set AppArmor profile type to \
             \"container.apparmor.security.beta.kubernetes.io/a=\"unconfined\"\")",
        ),
        (
            json!({"spec": {"securityContext": {"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]}}}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            json!({"spec": {"securityContext": {"windowsOptions": {"hostProcess": true}}}}),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (
            json!({"spec": {"containers": container(json!({"procMount": "Unmasked"}))}}),
            "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            json!({"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}}),
            "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
    ];
    for (changes, expected) in cases {
        assert_eq!(broken("baseline:latest", &pod(changes)), expected);
    }
}

#[test]
fn restricted_level_allows_few_volume_types() {
    let pod = pod(json!({"spec": {"volumes": [
        {"name": "a", "nfs": {}}, {"name": "b", "hostPath": {}}, {"name": "c", "emptyDir": {}}]}}));
    assert_eq!(
        broken("restricted:latest", &pod),
        "restricted volume types (volumes \"a\", \"b\" use restricted volume types \"hostPath\", \"nfs\")"
    );
}

#[test]
fn labels_select_the_policy() {
    let labels = object(json!({
        "pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.20"}));
    let (policy, errors) = Policy::of_labels(Some(&labels), &Policy::PRIVILEGED);
    assert!(errors.is_empty());
    assert_eq!((policy.enforce, policy.warn), (standard("baseline:v1.20"), standard("baseline:v1.20")));
    let wrong = object(json!({
        "pod-security.kubernetes.io/enforce": "high", "pod-security.kubernetes.io/audit": "x",
        "pod-security.kubernetes.io/warn-version": "v1.01"}));
    let (policy, errors) = Policy::of_labels(Some(&wrong), &Policy::PRIVILEGED);
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"high\": \
             must be one of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: \"x\": \
             must be one of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"v1.01\": \
             must be \"latest\" or \"v1.x\"",
        ]
    );
    assert_eq!(policy, Policy { enforce: standard("restricted:latest"), ..Policy::PRIVILEGED });
}

fn namespace(enforce: &str) -> Object {
    object(json!({"metadata": {"name": "space", "labels": {"pod-security.kubernetes.io/enforce": enforce}}}))
}

#[test]
fn a_stricter_namespace_checks_its_existing_pods() {
    let configuration = Configuration::default();
    let judge = |new: &str, old: &str| configuration.judge_namespace(&namespace(new), Some(&namespace(old)));
    assert_eq!(judge("restricted", "baseline"), NamespaceVerdict::CheckPods(standard("restricted:latest")));
    assert_eq!(judge("baseline", "restricted"), NamespaceVerdict::Fine);
    assert_eq!(judge("privileged", "restricted"), NamespaceVerdict::Fine);
    assert!(matches!(judge("x", "restricted"), NamespaceVerdict::Invalid(_)));
    assert_eq!(judge("x", "x"), NamespaceVerdict::Fine);
    let named = |name: &str, owner: Option<&str>| {
        let mut pod = bare();
        pod["metadata"]["name"] = name.into();
        if let Some(owner) = owner {
            pod["metadata"]["ownerReferences"] = json!([{"uid": owner, "controller": true}]);
        }
        object(pod)
    };
    let pods = [named("b", Some("1")), named("a", Some("1")), object(pod(json!({})))];
    let reasons =
        "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile";
    let told = |pods: Vec<Object>| {
        let mut existing = configuration.existing_pods();
        pods.into_iter().for_each(|pod| existing.add(pod));
        existing.warnings("space", standard("restricted:latest"))
    };
    assert_eq!(
        told(pods.into()),
        [
            "existing pods in namespace \"space\" violate the new PodSecurity enforce level \"restricted:latest\""
                .to_owned(),
            format!("a (and 1 other pod): {reasons}"),
        ]
    );
    let many: Vec<Object> = (0..3001).map(|index| named(&format!("p{index}"), None)).collect();
    let told = told(many);
    assert_eq!(
        told[0],
        "new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods"
    );
    assert_eq!(told[2], format!("p0 (and 2999 other pods): {reasons}"));
}

#[test]
fn pods_are_refused_and_templates_get_warnings() {
    let configuration = Configuration::default();
    let bare = object(bare());
    let request = PodRequest { object: &bare, old: None };
    let verdict = configuration.judge_pod(labels(&namespace("restricted")), &request);
    let refusal = verdict.refusal.unwrap();
    assert!(
        refusal
            .starts_with("violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (")
    );
    assert!(verdict.warnings.is_empty());
    let unchanged = PodRequest { object: &bare, old: Some(&bare) };
    assert_eq!(configuration.judge_pod(labels(&namespace("restricted")), &unchanged).refusal, None);
    let mut debugged = bare.clone();
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "debug"}]);
    let debugging = PodRequest { object: &debugged, old: Some(&bare) };
    assert!(configuration.judge_pod(labels(&namespace("restricted")), &debugging).refusal.is_some());

    let Some(Subject::Template(way)) = Subject::of("apps", "deployments", "") else {
        panic!("has a template")
    };
    let deployment = object(json!({"spec": {"template": bare}}));
    let verdict = configuration.judge_template(labels(&namespace("restricted")), way, &deployment);
    assert_eq!(verdict.refusal, None);
    assert!(verdict.warnings[0].starts_with("would violate PodSecurity \"restricted:latest\": "));
    assert_eq!(Subject::of("apps", "deployments", "scale"), None);
    assert_eq!(Subject::of("", "pods", "status"), None);
    assert_eq!(Subject::of("", "pods", "ephemeralcontainers"), Some(Subject::Pod));
}

#[test]
fn exempt_users_namespaces_and_runtime_classes_are_not_checked() {
    let set = |name: &str| std::collections::BTreeSet::from([name.to_owned()]);
    let exemptions =
        Exemptions { users: set("root"), namespaces: set("space"), runtime_classes: set("kata") };
    let configuration = Configuration { exemptions, ..Configuration::default() };
    let exempt = |judged| match judged {
        Judged::Decided(verdict) => verdict.annotations,
        Judged::ByNamespace => Vec::new(),
    };
    assert_eq!(exempt(configuration.judge_caller("u", "space")), [("exempt", "namespace".to_owned())]);
    assert_eq!(exempt(configuration.judge_caller("root", "other")), [("exempt", "user".to_owned())]);
    assert_eq!(configuration.judge_caller("u", "other"), Judged::ByNamespace);
    let kata = object(json!({"spec": {"runtimeClassName": "kata", "hostPID": true}}));
    let request = PodRequest { object: &kata, old: None };
    let verdict = configuration.judge_pod(labels(&namespace("baseline")), &request);
    assert_eq!(verdict.annotations, [("exempt", "runtimeClass".to_owned())]);
    assert_eq!(
        configuration.judge_namespace(&namespace("restricted"), Some(&namespace("baseline"))),
        NamespaceVerdict::Ignored(
            "namespace \"space\" is exempt from Pod Security, and the policy (enforce=restricted:latest) \
             will be ignored"
                .to_owned()
        )
    );
}
