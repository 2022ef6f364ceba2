//! The cluster controllers, as clients of the real binary see them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::{
    Api, Client, Config,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};
use tokio::time::timeout;
use x509::{CertificateRequest, pem};

use crate::kube_rs::client;
use crate::server::{PATIENCE, Server};

/// A certificate signing request whose key is discarded.
const CSR: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QmVEQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCSnhUQ0d0RE9rb2psdUNHMm1nbjVEcDltb2NVMXM0SjFNNUdYSXF0OTl6elN5V3FxZm00K1h3WnJIN2ZIdTdVCmRiOVF2RW1CcXE1MXFvSXV0UUhXOHNXZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpRUFpR2xmUGJIamxQRWYKbi82T1ZBdU9idld6OW4wSTFDeGN4cGJzem96dGdXQUNJQnRKcTRvTHZQR0NoaXpIRXFqZXlsb3VZRFhyZDFGSApLelNuc2E3eFBrZU0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

/// A server with a client.
struct Cluster {
    server: Server,
    client: Client,
    _folder: tempfile::TempDir,
}

impl Cluster {
    async fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let server = Server::start("up", &folder.path().join("data"), arguments).await;
        let client = client(&server).await;
        Self { server, client, _folder: folder }
    }

    /// The objects of a type such as `v1 ConfigMap`; in a namespace unless that is empty.
    fn api(&self, names: &str, namespace: &str) -> Api<DynamicObject> {
        let (version, kind) = names.split_once(' ').expect("a version and a kind");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            "" => Api::all_with(self.client.clone(), &resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
        }
    }

    /// Creates a namespace.
    async fn namespace(&self, name: &str) {
        make(&self.api("v1 Namespace", ""), json!({"metadata": {"name": name}})).await;
    }
}

async fn make(api: &Api<DynamicObject>, object: Value) -> Value {
    let object: DynamicObject = serde_json::from_value(object).expect("the test writes objects");
    let made = api.create(&PostParams::default(), &object).await;
    value(&made.unwrap_or_else(|error| panic!("{object:?}: {error}")))
}

fn value(object: &DynamicObject) -> Value {
    serde_json::to_value(object).expect("objects are JSON")
}

async fn merge(api: &Api<DynamicObject>, name: &str, part: &str, patch: Value) {
    let (how, patch) = (PatchParams::default(), Patch::Merge(patch));
    let patched = match part {
        "" => api.patch(name, &how, &patch).await,
        part => api.patch_subresource(part, name, &how, &patch).await,
    };
    patched.unwrap_or_else(|error| panic!("{name}: {error}"));
}

async fn delete(api: &Api<DynamicObject>, name: &str) {
    api.delete(name, &DeleteParams::default()).await.expect("it is there");
}

/// Waits until an object exists and is as expected, and returns it.
async fn until(api: &Api<DynamicObject>, name: &str, is_right: impl Fn(&Value) -> bool) -> Value {
    let condition = |object: Option<&DynamicObject>| object.is_some_and(|object| is_right(&value(object)));
    match timeout(PATIENCE, await_condition(api.clone(), name, condition)).await {
        Ok(seen) => value(&seen.expect("the watch goes on").expect("it is as it should be")),
        Err(_) => panic!("{name} stays {:?}", api.get_opt(name).await),
    }
}

/// Waits until an object is gone.
async fn gone(api: &Api<DynamicObject>, name: &str) {
    let condition = |object: Option<&DynamicObject>| object.is_none();
    let seen = timeout(PATIENCE, await_condition(api.clone(), name, condition)).await;
    assert!(seen.is_ok(), "{name} stays: {:?}", api.get_opt(name).await);
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}})
}

