//! A controller of kube-rs on a CRD that it derives from a Rust type.

use std::{sync::Arc, time::Duration};

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

/// Writes the description of a buoy into a ConfigMap that it owns, and into its status.
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
async fn a_kube_rs_controller_reconciles_a_derived_crd() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("serve", &folder.path().join("data"), &[]).await;
    let client = client(&server).await;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let apply = PatchParams::apply("tests");
    crds.patch(Buoy::crd_name(), &apply, &Patch::Apply(Buoy::crd())).await.unwrap();
    let established = await_condition(crds, Buoy::crd_name(), conditions::is_crd_established());
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
