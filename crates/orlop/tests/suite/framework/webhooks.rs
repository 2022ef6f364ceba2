//! Webhook servers that the API server calls, and their certificates.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use controller::{
    Error, ResourceKind,
    crds::CrdInstaller,
    webhook::{
        AdmissionRequest, Convert, Mutate, PatchOperation, Validate, Verdict, WebhookServer,
        certificates::{CaTarget, FolderCertificate, Lifetimes, ManagedCertificate},
    },
};
use kube::api::DeleteParams;
use process::{
    Shutdown,
    pki::{self, Identity},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Bed, CONFIG_MAPS, CRDS, SECRETS, crds, until};

const MUTATING: ResourceKind = ResourceKind {
    group: "admissionregistration.k8s.io",
    version: "v1",
    kind: "MutatingWebhookConfiguration",
    plural: "mutatingwebhookconfigurations",
};
const VALIDATING: ResourceKind = ResourceKind {
    group: "admissionregistration.k8s.io",
    version: "v1",
    kind: "ValidatingWebhookConfiguration",
    plural: "validatingwebhookconfigurations",
};
const SECRET: &str = "webhook-certificate";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Serialize, Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

/// Writes the name of the user into each ConfigMap.
struct Sign;

impl Mutate for Sign {
    type Object = ConfigMap;

    async fn mutate(&self, request: &mut AdmissionRequest<ConfigMap>) -> Verdict {
        if let Some(map) = &mut request.object {
            map.data.insert("signed".to_owned(), request.user_info.username.clone());
        }
        Verdict::allow()
    }
}

/// Refuses ConfigMaps with leaks.
struct Inspect;

impl Validate for Inspect {
    type Object = ConfigMap;

    async fn validate(&self, request: &AdmissionRequest<ConfigMap>) -> Verdict {
        match request.object.as_ref().is_some_and(|map| map.data.contains_key("leak")) {
            true => Verdict::invalid("it leaks").warn("bring a bucket"),
            false => Verdict::allow(),
        }
    }
}

/// Moves `size` to `length`, and back.
struct Measure;

impl Convert for Measure {
    async fn convert(&self, mut ship: Value, api_version: &str) -> Result<Value, String> {
        let (from, to) = if api_version.ends_with("/v2") { ("size", "length") } else { ("length", "size") };
        let fields = ship.as_object_mut().ok_or("a ship is an object")?;
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
        Ok(ship)
    }
}

fn server() -> WebhookServer {
    WebhookServer::new()
        .mutating("/sign", Sign)
        .validating("/inspect", Inspect)
        .converting("/measure", Measure)
}

struct Listening {
    listener: TcpListener,
    url: String,
}

async fn listen() -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let url = format!("https://{}", listener.local_addr().expect("it is bound"));
    Listening { listener, url }
}

fn certificate(bed: &Bed) -> ManagedCertificate {
    ManagedCertificate::new(bed.client.clone(), &bed.namespace, SECRET, ["127.0.0.1"])
        .inject_into(CaTarget::mutating(&bed.namespace))
        .inject_into(CaTarget::validating(&bed.namespace))
}

/// Configures a webhook for the ConfigMaps of the test's namespace.
async fn configure(bed: &Bed, kind: &ResourceKind, url: &str, bundle: Option<&str>) {
    let webhook = json!({
        "name": "maps.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
        "clientConfig": {"url": url, "caBundle": bundle.map(|bundle| STANDARD.encode(bundle))},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": bed.namespace}},
        // Controllers of the cluster write ConfigMaps, too.
        "objectSelector": {"matchLabels": {"tested": "yes"}},
    });
    let configuration = json!({"metadata": {"name": bed.namespace}, "webhooks": [webhook]});
    bed.cluster_objects(kind).create::<Value>(&configuration).await.expect("the configuration is created");
}

async fn bundle(bed: &Bed, kind: &ResourceKind) -> String {
    let configuration: Value = bed.cluster_objects(kind).get(&bed.namespace).await.unwrap().unwrap();
    let bundle =
        configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned();
    String::from_utf8(STANDARD.decode(bundle).unwrap()).unwrap()
}

/// Creates a ConfigMap by a dry run, which calls the webhooks.
async fn create(bed: &Bed, data: Value) -> Result<Value, Error> {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "labels": {"tested": "yes"}}, "data": data,
    });
    bed.objects(&CONFIG_MAPS).apply("map", &controller::Apply::new("test").force().dry_run(), &map).await
}

/// Whether the API server reaches the validating webhook.
async fn is_denied(bed: &Bed) -> bool {
    match create(bed, json!({"leak": "yes"})).await {
        Ok(_) => false,
        Err(error) => error.to_string().contains("denied the request: it leaks"),
    }
}

