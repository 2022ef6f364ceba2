//! Tests of the flags and the configuration that they give.

use std::sync::LazyLock;
use std::time::SystemTime;

use process::pki::serving_pair;
use tempfile::NamedTempFile;

use super::*;
use crate::go_flags::{self, Dialect};
use crate::kube_apiserver::FLAGS;

/// A file with a key, as every server needs one.
static KEY: LazyLock<NamedTempFile> = LazyLock::new(|| {
    let file = NamedTempFile::new().expect("there is a place for temporary files");
    let pair = serving_pair("localhost", SystemTime::now()).expect("a key can be made");
    fs::write(&file, pair.key).expect("the file is ours");
    file
});

fn config(arguments: &[&str]) -> Result<Config> {
    let key = KEY.path().display();
    let usual = [
        "--etcd-servers=http://127.0.0.1:2379".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://a".to_owned(),
        format!("--service-account-key-file={key}"),
        format!("--service-account-signing-key-file={key}"),
    ];
    let arguments = usual.into_iter().chain(arguments.iter().map(|&argument| argument.to_owned()));
    Config::new(&go_flags::parse(FLAGS, Dialect::Pflag, arguments)?)
}

fn refusal(arguments: &[&str]) -> String {
    format!("{:#}", config(arguments).err().expect("it is refused"))
}

#[test]
fn nothing_at_all_is_refused_with_everything_that_is_missing() {
    let given = go_flags::parse(FLAGS, Dialect::Pflag, ["--secure-port=0".to_owned()]).unwrap();
    assert_eq!(
        Config::new(&given).err().unwrap().to_string(),
        "[--etcd-servers must be specified, --secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0, \
         service-account-issuer is a required flag, either `--service-account-key-file` or `--service-account-signing-endpoint` must be set, \
         --service-account-signing-key-file and --service-account-issuer are required flags]"
    );
}

#[test]
fn what_is_not_given_is_as_kubernetes_has_it() {
    let config = config(&[]).unwrap().server;
    assert_eq!(config.listen.unwrap().address.to_string(), "0.0.0.0:6443");
    let server::Storage::Remote { address, .. } = &config.storage else { panic!("{:?}", config.storage) };
    assert!(address.starts_with("127.0.0.1:2379"), "{address}");
    assert!(
        matches!(config.certificates, Certificates::ServingFolder(folder) if folder == Path::new("/var/run/kubernetes"))
    );
    assert_eq!((config.limits.reads_in_flight, config.limits.writes_in_flight), (400, 200));
}

#[test]
fn addresses_and_numbers_are_taken() {
    let config = config(&[
        "--bind-address=::1",
        "--secure-port=7",
        "--max-requests-inflight=0",
        "--max-mutating-requests-inflight=3",
        "--etcd-compaction-interval=0",
        "--service-cluster-ip-range=10.96.0.0/12",
        "--service-node-port-range=8000-8010",
        "--min-request-timeout=7",
        "--goaway-chance=0.02",
        "--shutdown-delay-duration=9s",
        "--shutdown-send-retry-after",
    ])
    .unwrap()
    .server;
    assert_eq!(config.listen.unwrap().address.to_string(), "[::1]:7");
    assert_eq!((config.limits.reads_in_flight, config.limits.writes_in_flight), (usize::MAX, 3));
    assert_eq!(
        (config.limits.watch_time, config.shutdown_delay),
        (Duration::from_secs(7), Duration::from_secs(9))
    );
    assert!(config.limits.goaway_chance > 0.0 && config.limits.sends_late_requests_away);
    assert_eq!(config.store.compaction, None);
    let expected = Ranges::default().with_network("10.96.0.0/12").unwrap().with_ports("8000-8010").unwrap();
    assert_eq!(config.services, expected);
}

#[test]
fn plugins_are_those_of_kubernetes_with_some_more_and_some_less() {
    let plugins = |arguments: &[&str]| config(arguments).unwrap().server.plugins;
    assert!(plugins(&[]).is_on("ServiceAccount"));
    let changed = plugins(&[
        "--disable-admission-plugins=ServiceAccount",
        "--enable-admission-plugins=AlwaysPullImages",
    ]);
    assert!(
        !changed.is_on("ServiceAccount") && changed.is_on("AlwaysPullImages") && changed.is_on("Priority")
    );
    let exactly = plugins(&["--admission-control=Priority"]);
    assert!(exactly.is_on("Priority") && !exactly.is_on("LimitRanger"));
}

#[test]
fn what_is_wanted_and_not_there_is_warned_about() {
    let warnings = |argument: &str| config(&[argument]).unwrap().warnings;
    let everyone = "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use a different authorizer";
    assert_eq!(warnings("--authorization-mode=AlwaysAllow"), [everyone]);
    assert_eq!(warnings("--authorization-mode=Node").len(), 1);
}

#[test]
fn wrong_values_are_refused_in_kubernetes_words() {
    for (argument, expected) in [
        ("--authorization-mode=Nope", "authorization-mode \"Nope\" is not a valid mode"),
        ("--authorization-mode=ABAC", "authorization-mode \"ABAC\" is not supported: use RBAC"),
        ("--service-cluster-ip-range=foo", "service-cluster-ip-range[0] is not a valid cidr"),
        ("--enable-admission-plugins=Nope", "enable-admission-plugins plugin \"Nope\" is unknown"),
        ("--feature-gates=Nope=true", "unrecognized feature gate: Nope"),
        (
            "--storage-media-type=foo",
            "--storage-media-type \"foo\" invalid, allowed values: application/json, application/vnd.kubernetes.protobuf, application/yaml",
        ),
    ] {
        assert_eq!(refusal(&[argument]), expected);
    }
    assert!(refusal(&["--client-ca-file=/nowhere"]).contains("--client-ca-file"));
    assert!(refusal(&["--tls-cert-file=x"]).contains("give both"));
    assert!(refusal(&["--etcd-servers=https://a:1"]).contains("--etcd-cafile"));
}

#[test]
fn policies_that_change_objects_need_their_gate_and_their_api() {
    let gate = "--feature-gates=MutatingAdmissionPolicy=true";
    let api = "--runtime-config=admissionregistration.k8s.io/v1beta1=true";
    let asked = config(&[gate, api]).unwrap();
    assert_eq!(asked.server.extra_apis, [admission::MUTATING_POLICIES]);
    assert!(asked.warnings.is_empty());
    for alone in [gate, api] {
        let config = config(&[alone]).unwrap();
        assert!(config.server.extra_apis.is_empty() && config.warnings.len() == 1, "{alone}");
    }
}

#[test]
fn plugins_are_configured_by_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admission.yaml");
    let flag = format!("--admission-control-config-file={}", path.display());
    assert!(refusal(&[&flag]).starts_with(
        "failed to apply admission: failed to read plugin config: unable to read admission control configuration"
    ));
    let plugins = "plugins: [{name: PodSecurity, path: security.yaml}, {name: EventRateLimit}]";
    let whole = format!("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n{plugins}\n");
    std::fs::write(&path, whole).unwrap();
    assert!(refusal(&[&flag]).contains("Couldn't open admission plugin configuration"));
    let security = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n\
                    defaults: {enforce: baseline}\n";
    std::fs::write(folder.path().join("security.yaml"), security).unwrap();
    let config = config(&[&flag]).unwrap();
    assert_eq!(config.server.admission.pod_security.defaults.enforce.to_string(), "baseline:latest");
    assert_eq!(config.warnings.len(), 1, "EventRateLimit is not on");
}
