//! The cluster controllers of a server: the namespace controller leaves nothing behind, and the garbage collector deletes dependents.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod garbage_collector;

use std::time::Duration;

use apiserver::ApiService;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use pgtest::PgServer;
use serde_json::{Value, json};
use server::{Config, PostgresUrl, Server, Storage, loopback};
use store::Durability;
use tokio::task::JoinSet;
use tower_service::Service;

/// Far longer than the deletion of a namespace takes on a busy machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Servers on one database, each with its own controllers.
struct Servers {
    running: Vec<Server>,
    apis: Vec<ApiService>,
}

impl Servers {
    async fn on(databases: &[Storage]) -> Self {
        let mut servers = Self { running: vec![], apis: vec![] };
        for storage in databases {
            let config = Config { storage: storage.clone(), ..Config::in_memory() };
            let server = Server::start(config).await.unwrap();
            servers.apis.push(server.service(loopback::administrator()));
            servers.running.push(server);
        }
        servers
    }

    async fn stop(self) {
        for server in self.running {
            server.shutdown().await.unwrap();
        }
    }
}

async fn call(api: &ApiService, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(path).body(Full::from(body)).unwrap();
    let response = api.clone().call(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// Creates objects until the namespace is gone. Returns the newest revision of them.
async fn fill(api: ApiService, path: String) -> u64 {
    let mut newest = 0;
    loop {
        match call(&api, Method::POST, &path, &json!({"metadata": {"generateName": "c-"}})).await {
            (201, made) => newest = version(&made),
            (403, refused) => assert_eq!(refused["details"]["causes"][0]["reason"], "NamespaceTerminating"),
            (404, _) => return newest,
            other => panic!("{other:?}"),
        }
    }
}

/// Deletes a namespace while many clients create objects in it.
async fn end_while_filled(apis: &[ApiService], name: &str) {
    let namespaces = "/api/v1/namespaces";
    let (path, content) = (format!("{namespaces}/{name}"), format!("{namespaces}/{name}/configmaps"));
    let (code, _) = call(&apis[0], Method::POST, namespaces, &json!({"metadata": {"name": name}})).await;
    assert_eq!(code, 201);
    let mut clients = JoinSet::new();
    for client in 0..32 {
        clients.spawn(fill(apis[client % apis.len()].clone(), content.clone()));
    }
    let full = async || {
        let (_, list) = call(&apis[0], Method::GET, &content, &Value::Null).await;
        list["items"].as_array().is_some_and(|items| items.len() > 100)
    };
    while !full().await {
        tokio::task::yield_now().await;
    }
    let (code, ending) = call(&apis[0], Method::DELETE, &path, &Value::Null).await;
    assert_eq!((code, &ending["status"]["phase"]), (200, &json!("Terminating")));
    let newest = clients.join_all().await.into_iter().max();
    assert!(newest < Some(version(&ending)), "{newest:?} was created in a terminating namespace: {ending}");
    let (_, left) = call(&apis[0], Method::GET, &content, &Value::Null).await;
    assert_eq!(left["items"], json!([]));
}

/// Waits until something holds.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

async fn check(databases: &[Storage]) {
    let servers = Servers::on(databases).await;
    for round in 0..4 {
        let name = format!("n{round}");
        let ending = end_while_filled(&servers.apis, &name);
        tokio::time::timeout(PATIENCE, ending).await.expect("the namespace ends");
    }
    servers.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_deleted_while_clients_create_objects_ends_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orlop.db");
    check(&[Storage::Sqlite { path, durability: Durability::Process }]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_deleted_while_clients_of_two_servers_create_objects_ends_empty() {
    let postgres = PgServer::start().unwrap();
    let url = postgres.create_database().unwrap();
    let database = || Storage::Postgres(PostgresUrl { url: url.clone(), passfile: None });
    check(&[database(), database()]).await;
}
