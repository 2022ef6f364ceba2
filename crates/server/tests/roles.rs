//! A product as a role in the process of a server: rights, CRD, route, readiness, restart and stop.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
};
use mount::{Body, Mount};
use role::{BoxError, Role, RoleContext};
use serde_json::{Value, json};
use server::{Config, Server, loopback};
use tokio::sync::watch;
use tower_service::Service;

/// Far longer than a start takes on a busy machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The shared state of the role and the test.
struct Ships {
    starts: AtomicUsize,
    may_work: watch::Sender<bool>,
    has_stopped: AtomicBool,
}

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "ships", "kind": "Ship"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    })
}

fn role(ships: &Arc<Ships>) -> Role {
    let ships = Arc::clone(ships);
    Role::new("ships", move |context| run(Arc::clone(&ships), context))
        .crd(crd())
        .rule(json!({"apiGroups": ["example.com"], "resources": ["ships"], "verbs": ["list"]}))
        .rule(json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}))
        .mount(Mount::new(
            "/ships/v1",
            |call| async move { Response::new(Body::from(call.path().to_owned())) },
        ))
}

async fn run(ships: Arc<Ships>, context: RoleContext) -> Result<(), BoxError> {
    if ships.starts.fetch_add(1, Ordering::SeqCst) == 0 {
        return Err("the first start fails".into());
    }
    ships.may_work.subscribe().wait_for(|may_work| *may_work).await?;
    let gvk = kube::api::GroupVersionKind::gvk("example.com", "v1", "Ship");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "ships");
    let all: Api<DynamicObject> = Api::all_with(context.client.clone(), &resource);
    all.list(&ListParams::default()).await?;
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), "default");
    let map = serde_json::from_value(json!({"metadata": {"name": "harbour"}, "data": {"depth": "9 m"}}))?;
    maps.create(&PostParams::default(), &map).await?;
    let secrets: Api<Secret> = Api::all(context.client.clone());
    match secrets.list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 403 => context.readiness.ready(),
        other => return Err(format!("the role may read Secrets: {other:?}").into()),
    }
    context.shutdown.requested().await;
    ships.has_stopped.store(true, Ordering::SeqCst);
    Ok(())
}

async fn get(server: &Server, path: &str) -> (StatusCode, String) {
    let request = Request::get(path).body(Empty::new()).unwrap();
    let response = server.service(loopback::administrator()).call(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Waits until `/readyz?verbose` has this line.
async fn until_readyz_has(server: &Server, line: &str) -> StatusCode {
    let waiting = async {
        loop {
            let (status, body) = get(server, "/readyz?verbose").await;
            if body.lines().any(|found| found == line) {
                return status;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("/readyz never has {line}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_runs_with_its_own_rights_and_is_restarted_and_stopped() {
    let ships = Arc::new(Ships {
        starts: AtomicUsize::new(0),
        may_work: watch::Sender::new(false),
        has_stopped: AtomicBool::new(false),
    });
    let server = Server::start(Config { roles: vec![role(&ships)], ..Config::in_memory() }).await.unwrap();

    let status = until_readyz_has(&server, "[-]role/ships failed: reason withheld").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(get(&server, "/livez/role/ships").await.0, StatusCode::NOT_FOUND);
    // The routes of a role do not wait for it.
    assert_eq!(get(&server, "/ships/v1/fleet").await, (StatusCode::OK, "/fleet".to_owned()));

    ships.may_work.send_replace(true);
    until_readyz_has(&server, "[+]role/ships ok").await;
    assert_eq!(get(&server, "/readyz/role/ships").await, (StatusCode::OK, "ok".to_owned()));
    assert!(ships.starts.load(Ordering::SeqCst) >= 2, "the role was restarted");
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    let managers = maps.get("harbour").await.unwrap().metadata.managed_fields.unwrap();
    assert_eq!(managers[0].manager.as_deref(), Some("orlop-ships"));

    server.shutdown().await.unwrap();
    assert!(ships.has_stopped.load(Ordering::SeqCst), "the stop waits for the role");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_does_not_stop_delays_the_server_only_for_its_grace_period() {
    let deaf = Role::new("deaf", |context: RoleContext| async move {
        context.readiness.ready();
        std::future::pending().await
    });
    let config = Config { roles: vec![deaf], ..Config::in_memory() };
    let request_timeout = config.limits.request_timeout;
    let server = Server::start(config).await.unwrap();
    until_readyz_has(&server, "[+]role/deaf ok").await;
    let stopped = tokio::time::timeout(request_timeout, server.shutdown()).await;
    stopped.expect("the server stops without the role").unwrap();
}
