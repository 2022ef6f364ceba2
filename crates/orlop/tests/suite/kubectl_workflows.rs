//! Everyday kubectl workflows, with several versions of kubectl: create, apply, edit, roll out, explain,
//! delete.

use std::{fs, path::PathBuf};

use crate::clients::{Client, from_go, unpacked_from_debian};
use crate::server::Server;

const MANIFEST: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {key: first}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: 'nginx:1', ports: [{containerPort: 80}]}
      - {name: side, image: 'busybox:1'}
";

/// The session, from the first `create` to the last `delete`.
async fn session(program: PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start("serve", &folder.path().join("data"), &[]).await;
    let kubectl = Client { program, server: &server, folder: folder.path() };
    let manifest = folder.path().join("web.yaml");
    fs::write(&manifest, MANIFEST).expect("the folder is ours");

    kubectl.expect("api-resources", "deployments").await;
    kubectl.expect("create deployment plain --image=nginx", "deployment.apps/plain created").await;
    kubectl.expect("apply -f web.yaml", "deployment.apps/web created").await;
    fs::write(&manifest, MANIFEST.replace("busybox:1", "busybox:2")).expect("the folder is ours");
    let (code, difference, _) = kubectl.output("diff -f web.yaml").await;
    assert_eq!(code, Some(1), "{difference}");
    assert!(
        difference.contains("-      - image: busybox:1") && difference.contains("+      - image: busybox:2"),
        "{difference}"
    );
    let again = kubectl.run("apply -f web.yaml").await;
    assert_eq!(again, "configmap/settings unchanged\ndeployment.apps/web configured\n");
    kubectl.expect("apply --server-side -f web.yaml", "deployment.apps/web serverside-applied").await;
    changes(&kubectl).await;
    views(&kubectl).await;
    shared(&kubectl).await;
    kubectl.expect("delete -f web.yaml", "deployment.apps \"web\" deleted").await;
    kubectl.run("wait --for=condition=Available apiservice/v1.apps --timeout=30s").await;
    let (code, _, errors) = kubectl.output("get deployment web").await;
    assert_eq!(
        (code, errors.trim()),
        (Some(1), "Error from server (NotFound): deployments.apps \"web\" not found")
    );
}

async fn changes(kubectl: &Client<'_>) {
    kubectl.expect("edit configmap settings", "configmap/settings edited").await;
    kubectl.expect("get configmap settings -o jsonpath={.data.key}", "edited").await;
    kubectl.expect("scale deployment web --replicas=5", "deployment.apps/web scaled").await;
    kubectl.expect("label deployment web tier=front", "labeled").await;
    kubectl.expect("annotate deployment web note=seen", "annotated").await;
    kubectl.expect("set image deployment/web main=nginx:2", "image updated").await;
    for (kind, patch) in [
        (
            "strategic",
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox:3"}]}}}}"#,
        ),
        ("merge", r#"{"spec":{"minReadySeconds":7}}"#),
        ("json", r#"[{"op":"replace","path":"/spec/revisionHistoryLimit","value":3}]"#),
    ] {
        kubectl.expect(&format!("patch deployment web --type={kind} -p '{patch}'"), "patched").await;
    }
    let fields = "{.spec.replicas} {.spec.minReadySeconds} {.spec.revisionHistoryLimit} {.spec.template.spec.containers[*].image}";
    let line = format!("get deployment web -o 'jsonpath={fields}'");
    assert_eq!(kubectl.run(&line).await, "5 7 3 nginx:2 busybox:3");
}

/// Two field managers of one object.
async fn shared(kubectl: &Client<'_>) {
    let manifest = |two: &str| {
        let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}";
        let text = format!("{head}\ndata: {{one: '1', two: '{two}'}}\n");
        fs::write(kubectl.folder.join("shared.yaml"), text).expect("the folder is ours");
    };
    manifest("1");
    kubectl.expect("apply --server-side -f shared.yaml", "configmap/shared serverside-applied").await;
    kubectl.run("apply --server-side --field-manager=other -f shared.yaml").await;
    manifest("2");
    let (code, _, errors) = kubectl.output("apply --server-side -f shared.yaml").await;
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("conflict with \"other\": .data.two"), "{errors}");
    let (code, difference, _) = kubectl.output("diff --server-side --force-conflicts -f shared.yaml").await;
    assert_eq!(code, Some(1), "{difference}");
    assert!(difference.contains("-  two: \"1\"\n+  two: \"2\""), "{difference}");
    kubectl.run("apply --server-side --force-conflicts -f shared.yaml").await;
    let owned = |manager: &str| {
        let fields = format!("{{.metadata.managedFields[?(@.manager==\"{manager}\")].fieldsV1}}");
        format!("get configmap shared -o 'jsonpath={fields}'")
    };
    assert_eq!(kubectl.run(&owned("kubectl")).await, r#"{"f:data":{"f:one":{},"f:two":{}}}"#);
    assert_eq!(kubectl.run(&owned("other")).await, r#"{"f:data":{"f:one":{}}}"#);
}

async fn views(kubectl: &Client<'_>) {
    let wide = kubectl.run("get deployments -o wide").await;
    let heads: Vec<&str> = wide.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(
        heads,
        ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    );
    kubectl.expect("get deployment web -o yaml", "progressDeadlineSeconds: 600").await;
    kubectl
        .expect("get deployment web -o custom-columns=N:.metadata.name,G:.metadata.generation", "web")
        .await;
    kubectl.expect("get all -l tier=front", "deployment.apps/web").await;
    kubectl
        .expect("describe deployment web", "RollingUpdateStrategy:  25% max unavailable, 25% max surge")
        .await;
    kubectl.expect("explain deployment.spec.strategy", "rollingUpdate").await;
    kubectl.expect("explain pods --recursive", "terminationGracePeriodSeconds").await;
    let (code, _, errors) = kubectl.output("create configmap settings").await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("configmaps \"settings\" already exists"), "{errors}");
}

#[tokio::test]
async fn kubectl_on_path() {
    session("kubectl".into()).await;
}

#[tokio::test]
async fn kubectl_of_debian() {
    if let Some(program) = unpacked_from_debian("kubectl") {
        session(program).await;
    }
}

#[tokio::test]
async fn kubectl_1_35() {
    if let Some(program) = from_go("kubectl") {
        session(program).await;
    }
}
