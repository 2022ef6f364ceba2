//! kubectl commands beyond CRUD: auth, create token, certificate, wait, events, delete with cascades.

use std::fs;

use crate::clients::{Client, from_go};
use crate::server::Server;

const ROLE: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: User, name: ann, apiGroup: rbac.authorization.k8s.io}]
";

const EVENT: &str = "\
apiVersion: v1
kind: Event
metadata: {name: done, namespace: default}
involvedObject: {apiVersion: v1, kind: ConfigMap, name: settings, namespace: default}
reason: Done
message: it is done
type: Normal
count: 3
lastTimestamp: '2026-01-01T00:00:00Z'
";

/// For a certificate of `ann`.
const REQUEST: &str = "\
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: NAME}
spec: {signerName: example.com/any, usages: [client auth], request: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISE1IQUNBUUF3RGpFTU1Bb0dBMVVFQXd3RFlXNXVNRmt3RXdZSEtvWkl6ajBDQVFZSUtvWkl6ajBEQVFjRApRZ0FFODJ3NHpBTkNNMkRDcEJMR0FnUzNGMzlKYWt1bzE3c3ppaUtEd3JzbXNVdmFsMWVPZi84Tk5LQnk1bWdlCnB4OHVaUi9IT3ZnUmYvOUlNK3NjTCt2NU9LQUFNQW9HQ0NxR1NNNDlCQU1DQTBjQU1FUUNJRzVXcytSTzlCVW0KY0I2RGE3UGt6SW12ZWhJRmMyK1B3T2VsVVZ3SFBoUnlBaUJ0V01YWnR0VS9lR3dlUSticG83QmdsSHNaY3F6TQoxbk8wMG5YUDhjZis3UT09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=}
";

#[tokio::test]
async fn kubectl_1_35() {
    let Some(program) = from_go("kubectl") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start("serve", &folder.path().join("data"), &[]).await;
    let kubectl = Client { program, server: &server, folder: folder.path() };
    rights(&kubectl).await;
    tokens(&kubectl).await;
    certificates(&kubectl).await;
    waiting(&kubectl).await;
    events(&kubectl).await;
    cascades(&kubectl).await;
}

async fn rights(kubectl: &Client<'_>) {
    kubectl.expect("auth can-i --list", "*.*").await;
    kubectl.expect("auth whoami", "[system:masters system:authenticated]").await;
    reconcile(kubectl, ROLE, "reconciliation required create").await;
    reconcile(kubectl, &ROLE.replace("[get]", "[get, list]"), "Verbs:[list]").await;
    kubectl.expect("auth can-i --list --as=ann", "[get list]").await;
    kubectl.expect("auth can-i list pods --as=ann", "yes").await;
    reconcile(kubectl, &ROLE.replace("name: reader}\nsub", "name: other}\nsub"), "recreate").await;
    let (code, out, errors) = kubectl.output("auth can-i list pods --as=ann").await;
    assert_eq!(code, Some(1), "{out}{errors}");
    assert!(out.contains("no - RBAC: role.rbac.authorization.k8s.io \"other\" not found"), "{out}{errors}");
}

async fn reconcile(kubectl: &Client<'_>, text: &str, told: &str) {
    fs::write(kubectl.folder.join("role.yaml"), text).expect("the folder is ours");
    let (code, out, errors) = kubectl.output("auth reconcile -f role.yaml").await;
    assert_eq!(code, Some(0), "{out}{errors}");
    assert!(format!("{out}{errors}").contains(told), "no {told:?} in {out}{errors}");
}

async fn tokens(kubectl: &Client<'_>) {
    kubectl.run("create serviceaccount robot").await;
    let token = kubectl.run("create token robot --duration=1h").await;
    let whoami = format!("auth whoami --kubeconfig={} --token={}", bare(kubectl), token.trim());
    kubectl.expect(&whoami, "system:serviceaccount:default:robot").await;
    let (_, _, errors) = kubectl.output("create token robot --duration=1m").await;
    assert!(errors.contains("may not specify a duration less than 10 minutes"), "{errors}");
    let bound = "create token robot --bound-object-kind=Secret --bound-object-name=none";
    let (_, _, errors) = kubectl.output(bound).await;
    assert!(errors.contains("secrets \"none\" not found"), "{errors}");
}

