//! Several API servers on one PostgreSQL database.

use std::{collections::BTreeSet, fs::Permissions, os::unix::fs::PermissionsExt, process::Stdio};

use pgtest::PgServer;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::timeout,
};

use crate::{
    kubectl,
    server::{PATIENCE, Server},
};

#[tokio::test]
async fn a_commit_of_one_server_reaches_watches_of_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = PgServer::start().unwrap();
    let url = postgres.create_database().unwrap();
    // Without controllers a namespace has only the objects of the test.
    let alone = ["--postgres", &url, "--controllers="];
    let first = Server::start("serve", &folder.path().join("first"), &alone).await;
    let second = Server::start("serve", &folder.path().join("second"), &alone).await;
    assert!(!folder.path().join("first/orlop.db").exists(), "all data is in PostgreSQL");

    kubectl::run(&first, "create configmap seen-at-once").await;
    kubectl::run(&second, "get configmap seen-at-once").await;

    let mut watch = kubectl::command(&second)
        .args(["get", "configmaps", "--watch", "--output=name"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = timeout(PATIENCE, seen.next_line()).await.expect("an event comes");
        line.unwrap().expect("the watch goes on")
    };
    assert_eq!(next().await, "configmap/seen-at-once");
    kubectl::run(&first, "create configmap seen-by-watch").await;
    assert_eq!(next().await, "configmap/seen-by-watch");
}

#[tokio::test]
async fn the_postgresql_address_is_read_from_a_file_and_a_password_argument_is_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = PgServer::start().unwrap();
    let url = postgres.create_database().unwrap();
    let (scheme, rest) = url.split_once("://").unwrap();
    let (user, place) = rest.split_once('@').unwrap();
    let user = user.split(':').next().unwrap();
    let with_password = format!("{scheme}://{user}:s3cret@{place}");
    let file = folder.path().join("address");
    std::fs::write(&file, format!("{with_password}\n")).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let by_file = ["--postgres-file", file.to_str().unwrap(), "--controllers="];
    let first = Server::start("serve", &folder.path().join("first"), &by_file).await;
    assert!(!first.log().contains("WARN"), "{}", first.log());
    kubectl::run(&first, "create configmap in-postgresql").await;
    let typed = ["--postgres", &with_password, "--controllers="];
    let second = Server::start("serve", &folder.path().join("second"), &typed).await;
    kubectl::run(&second, "get configmap in-postgresql").await;
    let log = second.log();
    assert!(log.contains("the password in --postgres is visible") && !log.contains("s3cret"), "{log}");
}

#[tokio::test]
async fn concurrent_servers_never_allocate_an_address_or_port_twice() {
    const EACH: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let postgres = PgServer::start().unwrap();
    let url = postgres.create_database().unwrap();
    let first = Server::start("serve", &folder.path().join("first"), &["--postgres", &url]).await;
    let second = Server::start("serve", &folder.path().join("second"), &["--postgres", &url]).await;
    let create = |prefix: &str| {
        let service = |number| {
            let metadata = json!({"name": format!("{prefix}{number}"), "labels": {"made": "here"}});
            let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
        };
        let services: Vec<_> = (0..EACH).map(service).collect();
        let path = folder.path().join(format!("{prefix}.json"));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": services});
        std::fs::write(&path, list.to_string()).unwrap();
        format!("create --filename={}", path.display())
    };
    let (by_first, by_second) = (create("a"), create("b"));
    tokio::join!(kubectl::run(&first, &by_first), kubectl::run(&second, &by_second));
    for field in ["clusterIP", "ports[0].nodePort"] {
        let query = format!("get services --selector=made=here --output=jsonpath={{.items[*].spec.{field}}}");
        let shown = kubectl::run(&first, &query).await;
        let distinct: BTreeSet<&str> = shown.split_whitespace().collect();
        assert_eq!(distinct.len(), 2 * EACH, "{field}: {shown}");
    }
}

/// The holder of the controllers' Lease.
async fn holder(server: &Server) -> String {
    let line = "get lease orlop-controllers --namespace=kube-system --ignore-not-found --output=jsonpath={.spec.holderIdentity}";
    kubectl::run(server, line).await
}

async fn until_held_by(asked: &Server, expected: &Server) {
    let holds = async { while !holder(asked).await.starts_with(&format!("{}_", expected.address)) {} };
    timeout(PATIENCE, holds).await.expect("it takes over");
}