#[tokio::test]
async fn every_namespace_gets_a_service_account_and_the_root_ca() {
    let cluster = Cluster::start(&[]).await;
    cluster.namespace("new").await;
    // The service account exists in time, without waiting for it.
    let made = make(&cluster.api("v1 Pod", "new"), pod("first")).await;
    assert_eq!(made["spec"]["serviceAccountName"], "default");
    let authority = std::fs::read_to_string(cluster.server.kubeconfig.with_file_name("pki/ca.crt")).unwrap();
    let is_right = |map: &Value| map["data"] == json!({"ca.crt": authority});
    for namespace in ["new", "default", "kube-system"] {
        until(&cluster.api("v1 ConfigMap", namespace), "kube-root-ca.crt", is_right).await;
        until(&cluster.api("v1 ServiceAccount", namespace), "default", |_| true).await;
    }
    let maps = cluster.api("v1 ConfigMap", "new");
    merge(&maps, "kube-root-ca.crt", "", json!({"data": {"ca.crt": "none", "more": "x"}})).await;
    until(&maps, "kube-root-ca.crt", is_right).await;
    delete(&maps, "kube-root-ca.crt").await;
    until(&maps, "kube-root-ca.crt", is_right).await;
    let accounts = cluster.api("v1 ServiceAccount", "new");
    let uid = until(&accounts, "default", |_| true).await["metadata"]["uid"].clone();
    delete(&accounts, "default").await;
    until(&accounts, "default", |account| account["metadata"]["uid"] != uid).await;
}

#[tokio::test]
async fn disabled_controllers_do_nothing() {
    let cluster = Cluster::start(&["--controllers=*,-serviceaccount-controller"]).await;
    until(&cluster.api("v1 ConfigMap", "default"), "kube-root-ca.crt", |_| true).await;
    let denied = serde_json::from_value(pod("first")).unwrap();
    let denied = cluster.api("v1 Pod", "default").create(&PostParams::default(), &denied).await.unwrap_err();
    let reason = "error looking up service account default/default: serviceaccount \"default\" not found";
    assert!(denied.to_string().contains(reason), "{denied}");
}

#[tokio::test]
async fn resourcequota_recalculates_usage_after_deletions() {
    let cluster = Cluster::start(&[]).await;
    cluster.namespace("few").await;
    let (quotas, maps) = (cluster.api("v1 ResourceQuota", "few"), cluster.api("v1 ConfigMap", "few"));
    until(&maps, "kube-root-ca.crt", |_| true).await;
    let hard = json!({"configmaps": "3", "pods": "1", "cpu": "1000m", "count/widgets.example.com": "1", "count/roles.rbac.authorization.k8s.io": "2"});
    make(&quotas, json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).await;
    let used = |used: Value| move |quota: &Value| quota["status"]["used"] == used;
    let role = "count/roles.rbac.authorization.k8s.io";
    let quota =
        until(&quotas, "q", used(json!({"configmaps": "1", "cpu": "0", "pods": "0", role: "0"}))).await;
    assert_eq!(quota["status"]["hard"]["cpu"], "1");

    make(&maps, json!({"metadata": {"name": "one"}})).await;
    let pods = cluster.api("v1 Pod", "few");
    let mut busy = pod("busy");
    busy["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "300m"}});
    make(&pods, busy).await;
    until(&quotas, "q", used(json!({"configmaps": "2", "cpu": "300m", "pods": "1", role: "0"}))).await;
    merge(&pods, "busy", "status", json!({"status": {"phase": "Succeeded"}})).await;
    until(&quotas, "q", used(json!({"configmaps": "2", "cpu": "0", "pods": "0", role: "0"}))).await;
    delete(&maps, "one").await;
    until(&quotas, "q", used(json!({"configmaps": "1", "cpu": "0", "pods": "0", role: "0"}))).await;

    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "widgets", "kind": "Widget"}},
    });
    make(&cluster.api("apiextensions.k8s.io/v1 CustomResourceDefinition", ""), definition).await;
    until(&quotas, "q", |quota| quota["status"]["used"]["count/widgets.example.com"] == "0").await;
    let widgets = cluster.api("example.com/v1 Widget", "few");
    make(&widgets, json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}))
        .await;
    until(&quotas, "q", |quota| quota["status"]["used"]["count/widgets.example.com"] == "1").await;
    delete(&widgets, "w").await;
    until(&quotas, "q", |quota| quota["status"]["used"]["count/widgets.example.com"] == "0").await;
}

