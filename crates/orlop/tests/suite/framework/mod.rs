//! The controller framework against a server over the network. Each scenario is a test against Orlop, and all of them run against a
//! kube-apiserver in `reference`.
//!
//! `FRAMEWORK_KUBECONFIG=FILE cargo test -p orlop --test suite framework` runs them against another server.

#![allow(clippy::unwrap_used, reason = "scenarios are the bodies of tests")]

mod clusters;
mod controllers;
mod crds;
mod example;
mod reference;
mod webhooks;

use std::path::{Path, PathBuf};

use controller::{Objects, ResourceKind};
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::{
    kube_rs,
    server::{PATIENCE, Server},
};

const CONFIG_MAPS: ResourceKind =
    ResourceKind { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
const CRDS: ResourceKind = ResourceKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};
const EVENTS: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Event", plural: "events" };
const LEASES: ResourceKind =
    ResourceKind { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases" };
const NAMESPACES: ResourceKind =
    ResourceKind { group: "", version: "v1", kind: "Namespace", plural: "namespaces" };
const SECRETS: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Secret", plural: "secrets" };

/// A server, and a namespace of the test's own.
struct Bed {
    client: Client,
    kubeconfig: PathBuf,
    namespace: String,
    server: Option<(Server, TempDir)>,
}

impl Bed {
    /// Orlop, or the server of `FRAMEWORK_KUBECONFIG`.
    async fn new() -> Self {
        if let Ok(file) = std::env::var("FRAMEWORK_KUBECONFIG") {
            return Self::of(file.as_ref()).await;
        }
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let server = Server::start("serve", &folder.path().join("data"), &[]).await;
        let bed = Self::of(&server.kubeconfig).await;
        Self { server: Some((server, folder)), ..bed }
    }

    /// The server of a kubeconfig.
    async fn of(kubeconfig: &Path) -> Self {
        let client = kube_rs::client_of(kubeconfig).await;
        let made: Value = Objects::new(&client, &NAMESPACES.resource(), None)
            .create(&json!({"metadata": {"generateName": "framework-"}}))
            .await
            .expect("the namespace is created");
        let namespace = made["metadata"]["name"].as_str().expect("the server named it").to_owned();
        Self { client, kubeconfig: kubeconfig.to_owned(), namespace, server: None }
    }

    /// Whether the server is one that the test has started, with all controllers.
    fn is_orlop(&self) -> bool {
        self.server.is_some()
    }

    fn objects(&self, kind: &ResourceKind) -> Objects {
        Objects::new(&self.client, &kind.resource(), Some(&self.namespace))
    }

    fn cluster_objects(&self, kind: &ResourceKind) -> Objects {
        Objects::new(&self.client, &kind.resource(), None)
    }

    /// A group that no other test has.
    fn group(&self) -> String {
        format!("{}.example.com", self.namespace)
    }
}

/// Waits until something holds.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Makes a test against Orlop of each scenario, and a function that runs all of them against another server.
macro_rules! scenarios {
    ($($module:ident::$name:ident,)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                $module::$name(Bed::new().await).await;
            }
        )*

        async fn run_all(kubeconfig: &Path) {
            $(
                eprintln!("scenario {}", stringify!($name));
                $module::$name(Bed::of(kubeconfig).await).await;
            )*
        }
    };
}

scenarios! {
    clusters::clients_follow_the_secrets_with_their_kubeconfigs,
    controllers::a_controller_reconciles_an_object_from_its_creation_to_its_end,
    controllers::an_informer_lists_pages_where_the_server_refuses_initial_events_and_selects_as_it_is_told,
    controllers::an_apply_conflicts_unless_it_is_forced_and_a_dry_run_stores_nothing,
    controllers::an_event_that_repeats_is_one_object_that_counts,
    controllers::every_leadership_has_a_greater_epoch_and_a_deposed_leader_is_refused,
    crds::replicas_that_start_together_install_crds_that_are_usable_at_once,
    crds::an_upgrade_adds_versions_and_never_drops_one_with_stored_objects,
    crds::crds_that_cannot_be_installed_are_reported_with_the_reason,
    crds::a_later_revision_is_left_as_it_is_and_a_deleted_crd_is_awaited,
    example::the_example_of_the_front_page_runs,
    webhooks::replicas_share_a_certificate_and_keep_its_bundle_in_the_configurations,
    webhooks::a_new_ca_is_trusted_before_it_is_used,
    webhooks::a_conversion_webhook_converts_between_the_versions_of_a_crd,
    webhooks::a_certificate_of_a_folder_is_served_and_loaded_again,
}
