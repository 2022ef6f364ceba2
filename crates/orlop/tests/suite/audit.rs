//! The audit log of a running server.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{PostParams, WatchParams},
};
use serde_json::Value;

use crate::{
    envtest::{self, Assets},
    kube_rs::client,
    server::{self, Server},
};

const POLICY: &str = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [\
    {level: None, userGroups: ['system:serviceaccounts']}, \
    {level: Request, resources: [{resources: [configmaps]}]}, {level: Metadata}]}";

/// The audit events of requests with this verb to ConfigMaps that came over a connection; those of
/// controllers do not.
fn events(log: &Path, verb: &str) -> Vec<Value> {
    let text = fs::read_to_string(log).expect("there is a log");
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is an event"));
    let is_meant = |event: &Value| {
        event["verb"] == verb
            && event["objectRef"]["resource"] == "configmaps"
            && event["sourceIPs"].is_array()
    };
    events.filter(is_meant).collect()
}

fn stages(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["stage"].as_str().expect("an event has a stage")).collect()
}

#[tokio::test]
async fn every_request_is_in_the_audit_log_up_to_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let [policy, log] = ["policy.yaml", "logs/audit.log"].map(|name| folder.path().join(name));
    fs::write(&policy, POLICY).unwrap();
    let flags = ["--audit-policy-file", policy.to_str().unwrap(), "--audit-log-path", log.to_str().unwrap()];
    let mut server = Server::start("up", &folder.path().join("data"), &flags).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await);
    let mut watch = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let map: ConfigMap = serde_json::from_value(serde_json::json!({"metadata": {"name": "one"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    watch.next().await.unwrap().unwrap();
    let reading = async { while watch.next().await.is_some() {} };
    let (status, ()) = tokio::join!(server.stop("TERM"), reading);
    assert!(status.success(), "{}", server.log());

    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    let made = events(&log, "create");
    assert_eq!(stages(&made), ["RequestReceived", "ResponseComplete"]);
    assert_eq!(made[0]["auditID"], made[1]["auditID"]);
    assert_eq!(made[1]["objectRef"]["name"], "one");
    assert_eq!(made[1]["requestObject"]["kind"], "ConfigMap");
    assert_eq!(made[1]["responseStatus"]["code"], 201);
    assert_eq!(made[1]["sourceIPs"], serde_json::json!(["127.0.0.1"]));
    assert_eq!(made[1]["annotations"]["authorization.k8s.io/decision"], "allow");
    let watched = events(&log, "watch");
    assert_eq!(stages(&watched), ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
}

#[tokio::test]
async fn an_unwritable_audit_log_prevents_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (good, bad) = (file("good.yaml", POLICY), file("bad.yaml", "{apiVersion: audit.k8s.io/v1}"));
    let data = folder.path().join("data").display().to_string();
    let within = format!("{good}/log");
    for (policy, log, expected) in [
        (
            &bad,
            "-",
            format!("loading audit policy file: loaded illegal policy with 0 rules: from file {bad}"),
        ),
        (&good, within.as_str(), format!("cannot write the audit log {within}")),
    ] {
        let arguments = [
            "up",
            "--data",
            &data,
            "--listen",
            "127.0.0.1:0",
            "--audit-policy-file",
            policy,
            "--audit-log-path",
            log,
        ];
        let output = server::run(&arguments).await;
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(&expected), "{told}");
    }
}

#[tokio::test]
async fn kube_apiserver_accepts_the_audit_flags() {
    let assets = Assets::new();
    fs::write(assets.path("policy.yaml"), POLICY).unwrap();
    let etcd = assets.etcd("etcd-data").await;
    let [policy, log] = ["policy.yaml", "audit.log"].map(|name| assets.text(name));
    let flags = [format!("--audit-policy-file={policy}"), format!("--audit-log-path={log}")];
    let mut server = assets.server(&etcd.url, &[&flags[0], &flags[1]]).await;
    server.create("one").await;
    assert!(server.process.stop("TERM").await.success(), "{}", server.process.log());
    assert_eq!(stages(&events(&assets.path("audit.log"), "create")), ["RequestReceived", "ResponseComplete"]);
    let legacy = ["--audit-log-path=-", "--audit-log-format=legacy", "--audit-log-maxage=-1"];
    let (code, _, told) = envtest::run(&assets.path("kube-apiserver"), &legacy).await;
    assert_eq!(code, Some(1));
    for expected in [
        "--audit-log-format=legacy is not supported: use json",
        "--audit-log-maxage -1 can't be a negative number",
    ] {
        assert!(told.contains(expected), "{told}");
    }
}