#[tokio::test]
async fn expired_events_finished_jobs_and_denied_csrs_are_deleted() {
    let cluster = Cluster::start(&["--event-ttl=1s"]).await;
    let events = cluster.api("v1 Event", "default");
    let about = json!({"kind": "Pod", "namespace": "default", "name": "p"});
    make(&events, json!({"metadata": {"name": "e"}, "involvedObject": about, "reason": "Seen"})).await;
    gone(&events, "e").await;
    make(&events, json!({"metadata": {"name": "later"}, "involvedObject": about})).await;
    gone(&events, "later").await;

    let jobs = cluster.api("batch/v1 Job", "default");
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx"}]}});
    let spec = json!({"ttlSecondsAfterFinished": 0, "template": template});
    make(&jobs, json!({"metadata": {"name": "done"}, "spec": spec})).await;
    let time = "2026-01-01T00:00:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": time});
    let status = json!({
        "startTime": time, "completionTime": time, "succeeded": 1, "uncountedTerminatedPods": {},
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    });
    merge(&jobs, "done", "status", json!({"status": status})).await;
    // Foreground deletion may still wait for the garbage collector: being deleted is enough.
    until_ending(&jobs, "done").await;

    let requests = cluster.api("certificates.k8s.io/v1 CertificateSigningRequest", "");
    let spec = json!({"request": CSR, "signerName": "example.com/x", "usages": ["client auth"]});
    make(&requests, json!({"metadata": {"name": "r"}, "spec": spec})).await;
    let denied = json!({"type": "Denied", "status": "True", "reason": "No", "lastUpdateTime": time});
    merge(&requests, "r", "approval", json!({"status": {"conditions": [denied]}})).await;
    gone(&requests, "r").await;
}

#[tokio::test]
async fn approved_client_csrs_are_signed_and_others_refused() {
    let cluster = Cluster::start(&[]).await;
    let requests = cluster.api("certificates.k8s.io/v1 CertificateSigningRequest", "");
    let approved = json!({"type": "Approved", "status": "True", "reason": "Test"});
    for (name, usages) in [("good", json!(["client auth"])), ("bad", json!(["server auth"]))] {
        let spec =
            json!({"request": CSR, "signerName": "kubernetes.io/kube-apiserver-client", "usages": usages});
        make(&requests, json!({"metadata": {"name": name}, "spec": spec})).await;
        merge(&requests, name, "approval", json!({"status": {"conditions": [approved]}})).await;
    }
    until(&requests, "good", |request| request["status"]["certificate"].is_string()).await;
    // The certificate has the requested subject: both organizations, in order.
    let text = include_str!("../../../../fixtures/certificates/two-organizations.csr");
    let asked = CertificateRequest::from_pem(text.as_bytes()).unwrap();
    let spec = json!({
        "request": STANDARD.encode(text), "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
    });
    make(&requests, json!({"metadata": {"name": "two"}, "spec": spec})).await;
    merge(&requests, "two", "approval", json!({"status": {"conditions": [approved]}})).await;
    let signed = until(&requests, "two", |request| request["status"]["certificate"].is_string()).await;
    let certificate = STANDARD.decode(signed["status"]["certificate"].as_str().unwrap()).unwrap();
    let certificate = pem::single(&certificate, pem::CERTIFICATE).unwrap();
    assert!(certificate.windows(asked.subject().len()).any(|part| part == asked.subject()));
    let refused = until(&requests, "bad", |request| !request["status"]["conditions"][1].is_null()).await;
    let condition = &refused["status"]["conditions"][1];
    assert_eq!(
        (&condition["type"], &condition["reason"]),
        (&json!("Failed"), &json!("SignerValidationFailure"))
    );
}