#[tokio::test]
async fn one_server_runs_the_controllers_and_another_takes_over_when_it_is_killed_or_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = PgServer::start().unwrap();
    let url = postgres.create_database().unwrap();
    let start =
        async |name: &str| Server::start("serve", &folder.path().join(name), &["--postgres", &url]).await;
    let mut first = start("first").await;
    until_held_by(&first, &first).await;
    let mut second = start("second").await;
    for name in ["one", "two"] {
        kubectl::run(&second, &format!("create namespace {name}")).await;
    }
    first.stop("KILL").await;
    kubectl::run(&second, "delete namespace one").await;
    until_held_by(&second, &second).await;

    let third = start("third").await;
    assert!(second.stop("TERM").await.success());
    kubectl::run(&third, "delete namespace two").await;
    until_held_by(&third, &third).await;
}

/// The ports of the endpoints of the service `kubernetes`, by its Endpoints and by its EndpointSlices.
async fn led_to(asked: &Server) -> [BTreeSet<String>; 2] {
    let endpoints = "get endpoints kubernetes --output=jsonpath={.subsets[*].ports[*].port}";
    let slices = "get endpointslices --selector=kubernetes.io/service-name=kubernetes --output=jsonpath={.items[*].ports[*].port}";
    let ports = async |line| kubectl::run(asked, line).await.split_whitespace().map(str::to_owned).collect();
    [ports(endpoints).await, ports(slices).await]
}

async fn until_led_to(asked: &Server, servers: &[&Server]) {
    let port = |server: &&Server| server.address.rsplit(':').next().expect("it has one").to_owned();
    let expected: BTreeSet<String> = servers.iter().map(port).collect();
    let told = async { while led_to(asked).await != [expected.clone(), expected.clone()] {} };
    timeout(PATIENCE, told).await.expect("the service leads to the servers that are there");
}

#[tokio::test]
async fn the_kubernetes_service_has_the_endpoints_of_the_running_servers() {
    const LEASES: &str = "get leases --namespace=kube-system --selector=apiserver.kubernetes.io/identity=kube-apiserver --output=jsonpath={.items[*].metadata.uid}";
    let leases = async |asked: &Server| -> BTreeSet<String> {
        kubectl::run(asked, LEASES).await.split_whitespace().map(str::to_owned).collect()
    };
    let folder = tempfile::tempdir().unwrap();
    let postgres = PgServer::start().unwrap();
    let url = postgres.create_database().unwrap();
    let start =
        async |name: &str| Server::start("serve", &folder.path().join(name), &["--postgres", &url]).await;
    let first = start("first").await;
    let mut second = start("second").await;
    let mut third = start("third").await;
    until_led_to(&first, &[&first, &second, &third]).await;
    assert!(third.stop("TERM").await.success());
    until_led_to(&first, &[&first, &second]).await;
    let left = leases(&first).await;
    assert_eq!(left.len(), 2, "it took its lease along");

    second.stop("KILL").await;
    until_led_to(&first, &[&first]).await;
    assert_eq!(
        leases(&first).await,
        left,
        "that of a dead server has its time, and a renewed one is the same"
    );
    kubectl::run(&first, "delete service kubernetes").await;
    let back =
        async { while kubectl::run(&first, "get service kubernetes --ignore-not-found").await.is_empty() {} };
    timeout(PATIENCE, back).await.expect("a server sees to it that its service is there");
    until_led_to(&first, &[&first]).await;
}

#[tokio::test]
async fn crds_and_field_ownership_are_the_same_on_every_server() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = PgServer::start().unwrap();
    let url = postgres.create_database().unwrap();
    let first = Server::start("serve", &folder.path().join("first"), &["--postgres", &url]).await;
    let second = Server::start("serve", &folder.path().join("second"), &["--postgres", &url]).await;
    let ship = |masts: u32| {
        let path = folder.path().join(format!("{masts}.yaml"));
        let head = "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: beagle}";
        std::fs::write(&path, format!("{head}\nspec: {{masts: {masts}}}\n")).unwrap();
        format!("apply --server-side --filename={}", path.display())
    };
    kubectl::run(&first, "apply --server-side --filename=examples/ships/crd.yaml").await;
    let apply = format!("{} --field-manager=one", ship(3));
    let served = async {
        // The other server's informer follows, a moment later.
        while !kubectl::output(&second, &apply).await.status.success() {}
    };
    timeout(PATIENCE, served).await.expect("the kind is served by the other server");
    let refused = kubectl::output(&first, &format!("{} --field-manager=two", ship(2))).await;
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("conflict with \"one\": .spec.masts"), "{errors}");
    let refused = kubectl::output(&second, &format!("{} --field-manager=one", ship(9))).await;
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("no ship has so many masts"), "{errors}");
    kubectl::run(&first, &format!("{} --field-manager=two --force-conflicts", ship(2))).await;
    let fields = "--output=jsonpath={.items[*].spec.masts}/{.items[*].metadata.managedFields[*].manager}";
    let seen = kubectl::run(&second, &format!("get ships --field-selector=spec.rig=square {fields}")).await;
    assert_eq!(seen, "2/two");
}
