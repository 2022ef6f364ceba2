//! Fills ClusterRoles that are made of others.

mod decide;

use kube::Client;
use kube::api::ListParams;
use serde_json::{Value, json};

use self::decide::{Role, decide};
use super::kinds::CLUSTER_ROLES;
use super::views::There;
use crate::manager::Setup;
use crate::{Context, Controller, Next, Objects, Reconcile, Result, Target};

const NAME: &str = "clusterrole-aggregation-controller";
/// Roles that are read at once.
const PAGE: u32 = 500;

/// The controller. Roles are few and change seldom: all are decided about as one, and none is remembered.
pub(super) fn controller(setup: &Setup) -> Controller<impl Reconcile<Key = ()> + use<>> {
    let client = &setup.client;
    Controller::new(NAME, Roles { client: client.clone() }).watch::<There, _>(
        &setup.watches,
        Target::all(CLUSTER_ROLES).metadata(),
        |_| [()],
    )
}

struct Roles {
    client: Client,
}

impl Reconcile for Roles {
    type Key = ();

    async fn reconcile(&self, (): &(), _: &Context<()>) -> Result<Next> {
        let roles = Objects::new(&self.client, &CLUSTER_ROLES.resource(), None);
        for role in decide(all(&roles).await?) {
            let (name, version) = (&role.metadata.name, &role.metadata.resource_version);
            let mut applied = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": name, "resourceVersion": version},
            });
            if !role.rules.is_empty() {
                applied["rules"] = json!(role.rules);
            }
            roles.apply::<Value>(name, NAME, &applied).await?;
        }
        Ok(Next::Done)
    }
}

async fn all(roles: &Objects) -> Result<Vec<Role>> {
    let (mut all, mut selection) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let page = roles.list::<Role>(&selection).await?;
        all.extend(page.items);
        if page.metadata.continue_token.is_empty() {
            return Ok(all);
        }
        selection.continue_token = Some(page.metadata.continue_token);
    }
}