/// Waits until an object is gone or being deleted.
async fn until_ending(api: &Api<DynamicObject>, name: &str) {
    let is_ending = |object: Option<&DynamicObject>| {
        object.is_none_or(|object| object.metadata.deletion_timestamp.is_some())
    };
    let seen = timeout(PATIENCE, await_condition(api.clone(), name, is_ending)).await;
    assert!(seen.is_ok(), "{name} stays: {:?}", api.get_opt(name).await);
}

#[tokio::test]
async fn pvc_and_pv_protection_keep_volumes_in_use() {
    let cluster = Cluster::start(&[]).await;
    let (claims, volumes) =
        (cluster.api("v1 PersistentVolumeClaim", "default"), cluster.api("v1 PersistentVolume", ""));
    let size = json!({"requests": {"storage": "1Gi"}});
    for name in ["used", "unused"] {
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": size});
        let made = make(&claims, json!({"metadata": {"name": name}, "spec": spec})).await;
        assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    }
    let pods = cluster.api("v1 Pod", "default");
    let mut using = pod("using");
    using["spec"]["nodeName"] = "somewhere".into();
    using["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "used"}}]);
    make(&pods, using).await;
    delete(&claims, "used").await;
    delete(&claims, "unused").await;
    gone(&claims, "unused").await;
    let waiting = until(&claims, "used", |claim| claim["metadata"]["deletionTimestamp"].is_string()).await;
    assert_eq!(waiting["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    pods.delete("using", &DeleteParams::default().grace_period(0)).await.unwrap();
    gone(&claims, "used").await;

    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp/nothing"},
    });
    make(&volumes, json!({"metadata": {"name": "v"}, "spec": spec})).await;
    merge(&volumes, "v", "status", json!({"status": {"phase": "Bound"}})).await;
    delete(&volumes, "v").await;
    until(&volumes, "v", |volume| volume["metadata"]["deletionTimestamp"].is_string()).await;
    merge(&volumes, "v", "status", json!({"status": {"phase": "Released"}})).await;
    gone(&volumes, "v").await;
}

#[tokio::test]
async fn token_secrets_are_valid_until_their_service_account_is_deleted() {
    let cluster = Cluster::start(&[]).await;
    let (secrets, accounts) =
        (cluster.api("v1 Secret", "default"), cluster.api("v1 ServiceAccount", "default"));
    make(
        &accounts,
        json!({"metadata": {"name": "robot"}, "secrets": [{"name": "listed"}, {"name": "other"}]}),
    )
    .await;
    let secret = |name: &str, account: &str| {
        let annotations = json!({"kubernetes.io/service-account.name": account});
        json!({"metadata": {"name": name, "annotations": annotations}, "type": "kubernetes.io/service-account-token"})
    };
    make(&secrets, secret("listed", "robot")).await;
    make(&secrets, secret("kept", "robot")).await;
    make(&secrets, secret("orphan", "nobody")).await;
    gone(&secrets, "orphan").await;
    let filled = until(&secrets, "kept", |secret| secret["data"]["token"].is_string()).await;
    assert_eq!(filled["data"]["namespace"], "ZGVmYXVsdA==");
    assert!(filled["data"]["ca.crt"].is_string());
    let token = String::from_utf8(base64(filled["data"]["token"].as_str().unwrap())).unwrap();
    assert_eq!(user_of(&cluster.server, &token).await.unwrap(), "system:serviceaccount:default:robot");

    delete(&secrets, "listed").await;
    until(&accounts, "robot", |account| account["secrets"] == json!([{"name": "other"}])).await;
    delete(&accounts, "robot").await;
    gone(&secrets, "kept").await;
    assert!(user_of(&cluster.server, &token).await.is_err());
}

#[tokio::test]
async fn unused_legacy_tokens_are_invalidated_and_deleted() {
    const INVALID: &str = "kubernetes.io/legacy-token-invalid-since";
    const USED: &str = "kubernetes.io/legacy-token-last-used";
    let cluster = Cluster::start(&["--legacy-service-account-token-clean-up-period=1s"]).await;
    let (maps, name) =
        (cluster.api("v1 ConfigMap", "kube-system"), "kube-apiserver-legacy-service-account-token-tracking");
    until(&maps, name, |map| map["data"]["since"].is_string()).await;
    // Backdated, because the first day of tracking does not count.
    merge(&maps, name, "", json!({"data": {"since": "2020-01-01"}})).await;
    let (secrets, accounts) =
        (cluster.api("v1 Secret", "default"), cluster.api("v1 ServiceAccount", "default"));
    make(&accounts, json!({"metadata": {"name": "robot"}, "secrets": [{"name": "listed"}]})).await;
    for name in ["by-hand", "listed"] {
        let annotations = json!({"kubernetes.io/service-account.name": "robot"});
        let secret = json!({"metadata": {"name": name, "annotations": annotations}, "type": "kubernetes.io/service-account-token"});
        make(&secrets, secret).await;
    }
    let is_refused = |secret: &Value| {
        secret["metadata"]["labels"][INVALID].is_string() && secret["data"]["token"].is_string()
    };
    let refused = until(&secrets, "listed", is_refused).await;
    let token = String::from_utf8(base64(refused["data"]["token"].as_str().unwrap())).unwrap();
    assert!(user_of(&cluster.server, &token).await.is_err());
    // A rejected use is recorded, and the Secret stays.
    until(&secrets, "listed", |secret| secret["metadata"]["labels"][USED].is_string()).await;
    let long_ago = json!({INVALID: "2020-01-01", USED: "2020-01-01"});
    merge(&secrets, "listed", "", json!({"metadata": {"labels": long_ago}})).await;
    gone(&secrets, "listed").await;
    let by_hand = until(&secrets, "by-hand", |secret| secret["data"]["token"].is_string()).await;
    assert!(by_hand["metadata"]["labels"][INVALID].is_null(), "{by_hand}");
}

/// The user of a token, by SelfSubjectReview.
async fn user_of(server: &Server, token: &str) -> kube::Result<String> {
    let mut config = Config::new(format!("https://{}", server.address).parse().expect("an address"));
    config.accept_invalid_certs = true;
    config.auth_info.token = Some(token.to_owned().into());
    let client = Client::try_from(config).expect("a token and an address");
    let resource =
        ApiResource::from_gvk(&GroupVersionKind::gvk("authentication.k8s.io", "v1", "SelfSubjectReview"));
    let review = serde_json::from_value(json!({"metadata": {}})).expect("an object");
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.data["status"]["userInfo"]["username"].as_str().unwrap_or_default().to_owned())
}

