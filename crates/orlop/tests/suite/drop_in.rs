//! The program under the names `kube-apiserver` and `etcd`, as launchers of test environments use it.

use std::{fs, path::PathBuf};

use futures::StreamExt;
use k8s_openapi::api::{
    authentication::v1::{SelfSubjectReview, TokenRequest},
    core::v1::{Event, Namespace, ServiceAccount},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
    runtime::wait::await_condition,
};
use tokio::time::timeout;

use crate::envtest::{Assets, free_port, run};
use crate::server::PATIENCE;

#[tokio::test]
async fn servers_with_the_same_etcd_and_prefix_share_objects_and_others_do_not() {
    let assets = Assets::new();
    let etcd = assets.etcd("etcd-data").await;
    let (first, second) = (assets.server(&etcd.url, &[]).await, assets.server(&etcd.url, &[]).await);
    let stranger = assets.server(&etcd.url, &["--etcd-prefix=/other"]).await;
    first.create("by-the-first").await;
    second.create("by-the-second").await;
    for server in [&first, &second] {
        assert_eq!(server.names().await, ["by-the-first", "by-the-second"]);
    }
    assert!(stranger.names().await.is_empty());
}

#[tokio::test]
async fn acknowledged_writes_survive_a_kill_and_a_fresh_folder_is_empty() {
    let assets = Assets::new();
    let mut etcd = assets.etcd("etcd-data").await;
    let mut server = assets.server(&etcd.url, &[]).await;
    server.create("kept").await;
    etcd.process.stop("KILL").await;
    server.process.stop("KILL").await;

    let again = assets.etcd("etcd-data").await;
    let mut server = assets.server(&again.url, &[]).await;
    assert_eq!(server.names().await, ["kept"]);
    server.process.stop("KILL").await;
    assert_eq!(assets.server(&again.url, &[]).await.names().await, ["kept"]);

    let fresh = assets.etcd("another").await;
    assert!(assets.server(&fresh.url, &[]).await.names().await.is_empty());
}

#[tokio::test]
async fn a_server_continues_after_etcd_restarts() {
    let assets = Assets::new();
    let mut etcd = assets.etcd("etcd-data").await;
    let server = assets.server(&etcd.url, &[]).await;
    server.create("before").await;
    etcd.process.stop("KILL").await;
    let arguments = [
        format!("--advertise-client-urls={}", etcd.url),
        format!("--data-dir={}", assets.text("etcd-data")),
        format!("--listen-client-urls={}", etcd.url),
    ];
    let _again = assets.start("etcd", &arguments);
    // Clients retry while the store is down.
    let made = async {
        while let Err(error) = server.try_to_create("after").await {
            if matches!(&error, kube::Error::Api(status) if status.is_already_exists()) {
                break;
            }
        }
    };
    timeout(PATIENCE, made).await.expect("the store is found again");
    assert_eq!(server.names().await, ["after", "before"]);
}

#[tokio::test]
async fn signals_stop_both_under_open_watches() {
    let assets = Assets::new();
    let mut etcd = assets.etcd("etcd-data").await;
    let mut server = assets.server(&etcd.url, &[]).await;
    let maps = server.configmaps();
    let mut watch = maps.watch(&kube::api::WatchParams::default(), "0").await.unwrap().boxed();
    let reading = async { while watch.next().await.is_some() {} };
    let (status, ()) = tokio::join!(server.process.stop("TERM"), reading);
    assert!(status.success(), "{status}: {}", server.process.log());
    let status = etcd.process.stop("TERM").await;
    assert!(status.success(), "{status}: {}", etcd.process.log());
}

#[tokio::test]
async fn shutdown_delay_fails_readyz_and_still_serves() {
    let assets = Assets::new();
    let etcd = assets.etcd("etcd-data").await;
    let server = assets.server(&etcd.url, &["--shutdown-delay-duration=1h"]).await;
    let ready = async || {
        let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
        server.client.request_text(request).await.is_ok()
    };
    let until = async |expected: bool| {
        let waiting = async { while ready().await != expected {} };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{expected}: {}", server.process.log()));
    };
    until(true).await;
    server.process.send("TERM").await;
    until(false).await;
    server.create("meanwhile").await;
    assert_eq!(server.names().await, ["meanwhile"]);
}

