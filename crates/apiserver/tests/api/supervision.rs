//! Background tasks of a server that end early, one after the other.

use apiserver::auth::ClusterAuthenticationInfo;
use tasks::Cause;

use crate::client::Client;

const BOOTSTRAP: &str = "the bootstrap of the default objects";

/// Every background task of a server with all features. A new task belongs here with its fault.
const TASKS: [&str; 22] = [
    "the audit log writer",
    "the CRD informer",
    "the CRD controller",
    "the selectable field controller",
    "the informer of flowschemas.flowcontrol.apiserver.k8s.io",
    "the informer of ingressclasses.networking.k8s.io",
    "the informer of limitranges",
    "the informer of mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "the informer of namespaces",
    "the informer of priorityclasses.scheduling.k8s.io",
    "the informer of prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "the informer of resourcequotas",
    "the informer of storageclasses.storage.k8s.io",
    "the informer of validatingadmissionpolicies.admissionregistration.k8s.io",
    "the informer of validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "the informer of validatingwebhookconfigurations.admissionregistration.k8s.io",
    "the RBAC informer",
    BOOTSTRAP,
    "the FlowSchema controller",
    "the legacy token tracking controller",
    "the identity Lease controller",
    "the authentication ConfigMap controller",
];

/// A server with all features.
pub async fn server() -> Client {
    let folder = tempfile::tempdir().unwrap();
    let log = apiserver::audit::Log::open(&folder.path().join("audit.log"), Default::default()).unwrap();
    let policy = b"{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";
    let audit = apiserver::audit::Audit::new(kinds::audit::Policy::read(policy).unwrap(), log.into());
    let client = Client::with(|builder| {
        builder.audit(audit).address("192.0.2.1:6443".parse().unwrap()).host("test".to_owned())
    });
    let client = client.await;
    let trust = ClusterAuthenticationInfo { client_ca: "x".to_owned(), request_header: None };
    client.api.publish(process::reload::Current::fixed(trust));
    client
}

#[tokio::test]
async fn every_task_that_panics_is_reported_by_its_name() {
    let mut names = server().await.api.task_names();
    names.sort();
    let mut expected = TASKS;
    expected.sort_unstable();
    assert_eq!(names, expected);
    // The bootstrap has ended when the server is ready.
    for name in TASKS.into_iter().filter(|name| *name != BOOTSTRAP) {
        let client = server().await;
        let failed = client.api.failed();
        assert!(client.api.inject_fault(name), "{name}");
        let failure = failed.await;
        assert_eq!(failure.task, name);
        assert_eq!(failure.cause, Cause::Panicked("an injected fault".to_owned()));
    }
}
