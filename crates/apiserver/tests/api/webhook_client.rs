//! The webhook client: protocols, connections, addresses, credentials, timeouts.

use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Version};
use kinds::admission::configuration::AdmissionConfiguration;
use model::{Attributes, Encoded, ObjectKey, Resource, Uid};
use process::pki::Identity;
use serde_json::json;
use store::Write;
use tokio::task::JoinSet;

use crate::admission_webhooks::{VALIDATING, configure, hook, map, usual};
use crate::client::{CONFIGMAPS, Client};
use crate::webhook_server::Webhook;

const HTTP2: [&str; 2] = ["h2", "http/1.1"];

/// Creates ConfigMaps concurrently.
async fn make(client: &Client, names: std::ops::Range<usize>) {
    let mut callers = JoinSet::new();
    for name in names {
        let caller = client
            .as_caller(apiserver::auth::Identity::authenticated("admin", ["system:masters".to_owned()]));
        callers.spawn(async move { caller.post(CONFIGMAPS, &map(&format!("m-{name}"))).await.code });
    }
    while let Some(code) = callers.join_next().await {
        assert_eq!(code.unwrap(), 201);
    }
}

/// Lets the tasks of this thread process their sockets.
async fn settle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn calls_share_one_http2_connection_where_the_server_offers_it() {
    let (client, webhook) = (Client::new().await, Webhook::offering(&HTTP2, usual).await);
    configure(&client, VALIDATING, "v", vec![hook(&webhook, "v", "/allow")]).await;
    make(&client, 0..1).await;
    make(&client, 1..20).await;
    let heads = webhook.take_heads();
    assert_eq!(heads.len(), 20);
    assert!(heads.iter().all(|head| head.version == Version::HTTP_2), "{heads:?}");
    assert_eq!(webhook.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn http1_connections_are_kept_and_used_again() {
    let (client, webhook) = (Client::new().await, Webhook::start(usual).await);
    configure(&client, VALIDATING, "v", vec![hook(&webhook, "v", "/allow")]).await;
    for name in 0..10 {
        make(&client, name..name + 1).await;
    }
    assert_eq!(webhook.connections.load(Ordering::SeqCst), 1);
    make(&client, 10..40).await;
    let opened = webhook.connections.load(Ordering::SeqCst);
    make(&client, 40..50).await;
    assert_eq!(webhook.connections.load(Ordering::SeqCst), opened, "there are enough of them by now");
    assert!(webhook.take_heads().iter().all(|head| head.version == Version::HTTP_11));
}

/// A self-signed certificate for a Service.
fn identity(name: &str) -> Identity {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let certificate = x509::pem::encode(x509::pem::CERTIFICATE, made.cert.der());
    let key = x509::pem::encode("PRIVATE KEY", made.signing_key.serialized_der());
    Identity { certificate, key }
}

/// Writes a slice of the Service `hook` with a loopback address, which the API would refuse.
fn slice(at: usize, port: u16, is_ready: bool) -> Write {
    let name = format!("hook-{at:04}");
    let slice = json!({
        "metadata": {"name": name, "namespace": "default"}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": is_ready}}], "ports": [{"name": "", "port": port}],
    });
    let label = ("kubernetes.io/service-name".to_owned(), "hook".to_owned());
    Write::Create {
        key: ObjectKey::new(&Resource::new("discovery.k8s.io", "endpointslices"), "default", &name),
        uid: Uid(name.clone()),
        attributes: Attributes::new(vec![label], Vec::new()),
        body: Encoded::new(slice.as_object().unwrap()),
    }
}

/// Configures a webhook at the Service `hook`.
async fn configure_service(client: &Client, webhook: &Webhook) {
    let service = json!({"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}});
    client.create("/api/v1/namespaces/default/services", &service).await;
    let mut one = hook(webhook, "v", "/allow");
    let reference = json!({"namespace": "default", "name": "hook", "path": "/allow", "port": 443});
    one["clientConfig"] = json!({"service": reference, "caBundle": one["clientConfig"]["caBundle"]});
    configure(client, VALIDATING, "v", vec![one]).await;
}

#[tokio::test]
async fn the_ready_endpoint_of_a_service_is_found_behind_many_others() {
    let (client, own) = (Client::new().await, identity("hook.default.svc"));
    let webhook = Webhook::with(&own, &own.certificate, &HTTP2, usual).await;
    let port = webhook.address.port();
    let slices = (0..=600).map(|at| slice(at, port, at == 600)).collect();
    client.store.write(slices).await.unwrap();
    configure_service(&client, &webhook).await;
    make(&client, 0..1).await;
    assert_eq!(webhook.take_heads().len(), 1);
}

#[tokio::test]
async fn calls_are_spread_over_the_endpoints_of_a_service() {
    for protocols in [&HTTP2[..], &["http/1.1"]] {
        let client = Client::new().await;
        let own = identity("hook.default.svc");
        let mut webhooks = Vec::new();
        for _ in 0..3 {
            webhooks.push(Webhook::with(&own, &own.certificate, protocols, usual).await);
        }
        let slices = webhooks.iter().enumerate().map(|(at, to)| slice(at, to.address.port(), true));
        client.store.write(slices.collect()).await.unwrap();
        configure_service(&client, &webhooks[0]).await;
        for name in 0..12 {
            make(&client, name..name + 1).await;
        }
        let counts: Vec<usize> = webhooks.iter().map(|webhook| webhook.take_heads().len()).collect();
        assert!(counts.iter().all(|count| *count >= 2), "{counts:?}");
        let mut gone = webhooks.remove(0);
        gone.stop().await;
        settle().await;
        for name in 12..24 {
            make(&client, name..name + 1).await;
        }
    }
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_is_replaced() {
    for protocols in [&HTTP2[..], &["http/1.1"]] {
        let client = Client::new().await;
        let own = identity("127.0.0.1");
        let webhook = Webhook::with(&own, &own.certificate, protocols, usual).await;
        configure(&client, VALIDATING, "v", vec![hook(&webhook, "v", "/allow")]).await;
        make(&client, 0..5).await;
        webhook.hang_up().await;
        settle().await;
        make(&client, 5..10).await;
        assert_eq!(webhook.take_heads().len(), 10);
    }
}

#[tokio::test]
async fn a_cancelled_call_leaves_nothing_open() {
    let (client, webhook) = (Client::new().await, Webhook::start(usual).await);
    configure(&client, VALIDATING, "v", vec![hook(&webhook, "v", "/hang")]).await;
    let mut calls = JoinSet::new();
    let caller =
        client.as_caller(apiserver::auth::Identity::authenticated("admin", ["system:masters".to_owned()]));
    calls.spawn(async move { caller.post(CONFIGMAPS, &map("a")).await.code });
    while webhook.heads.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(webhook.open.load(Ordering::SeqCst), 1);
    calls.shutdown().await;
    while webhook.open.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_call_has_the_smaller_of_its_own_time_and_what_is_left_of_the_request() {
    let (client, webhook) = (Client::new().await, Webhook::start(usual).await);
    let mut hooks = vec![hook(&webhook, "a", "/allow")];
    hooks[0]["timeoutSeconds"] = 7.into();
    configure(&client, VALIDATING, "v", hooks).await;
    for (query, expected) in
        [("", "timeout=7s"), ("?timeout=30s", "timeout=7s"), ("?timeout=3s", "timeout=3s")]
    {
        let body = json!({"metadata": {"generateName": "m-"}}).to_string();
        let path = format!("{CONFIGMAPS}{query}");
        assert_eq!(client.send(Method::POST, &path, &[], body.as_bytes()).await.code, 201);
        assert_eq!(webhook.take_heads().pop().unwrap().query, expected);
    }
}

#[tokio::test]
async fn credentials_come_from_the_kubeconfig_of_the_admission_configuration() {
    let webhook = Webhook::offering(&HTTP2, usual).await;
    let own = identity("client");
    let pair = json!({
        "client-certificate": "/pki/tls.crt",
        "client-key-data": STANDARD.encode(&own.key),
    });
    for (user, authorization, has_certificate) in [
        (json!({"token": "secret-token"}), "Bearer secret-token", false),
        (json!({"username": "u", "password": "p"}), "Basic dTpw", false),
        (pair, "", true),
    ] {
        let users = json!({"users": [{"name": webhook.address.to_string(), "user": user}]}).to_string();
        let certificate = own.certificate.clone();
        let load = |path: &str| match path {
            "/etc/hooks.kubeconfig" => Ok(users.clone().into_bytes()),
            "/pki/tls.crt" => Ok(certificate.clone().into_bytes()),
            other => Err(other.to_owned()),
        };
        let file = br#"{
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
            "plugins": [{"name": "ValidatingAdmissionWebhook", "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
                "kubeConfigFile": "/etc/hooks.kubeconfig"}}]}"#;
        let configuration = AdmissionConfiguration::read(file, &|_| true, &load).unwrap();
        assert!(!format!("{configuration:?}").contains("secret"), "{configuration:?}");
        let client = Client::with(|builder| builder.admission_configuration(configuration)).await;
        configure(&client, VALIDATING, "v", vec![hook(&webhook, "v", "/allow")]).await;
        make(&client, 0..1).await;
        let head = webhook.take_heads().pop().unwrap();
        assert_eq!((head.authorization.as_str(), head.has_certificate), (authorization, has_certificate));
    }
}