/// A kubeconfig with the server alone, to be used with a token.
fn bare(kubectl: &Client<'_>) -> String {
    let text = fs::read_to_string(&kubectl.server.kubeconfig).expect("the server wrote it");
    let kept =
        text.lines().filter(|line| !line.contains("client-certificate") && !line.contains("client-key"));
    let path = kubectl.folder.join("bare");
    fs::write(&path, kept.collect::<Vec<_>>().join("\n")).expect("the folder is ours");
    path.display().to_string()
}

async fn certificates(kubectl: &Client<'_>) {
    for name in ["good", "bad"] {
        fs::write(kubectl.folder.join("request.yaml"), REQUEST.replace("NAME", name))
            .expect("the folder is ours");
        kubectl.run("create -f request.yaml").await;
    }
    kubectl.expect("get csr good", "Pending").await;
    kubectl.expect("certificate approve good", "approved").await;
    kubectl.expect("get csr good", "Approved").await;
    kubectl.expect("certificate deny bad", "denied").await;
    kubectl.expect("get csr bad", "Denied").await;
    let (_, _, errors) = kubectl.output("certificate deny good").await;
    assert!(errors.contains("is already Approved"), "{errors}");
}

async fn waiting(kubectl: &Client<'_>) {
    kubectl.run("create configmap settings --from-literal=key=value").await;
    kubectl.expect("wait configmap/settings --for=jsonpath={.data.key}=value", "condition met").await;
    kubectl.expect("wait configmap/settings --for=create --timeout=30s", "condition met").await;
    kubectl.run("wait configmap/none --for=delete --timeout=30s").await;
    kubectl.expect("wait apiservice/v1.apps --for=condition=Available", "condition met").await;
    for (what, word) in
        [("delete", "configmaps/settings"), ("jsonpath={.data.key}=other", "configmaps/settings")]
    {
        let (code, _, errors) =
            kubectl.output(&format!("wait configmap/settings --for={what} --timeout=1s")).await;
        assert_eq!(code, Some(1));
        assert!(errors.contains(&format!("timed out waiting for the condition on {word}")), "{errors}");
    }
    let changed = async {
        kubectl.run("patch configmap settings --type=merge -p '{\"data\":{\"key\":\"other\"}}'").await
    };
    let (waited, _) = tokio::join!(
        kubectl.run("wait configmap/settings --for=jsonpath={.data.key}=other --timeout=30s"),
        changed
    );
    assert!(waited.contains("condition met"), "{waited}");
}

async fn events(kubectl: &Client<'_>) {
    fs::write(kubectl.folder.join("event.yaml"), EVENT).expect("the folder is ours");
    kubectl.run("create -f event.yaml").await;
    kubectl.expect("events", "(x3 over <unknown>)").await;
    kubectl.expect("events --for configmap/settings --types=Normal", "it is done").await;
    let (_, _, errors) = kubectl.output("events --types=Warning").await;
    assert!(errors.contains("No events found in default namespace."), "{errors}");
    kubectl.expect("get events --field-selector reason=Done -o name", "event/done").await;
}

/// An object with a finalizer is gone when the finalizer is removed, for every deletion policy.
async fn cascades(kubectl: &Client<'_>) {
    let held = "{\"metadata\":{\"finalizers\":[\"example.com/held\"]}}";
    for policy in ["foreground", "orphan", "background"] {
        kubectl.run("create configmap owner").await;
        kubectl.run(&format!("patch configmap owner --type=merge -p '{held}'")).await;
        kubectl.expect(&format!("delete configmap owner --wait=false --cascade={policy}"), "deleted").await;
        let left = kubectl.run("get configmap owner -o jsonpath={.metadata.finalizers}").await;
        // The garbage collector may have removed the finalizer of the policy.
        let with_policy = match policy {
            "foreground" => r#"["example.com/held","foregroundDeletion"]"#,
            "orphan" => r#"["example.com/held","orphan"]"#,
            _ => r#"["example.com/held"]"#,
        };
        assert!(left == with_policy || left == r#"["example.com/held"]"#, "{left}");
        kubectl.run("patch configmap owner --type=merge -p '{\"metadata\":{\"finalizers\":null}}'").await;
        kubectl.run("wait configmap/owner --for=delete --timeout=30s").await;
    }
}