fn base64(text: &str) -> Vec<u8> {
    serde_json::from_value::<k8s_openapi::ByteString>(text.into()).expect("it is base64").0
}

#[tokio::test]
async fn aggregated_cluster_roles_have_the_rules_of_their_parts() {
    let cluster = Cluster::start(&[]).await;
    let roles = cluster.api("rbac.authorization.k8s.io/v1 ClusterRole", "");
    let says = |verb: &'static str, resource: &'static str| {
        move |role: &Value| {
            let has = |list: &Value, wanted: &str| {
                list.as_array().is_some_and(|list| list.contains(&wanted.into()))
            };
            let rules = role["rules"].as_array();
            rules.is_some_and(|rules| {
                rules.iter().any(|rule| has(&rule["verbs"], verb) && has(&rule["resources"], resource))
            })
        }
    };
    until(&roles, "view", says("get", "pods")).await;
    let admin = until(&roles, "admin", says("create", "rolebindings")).await;
    assert!(says("get", "pods")(&admin) && says("create", "deployments")(&admin));
    let label = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    let rule = json!({"apiGroups": ["example.com"], "resources": ["ships"], "verbs": ["get"]});
    make(&roles, json!({"metadata": {"name": "ships", "labels": label}, "rules": [rule]})).await;
    for name in ["view", "edit", "admin"] {
        until(&roles, name, says("get", "ships")).await;
    }
    delete(&roles, "ships").await;
    for name in ["view", "edit", "admin"] {
        until(&roles, name, |role| !says("get", "ships")(role)).await;
    }
}