/// The fields of the Secret with the certificates.
async fn secret(bed: &Bed) -> Option<BTreeMap<String, String>> {
    let secret: Value = bed.objects(&SECRETS).get(SECRET).await.unwrap()?;
    let fields = secret["data"].as_object()?.iter();
    let text = |value: &Value| String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap();
    Some(fields.map(|(field, value)| (field.clone(), text(value))).collect())
}

pub async fn replicas_share_a_certificate_and_keep_its_bundle_in_the_configurations(bed: Bed) {
    let (one, two, shutdown) = (listen().await, listen().await, Shutdown::new());
    configure(&bed, &MUTATING, &format!("{}/sign", one.url), None).await;
    configure(&bed, &VALIDATING, &format!("{}/inspect", two.url), None).await;
    let first = certificate(&bed);
    let served = first.served();
    assert!(served.check().is_err(), "there is no certificate yet");
    let first = server().run(one.listener, first, shutdown.clone());
    let second = server().run(two.listener, certificate(&bed), shutdown.clone());
    let test = async {
        until("the webhooks are called", async || is_denied(&bed).await).await;
        assert_eq!(served.check(), Ok(()));
        let made = create(&bed, json!({"a": "b"})).await.unwrap();
        assert!(!made["data"]["signed"].as_str().unwrap().is_empty(), "{made}");
        assert_eq!(made["data"]["a"], "b");
        let refused = create(&bed, json!({"leak": "yes"})).await.unwrap_err();
        assert_eq!(refused.code(), 422, "{refused}");

        let shared = secret(&bed).await.unwrap();
        assert_eq!(pki::split_bundle(&shared["ca.crt"]).len(), 1, "both replicas agreed on one CA");
        for kind in [&MUTATING, &VALIDATING] {
            assert_eq!(bundle(&bed, kind).await, shared["ca.crt"]);
        }

        let other = pki::component_ca("other", SystemTime::now(), DAY).unwrap().certificate;
        let path = "/webhooks/0/clientConfig/caBundle".to_owned();
        let revert = [PatchOperation::Replace { path, value: STANDARD.encode(other).into() }];
        bed.cluster_objects(&VALIDATING).json_patch::<Value>(&bed.namespace, &revert).await.unwrap();
        until("the bundle is right again", async || bundle(&bed, &VALIDATING).await == shared["ca.crt"])
            .await;
        until("and the webhook is called again", async || is_denied(&bed).await).await;

        bed.objects(&SECRETS).delete(SECRET, &DeleteParams::default()).await.unwrap();
        until("the Secret is back", async || secret(&bed).await.is_some()).await;
        assert_eq!(secret(&bed).await.unwrap(), shared, "with the certificates that it had");
        assert!(is_denied(&bed).await);
        shutdown.request();
    };
    let (first, second, ()) = tokio::join!(first, second, test);
    first.and(second).unwrap();
}

/// A CA of five years that is replaced soon, with a certificate of it.
fn old_certificates() -> BTreeMap<&'static str, String> {
    let begin = SystemTime::now() - 1700 * DAY;
    let ca = pki::component_ca("old", begin, 5 * 365 * DAY).unwrap();
    let serving = pki::issue(&ca, "old", &["127.0.0.1".to_owned()], SystemTime::now(), 90 * DAY).unwrap();
    let Identity { certificate, key } = serving;
    [("ca.crt", ca.certificate), ("ca.key", ca.key), ("tls.crt", certificate), ("tls.key", key)].into()
}

pub async fn a_new_ca_is_trusted_before_it_is_used(bed: Bed) {
    let old = old_certificates();
    let data: BTreeMap<_, _> = old.iter().map(|(field, text)| (field, STANDARD.encode(text))).collect();
    let made = json!({"metadata": {"name": SECRET}, "data": data});
    bed.objects(&SECRETS).create::<Value>(&made).await.unwrap();
    let (listening, shutdown) = (listen().await, Shutdown::new());
    configure(&bed, &VALIDATING, &format!("{}/inspect", listening.url), Some(&old["ca.crt"])).await;
    let lifetimes = Lifetimes::new(5 * 365 * DAY, 90 * DAY, Duration::from_secs(2)).unwrap();
    let server = server().run(listening.listener, certificate(&bed).lifetimes(lifetimes), shutdown.clone());
    let test = async {
        until("the webhook is called", async || is_denied(&bed).await).await;
        let names = ["127.0.0.1".to_owned()];
        let mut seen = Vec::new();
        // From now on the API server trusts the webhook at all times.
        until("a certificate of the new CA is served", async || {
            assert!(is_denied(&bed).await, "{:?}", create(&bed, json!({"leak": "yes"})).await);
            let now = secret(&bed).await.unwrap();
            let cas = pki::split_bundle(&now["ca.crt"]);
            let serving = Identity { certificate: now["tls.crt"].clone(), key: now["tls.key"].clone() };
            cas.len() == 2 && pki::is_serving_for(&serving, &cas[0], &names)
        })
        .await;
        seen.extend(pki::split_bundle(&secret(&bed).await.unwrap()["ca.crt"]));
        assert_eq!(seen[1], old["ca.crt"], "the old CA stays in the bundle");
        until("the configuration has both", async || {
            pki::split_bundle(&bundle(&bed, &VALIDATING).await) == seen
        })
        .await;
        assert!(is_denied(&bed).await);
        shutdown.request();
    };
    let (ended, ()) = tokio::join!(server, test);
    ended.unwrap();
}

