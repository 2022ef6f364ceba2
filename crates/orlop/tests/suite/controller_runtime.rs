//! Operators and charts as people write them: each brings a kind of its own and works with it.

use std::{path::Path, sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client as KubeClient, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    runtime::{
        controller::{Action, Controller},
        wait::{Condition, await_condition, conditions},
        watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{task::JoinSet, time::timeout};

use crate::clients::{Client, from_go};
use crate::kube_rs::client;
use crate::server::{PATIENCE, Server};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "sea.example.com", version = "v1", kind = "Buoy", namespaced, status = "BuoyStatus")]
#[kube(shortname = "by", selectable = ".spec.colour")]
#[kube(printcolumn(name = "Colour", type_ = "string", json_path = ".spec.colour"))]
struct BuoySpec {
    colour: String,
    #[schemars(range(min = 1))]
    depth: u32,
    #[serde(default = "one")]
    lights: u32,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct BuoyStatus {
    chart: Option<String>,
}

/// Writes what a buoy is into a ConfigMap that it owns, and into its status.
async fn reconcile(buoy: Arc<Buoy>, client: Arc<KubeClient>) -> Result<Action, kube::Error> {
    let namespace = buoy.namespace().unwrap_or_default();
    let text = format!("{} at {} m", buoy.spec.colour, buoy.spec.depth);
    let owner = buoy.controller_owner_ref(&()).into_iter().collect::<Vec<_>>();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"chart": text},
        "metadata": {"name": buoy.name_any(), "ownerReferences": owner},
    });
    let apply = PatchParams::apply("charts").force();
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    maps.patch(&buoy.name_any(), &apply, &Patch::Apply(map)).await?;
    let status = json!({"apiVersion": Buoy::api_version(&()), "kind": "Buoy", "status": {"chart": text}});
    let buoys: Api<Buoy> = Api::namespaced((*client).clone(), &namespace);
    buoys.patch_status(&buoy.name_any(), &apply, &Patch::Apply(status)).await?;
    Ok(Action::await_change())
}

fn charted(text: &str) -> impl Condition<Buoy> + '_ {
    move |buoy: Option<&Buoy>| {
        let status = buoy.and_then(|buoy| buoy.status.as_ref());
        status.and_then(|status| status.chart.as_deref()) == Some(text)
    }
}

#[tokio::test]
async fn a_controller_of_kube_rs_on_a_derived_definition() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("serve", &folder.path().join("data"), &[]).await;
    let client = client(&server).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let apply = PatchParams::apply("tests");
    definitions.patch(Buoy::crd_name(), &apply, &Patch::Apply(Buoy::crd())).await.unwrap();
    let established = await_condition(definitions, Buoy::crd_name(), conditions::is_crd_established());
    timeout(PATIENCE, established).await.expect("it is established").unwrap();

    let buoys: Api<Buoy> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let controller = Controller::new(buoys.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), Arc::new(client));
    let mut tasks = JoinSet::new();
    tasks.spawn(controller.for_each(|_| std::future::ready(())));

    let spec = BuoySpec { colour: "red".to_owned(), depth: 4, lights: 1 };
    let buoy = Buoy::new("b", spec);
    buoys.create(&PostParams::default(), &buoy).await.unwrap();
    let seen = await_condition(buoys.clone(), "b", charted("red at 4 m"));
    timeout(PATIENCE, seen).await.expect("the status is written").unwrap();
    let shallow = json!({"spec": {"depth": 0}});
    let refused = buoys.patch("b", &PatchParams::default(), &Patch::Merge(shallow)).await.unwrap_err();
    let words = "spec.depth in body should be greater than or equal to 1";
    assert!(refused.to_string().contains(words), "{refused}");
    let deeper = json!({"spec": {"depth": 9}});
    buoys.patch("b", &PatchParams::default(), &Patch::Merge(deeper)).await.unwrap();
    let seen = await_condition(buoys, "b", charted("red at 9 m"));
    timeout(PATIENCE, seen).await.expect("the status follows").unwrap();
    assert_eq!(maps.get("b").await.unwrap().data.unwrap()["chart"], "red at 9 m");
}

#[tokio::test]
async fn a_manager_of_controller_runtime_on_a_definition() {
    let Some(program) = from_go("manager") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("serve", &folder.path().join("data"), &[]).await;
    Client { program, server: &server, folder: folder.path() }.run("").await;
}

#[tokio::test]
async fn helm_installs_upgrades_rolls_back_and_removes_a_chart_with_a_definition_and_hooks() {
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
    assert_eq!(left, "configmap/one-after\nconfigmap/one-before\n", "what hooks made stays");
}
