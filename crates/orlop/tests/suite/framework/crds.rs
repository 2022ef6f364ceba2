//! CRDs that replicas install and upgrade.

use std::time::Duration;

use controller::{
    Apply, Objects,
    crds::{CrdError, CrdInstaller, REVISION_ANNOTATION},
};
use kube::api::{ApiResource, DeleteParams, GroupVersionKind, ListParams};
use serde_json::{Value, json};

use super::{Bed, CRDS, until};

/// A CRD of ships with these versions, of which the last one is stored.
pub fn ships(bed: &Bed, versions: &[&str]) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": Some(name) == versions.last(),
            "schema": {"openAPIV3Schema": schema},
        })
    };
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("ships.{}", bed.group())},
        "spec": {
            "group": bed.group(), "scope": "Namespaced", "versions": versions,
            "names": {"plural": "ships", "kind": "Ship", "singular": "ship", "listKind": "ShipList"},
        },
    })
}

/// A client of the ships of a version.
pub fn objects(bed: &Bed, version: &str) -> Objects {
    let kind = GroupVersionKind::gvk(&bed.group(), version, "Ship");
    Objects::new(&bed.client, &ApiResource::from_gvk_with_plural(&kind, "ships"), Some(&bed.namespace))
}

fn installer(bed: &Bed) -> CrdInstaller {
    CrdInstaller::new(bed.client.clone(), "harbour")
}

async fn stored(bed: &Bed, crd: &Value) -> Option<Value> {
    let name = crd["metadata"]["name"].as_str().expect("a CRD has a name");
    bed.cluster_objects(&CRDS).get(name).await.expect("the server answers")
}

pub async fn replicas_that_start_together_install_crds_that_are_usable_at_once(bed: Bed) {
    let crd = ships(&bed, &["v1alpha1", "v1"]);
    let replicas = (0..8).map(|_| async { installer(&bed).install(&[&crd]).await });
    for installed in futures::future::join_all(replicas).await {
        installed.unwrap();
    }
    // No waiting: that is what the installer is for.
    objects(&bed, "v1").create::<Value>(&ship(&bed, "v1", "argo")).await.unwrap();
    let listed = objects(&bed, "v1alpha1").list::<Value>(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    let before = stored(&bed, &crd).await.unwrap();
    installer(&bed).install(&[&crd]).await.unwrap();
    let after = stored(&bed, &crd).await.unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
        "nothing is written"
    );
}

pub fn ship(bed: &Bed, version: &str, name: &str) -> Value {
    json!({"apiVersion": format!("{}/{version}", bed.group()), "kind": "Ship", "metadata": {"name": name}})
}

pub async fn an_upgrade_adds_versions_and_never_drops_one_with_stored_objects(bed: Bed) {
    installer(&bed).install(&[ships(&bed, &["v1"])]).await.unwrap();
    objects(&bed, "v1").create::<Value>(&ship(&bed, "v1", "argo")).await.unwrap();
    installer(&bed).install(&[ships(&bed, &["v1", "v2"])]).await.unwrap();
    assert!(objects(&bed, "v2").get::<Value>("argo").await.unwrap().is_some());

    let last = ships(&bed, &["v2"]);
    match installer(&bed).install(&[&last]).await.unwrap_err() {
        error @ CrdError::StoredVersions { .. } => {
            let text = error.to_string();
            assert!(text.contains("objects may be stored in v1,"), "{text}");
        }
        other => panic!("{other}"),
    }
    let crd = stored(&bed, &last).await.unwrap();
    assert_eq!(crd["spec"]["versions"].as_array().unwrap().len(), 2, "the CRD is as it was");
    assert!(objects(&bed, "v1").get::<Value>("argo").await.unwrap().is_some(), "and so is the object");

    // After a migration the version may go.
    let name = crd["metadata"]["name"].as_str().unwrap();
    let migrated = json!({"status": {"storedVersions": ["v2"]}});
    bed.cluster_objects(&CRDS).merge_patch_subresource::<Value>("status", name, &migrated).await.unwrap();
    installer(&bed).install(&[&last]).await.unwrap();
}

pub async fn crds_that_cannot_be_installed_are_reported_with_the_reason(bed: Bed) {
    let mut crd = ships(&bed, &["v1"]);
    crd["spec"]["names"]["shortNames"] = json!(["sh"]);
    let name = crd["metadata"]["name"].as_str().unwrap().to_owned();
    bed.cluster_objects(&CRDS).apply::<Value>(&name, &Apply::new("helm"), &crd).await.unwrap();
    crd["spec"]["names"]["shortNames"] = json!(["shp"]);
    match installer(&bed).install(&[&crd]).await.unwrap_err() {
        CrdError::Conflict { fields, .. } => {
            assert!(fields.iter().any(|field| field.manager() == Some("helm")), "{fields:?}");
        }
        other => panic!("{other}"),
    }
    installer(&bed).force().install(&[&crd]).await.unwrap();
    assert_eq!(stored(&bed, &crd).await.unwrap()["spec"]["names"]["shortNames"], json!(["shp"]));

    // Another CRD has the kind already.
    let mut other = ships(&bed, &["v1"]);
    other["metadata"]["name"] = format!("boats.{}", bed.group()).into();
    other["spec"]["names"]["plural"] = "boats".into();
    other["spec"]["names"]["singular"] = "boat".into();
    let error = installer(&bed).timeout(Duration::from_secs(3)).install(&[&other]).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, CrdError::Timeout { .. }), "{text}");
    assert!(text.contains("is not usable after 3s: NamesAccepted is False"), "{text}");

    crd["spec"]["scope"] = "Cluster".into();
    let error = installer(&bed).force().install(&[&crd]).await.unwrap_err();
    assert!(matches!(error, CrdError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("field is immutable"), "{error}");
}

pub async fn a_later_revision_is_left_as_it_is_and_a_deleted_crd_is_awaited(bed: Bed) {
    let (old, new) = (ships(&bed, &["v1"]), ships(&bed, &["v1", "v2"]));
    installer(&bed).revision(2).install(&[&new]).await.unwrap();
    installer(&bed).revision(1).install(&[&old]).await.unwrap();
    let crd = stored(&bed, &new).await.unwrap();
    assert_eq!(crd["metadata"]["annotations"][REVISION_ANNOTATION], "2");
    assert_eq!(crd["spec"]["versions"].as_array().unwrap().len(), 2, "the old replica has left it as it is");

    let (crds, name) = (bed.cluster_objects(&CRDS), crd["metadata"]["name"].as_str().unwrap());
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    crds.merge_patch::<Value>(name, &finalizers(json!(["sea.example.com/wait"]))).await.unwrap();
    crds.delete(name, &DeleteParams::default()).await.unwrap();
    let error = installer(&bed).timeout(Duration::from_millis(500)).install(&[&new]).await.unwrap_err();
    assert!(error.to_string().contains("it is being deleted"), "{error}");
    let release = async {
        let is_ours = json!(["sea.example.com/wait"]);
        // The server adds and removes its own finalizer meanwhile.
        until("our finalizer is the last", async || {
            stored(&bed, &new).await.is_none_or(|crd| crd["metadata"]["finalizers"] == is_ours)
        })
        .await;
        crds.merge_patch::<Value>(name, &finalizers(Value::Null)).await.unwrap();
    };
    let again = installer(&bed);
    let (installed, ()) = tokio::join!(again.install(std::slice::from_ref(&new)), release);
    installed.unwrap();
    assert_ne!(stored(&bed, &new).await.unwrap()["metadata"]["uid"], crd["metadata"]["uid"]);
}