#[tokio::test]
async fn no_controllers_run() {
    let assets = Assets::new();
    let etcd = assets.etcd("etcd-data").await;
    let server = assets.server(&etcd.url, &[]).await;
    let namespaces: Api<Namespace> = Api::all(server.client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("ending".to_owned());
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    namespaces.delete("ending", &DeleteParams::default()).await.unwrap();
    // Far longer than `orlop up` needs to delete an empty namespace.
    for number in 0..50 {
        server.create(&format!("meanwhile-{number}")).await;
    }
    let ending = namespaces.get("ending").await.unwrap();
    assert_eq!(ending.status.and_then(|status| status.phase).as_deref(), Some("Terminating"));
}

#[tokio::test]
async fn events_expire_by_their_ttl() {
    let assets = Assets::new();
    let etcd = assets.etcd("etcd-data").await;
    let server = assets.server(&etcd.url, &["--event-ttl=1s"]).await;
    let events: Api<Event> = Api::namespaced(server.client.clone(), "default");
    let mut event = Event::default();
    event.metadata.name = Some("seen".to_owned());
    event.metadata.namespace = Some("default".to_owned());
    event.involved_object.namespace = Some("default".to_owned());
    events.create(&PostParams::default(), &event).await.unwrap();
    let gone = await_condition(events, "seen", |event: Option<&Event>| event.is_none());
    timeout(PATIENCE, gone).await.expect("it goes").unwrap();
}

#[tokio::test]
async fn service_account_tokens_are_valid_on_every_server_with_the_rights_of_their_roles() {
    let assets = Assets::new();
    let etcd = assets.etcd("etcd-data").await;
    let issuer = "--service-account-issuer=https://tokens.example";
    let (first, second) =
        (assets.server(&etcd.url, &[issuer]).await, assets.server(&etcd.url, &[issuer]).await);
    let accounts: Api<ServiceAccount> = Api::namespaced(first.client.clone(), "default");
    let mut account = ServiceAccount::default();
    account.metadata.name = Some("robot".to_owned());
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let asked =
        accounts.create_token_request("robot", &PostParams::default(), &TokenRequest::default()).await;
    let token = asked.unwrap().status.unwrap().token;

    let robot = assets.client_with_token(second.port, &token).await;
    let review = Api::<SelfSubjectReview>::all(robot.clone());
    let itself = review.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let user = itself.status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("system:serviceaccount:default:robot"));
    let refused = Api::<Namespace>::all(robot).list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.is_forbidden()), "{refused}");
}

#[tokio::test]
async fn an_authentication_configuration_allows_anonymous_requests_to_its_paths_only() {
    let assets = Assets::new();
    let etcd = assets.etcd("etcd-data").await;
    let path = assets.text("authentication.yaml");
    let paths = "anonymous: {enabled: true, conditions: [{path: /livez}]}";
    let file =
        format!("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n{paths}\n");
    fs::write(&path, file).unwrap();
    let flag = format!("--authentication-config={path}");
    let server = assets.server(&etcd.url, &[&flag]).await;
    let nobody = assets.client_with_token(server.port, "").await;
    let get = |path: &str| http::Request::get(path).body(Vec::new()).unwrap();
    assert_eq!(nobody.request_text(get("/livez")).await.unwrap(), "ok");
    let refused = nobody.request_text(get("/readyz")).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused}");
}

#[tokio::test]
async fn etcd_over_tls() {
    let assets = Assets::new();
    let file = |name: &str, text: &str| {
        fs::write(assets.path(name), text).unwrap();
        assets.text(name)
    };
    let authority = file("etcd-ca.pem", &assets.pki.ca);
    let url = format!("https://127.0.0.1:{}", free_port());
    let arguments = [
        format!("--advertise-client-urls={url}"),
        format!("--listen-client-urls={url}"),
        format!("--data-dir={}", assets.text("etcd-data")),
        format!("--cert-file={}", file("etcd.pem", &assets.pki.server.certificate)),
        format!("--key-file={}", file("etcd.key", &assets.pki.server.key)),
        format!("--trusted-ca-file={authority}"),
        "--client-cert-auth".to_owned(),
    ];
    let mut etcd = assets.start("etcd", &arguments);
    let (certificate, key) =
        (file("c.pem", &assets.pki.admin.certificate), file("c.key", &assets.pki.admin.key));
    let flags = [
        format!("--etcd-cafile={authority}"),
        format!("--etcd-certfile={certificate}"),
        format!("--etcd-keyfile={key}"),
    ];
    let server = assets.server(&url, &flags.each_ref().map(String::as_str)).await;
    etcd.must_run();
    server.create("over-tls").await;
    assert_eq!(server.names().await, ["over-tls"]);
}

#[tokio::test]
async fn help_and_version_have_the_texts_that_launchers_parse() {
    let assets = Assets::new();
    let (server, etcd) = (assets.path("kube-apiserver"), assets.path("etcd"));
    let orlop = PathBuf::from(env!("CARGO_BIN_EXE_orlop"));

    let (code, help, _) = run(&server, &["--help"]).await;
    let names_flag = |text: &str, flag: &str| text.lines().any(|line| line.trim_start().starts_with(flag));
    assert!(code == Some(0) && names_flag(&help, "--secure-port") && !names_flag(&help, "--insecure-port"));
    assert_eq!(run(&orlop, &["kube-apiserver", "--help"]).await.1, help);
    let (code, help, _) = run(&etcd, &["--help"]).await;
    assert!(code == Some(0) && names_flag(&help, "--unsafe-no-fsync"));
    assert_eq!(run(&orlop, &["etcd", "--help"]).await.1, help);

    let (code, version, _) = run(&server, &["--version"]).await;
    assert!(code == Some(0) && version.starts_with("Kubernetes v1.35."), "{version}");
    let (code, version, _) = run(&etcd, &["--version"]).await;
    assert!(code == Some(0) && version.starts_with("etcd Version: 3."), "{version}");

    let unknown = (Some(1), String::new(), "Error: unknown flag: --nonsense\n".to_owned());
    assert_eq!(run(&server, &["--nonsense=1"]).await, unknown);
    let (code, _, errors) = run(&etcd, &["--nonsense"]).await;
    assert!(code == Some(2) && errors.starts_with("flag provided but not defined: -nonsense\n"), "{errors}");
    let (code, _, errors) = run(&server, &["--secure-port=0"]).await;
    assert!(code == Some(1) && errors.contains("--etcd-servers must be specified"), "{errors}");
}
