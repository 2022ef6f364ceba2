//! The clusterrole-aggregation controller: writes the rules of aggregated ClusterRoles.

mod decide;

use controller::{Apply, Context, Controller, ListWatch, Objects, Outcome, ReconcileKey, Reconciler, Result};
use jiff::Timestamp;
use kube::Client;
use kube::api::ListParams;
use serde_json::{Value, json};

use self::decide::{Role, decide};
use crate::Setup;
use crate::kinds::CLUSTER_ROLES;
use crate::views::Existence;

const NAME: &str = "clusterrole-aggregation-controller";

/// The controller. Roles are few and change rarely: one key stands for all of them, and none is cached.
pub(super) fn controller(setup: &Setup) -> Controller<impl ReconcileKey<Key = ()> + use<>> {
    let client = &setup.client;
    Controller::new(NAME, Roles { client: client.clone() }).watch::<Existence, _>(
        &setup.informers,
        ListWatch::all(CLUSTER_ROLES).metadata_only(),
        |_| [()],
    )
}

struct Roles {
    client: Client,
}

impl Roles {
    fn objects(&self) -> Objects {
        Objects::new(&self.client, &CLUSTER_ROLES.resource(), None)
    }
}

impl Reconciler for Roles {
    type Key = ();
    type Observed = Vec<Role>;
    /// The roles with changed rules.
    type Step = Vec<Role>;

    async fn observe(&self, (): &(), _: &Context<()>) -> Result<Option<Vec<Role>>> {
        self.objects().pages(ListParams::default()).all().await.map(Some)
    }

    fn decide(roles: &Vec<Role>, _: Timestamp) -> Vec<Role> {
        decide(roles.clone())
    }

    async fn execute(&self, (): &(), _: Vec<Role>, changed: Vec<Role>, _: &Context<()>) -> Result<Outcome> {
        for role in changed {
            let (name, version) = (&role.metadata.name, &role.metadata.resource_version);
            let mut applied = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": name, "resourceVersion": version},
            });
            if !role.rules.is_empty() {
                applied["rules"] = json!(role.rules);
            }
            self.objects().apply::<Value>(name, &Apply::new(NAME).force(), &applied).await?;
        }
        Ok(Outcome::Done)
    }
}
