//! Helm: a chart with a CRD and hooks, from install to uninstall.

use std::path::Path;

use crate::clients::{Client, from_go};
use crate::server::Server;

#[tokio::test]
async fn helm_installs_upgrades_rolls_back_and_uninstalls_a_chart_with_a_crd_and_hooks() {
    let Some(program) = from_go("helm") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("serve", &folder.path().join("data"), &[]).await;
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/charts/harbour");
    std::os::unix::fs::symlink(chart, folder.path().join("harbour")).unwrap();
    let helm = Client { program, server: &server, folder: folder.path() };
    let kubectl = Client { program: "kubectl".into(), server: &server, folder: folder.path() };
    let masts = async || kubectl.run("get boat one -o jsonpath={.spec.masts},{.spec.rig}").await;
    let hooked = async || kubectl.run("get configmap one-before -o jsonpath={.data.revision}").await;

    helm.expect("install one ./harbour", "STATUS: deployed").await;
    assert_eq!(masts().await, "3,square");
    let row = kubectl.run("get boats --no-headers").await;
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["one", "3"]);
    helm.expect("upgrade one ./harbour --set masts=4", "REVISION: 2").await;
    assert_eq!(masts().await, "4,square");
    assert_eq!(hooked().await, "2");
    let (code, _, errors) = helm.output("upgrade one ./harbour --set masts=9").await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("is invalid: spec: Invalid value: too many masts"), "{errors}");
    helm.expect("rollback one 1", "Rollback was a success").await;
    assert_eq!(masts().await, "3,square");
    assert_eq!(hooked().await, "1", "the hooks of the revision that is returned to");
    let image = "{.spec.template.spec.containers[0].image}";
    kubectl.expect(&format!("get deployment one -o jsonpath={image}"), "example.com/harbour:3").await;
    helm.expect("uninstall one", "release \"one\" uninstalled").await;
    let others = "--field-selector metadata.name!=kube-root-ca.crt";
    let left = kubectl.run(&format!("get boats,configmaps,deployments -o name {others}")).await;
    assert_eq!(left, "configmap/one-after\nconfigmap/one-before\n", "objects of hooks stay");
}