pub async fn a_conversion_webhook_converts_between_the_versions_of_a_crd(bed: Bed) {
    let (listening, shutdown) = (listen().await, Shutdown::new());
    let mut crd = crds::ships(&bed, &["v1", "v2"]);
    crd["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"url": format!("{}/measure", listening.url)}, "conversionReviewVersions": ["v1"],
        },
    });
    let name = crd["metadata"]["name"].as_str().unwrap();
    let certificate = ManagedCertificate::new(bed.client.clone(), &bed.namespace, SECRET, ["127.0.0.1"])
        .inject_into(CaTarget::crd(name));
    let server = server().run(listening.listener, certificate, shutdown.clone());
    let test = async {
        let installer = CrdInstaller::new(bed.client.clone(), "harbour");
        installer.install(std::slice::from_ref(&crd)).await.unwrap();
        let mut ship = crds::ship(&bed, "v1", "argo");
        ship["size"] = 50.into();
        let (old, new) = (crds::objects(&bed, "v1"), crds::objects(&bed, "v2"));
        until("the webhook is called", async || old.create::<Value>(&ship).await.is_ok()).await;
        let read: Value = new.get("argo").await.unwrap().unwrap();
        assert_eq!((&read["length"], read.get("size")), (&json!(50), None), "{read}");
        let read: Value = old.get("argo").await.unwrap().unwrap();
        assert_eq!((&read["size"], read.get("length")), (&json!(50), None), "{read}");
        // The installer does not take the bundle away.
        installer.install(std::slice::from_ref(&crd)).await.unwrap();
        let stored: Value = bed.cluster_objects(&CRDS).get(name).await.unwrap().unwrap();
        let bundle = stored.pointer("/spec/conversion/webhook/clientConfig/caBundle");
        assert!(bundle.is_some_and(Value::is_string), "{stored}");
        assert!(new.get::<Value>("argo").await.unwrap().is_some());
        shutdown.request();
    };
    let (ended, ()) = tokio::join!(server, test);
    ended.unwrap();
}

pub async fn a_certificate_of_a_folder_is_served_and_loaded_again(bed: Bed) {
    let folder = tempfile::tempdir().unwrap();
    let write = || {
        let now = SystemTime::now();
        let ca = pki::component_ca("cert-manager", now, 10 * DAY).unwrap();
        let Identity { certificate, key } =
            pki::issue(&ca, "hook", &["127.0.0.1".to_owned()], now, DAY).unwrap();
        std::fs::write(folder.path().join("tls.key"), key).unwrap();
        std::fs::write(folder.path().join("tls.crt"), certificate).unwrap();
        ca.certificate
    };
    let missing =
        server().run(listen().await.listener, FolderCertificate::new(folder.path()), Shutdown::new()).await;
    assert!(missing.unwrap_err().to_string().contains("tls.crt"));
    let (ca, listening, shutdown) = (write(), listen().await, Shutdown::new());
    configure(&bed, &VALIDATING, &format!("{}/inspect", listening.url), Some(&ca)).await;
    let server = server().run(listening.listener, FolderCertificate::new(folder.path()), shutdown.clone());
    let test = async {
        until("the webhook is called", async || is_denied(&bed).await).await;
        let renewed = write();
        let path = "/webhooks/0/clientConfig/caBundle".to_owned();
        let inject = [PatchOperation::Replace { path, value: STANDARD.encode(renewed).into() }];
        bed.cluster_objects(&VALIDATING).json_patch::<Value>(&bed.namespace, &inject).await.unwrap();
        until("the new certificate is served", async || is_denied(&bed).await).await;
        shutdown.request();
    };
    let (ended, ()) = tokio::join!(server, test);
    ended.unwrap();
}
