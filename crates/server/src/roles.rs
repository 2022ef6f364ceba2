//! Products as roles in the process of a server: their rights, routes, checks and supervision.

use std::time::Duration;

use apiserver::{ApiServer, Builder, auth::Identity};
use controller::{Apply, Metrics, Objects, ResourceKind};
use http::HeaderValue;
use kube::Client;
use process::{Shutdown, supervisor::GRACE};
use role::{Readiness, Role, RoleContext};
use serde_json::{Value, json};
use tasks::{TaskFailure, Tasks};
use tokio::time::timeout;

use crate::loopback::{self, LOOPBACK};

/// The namespace of the service accounts of roles.
const NAMESPACE: &str = "kube-system";
/// The field manager of the objects that give a role its rights.
const MANAGER: &str = "orlop";
/// The time before the rights of a role are written again after a failure.
const RETRY: Duration = Duration::from_secs(1);

const RBAC: &str = "rbac.authorization.k8s.io";
const ACCOUNTS: ResourceKind =
    ResourceKind { group: "", version: "v1", kind: "ServiceAccount", plural: "serviceaccounts" };
const CLUSTER_ROLES: ResourceKind =
    ResourceKind { group: RBAC, version: "v1", kind: "ClusterRole", plural: "clusterroles" };
const BINDINGS: ResourceKind =
    ResourceKind { group: RBAC, version: "v1", kind: "ClusterRoleBinding", plural: "clusterrolebindings" };

/// The roles of a server, which start after its first answer.
pub(crate) struct Roles(Vec<Prepared>);

struct Prepared {
    role: Role,
    readiness: Readiness,
}

impl Roles {
    pub(crate) fn new(roles: &[Role]) -> Self {
        let prepared = |role: &Role| Prepared { role: role.clone(), readiness: Readiness::default() };
        Self(roles.iter().map(prepared).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Registers the metrics of the roles.
    pub(crate) fn register_metrics(&self, registry: &mut prometheus_client::registry::Registry) {
        self.0.iter().for_each(|Prepared { role, .. }| role.register_metrics(registry));
    }

    /// Adds the routes and the `/readyz` checks of the roles.
    pub(crate) fn add_to(&self, mut builder: Builder) -> Builder {
        for Prepared { role, readiness } in &self.0 {
            builder = role.mounts().iter().cloned().fold(builder, Builder::mount);
            let readiness = readiness.clone();
            builder = builder.readyz_check(format!("role/{}", role.name()), move || readiness.check());
        }
        builder
    }

    /// Runs the roles until a stop is requested. `instance` names this process among those on the same database.
    pub(crate) async fn run(
        self,
        api: ApiServer,
        metrics: Metrics,
        instance: String,
        shutdown: Shutdown,
    ) -> Result<(), TaskFailure> {
        tokio::select! {
            () = api.settled() => {}
            () = shutdown.requested() => return Ok(()),
        }
        let tasks = Tasks::default();
        for Prepared { role, readiness } in self.0 {
            let context = RoleContext {
                client: client(&api, &role),
                shutdown: shutdown.clone(),
                readiness,
                queue_metrics: metrics.clone(),
                instance: instance.clone(),
            };
            let own = loopback::client(&api, loopback::apiserver(), LOOPBACK);
            tasks.start(format!("the role {}", role.name()), run_role(role, own, context));
        }
        tokio::select! {
            // First, because a role sees the request at the same time and may end before this is polled.
            biased;
            () = shutdown.requested() => {}
            failure = tasks.failed() => return Err(failure),
        }
        tasks.stop();
        if timeout(GRACE, tasks.join()).await.is_err() {
            // Dropping the tasks aborts them: a product must not delay the stop of the server.
            tracing::warn!(grace = ?GRACE, "aborting roles that did not stop in time");
        }
        Ok(())
    }
}

/// A client that acts as the service account of a role.
fn client(api: &ApiServer, role: &Role) -> Client {
    let account = role.account();
    // A role's name is a DNS label, so this is a valid header.
    let user_agent = HeaderValue::from_str(&account).unwrap_or(LOOPBACK);
    loopback::client(api, Identity::service_account(NAMESPACE, &account), user_agent)
}

/// Grants a role its rights, and supervises it.
async fn run_role(role: Role, own: Client, context: RoleContext) {
    while let Err(error) = grant(&own, &role).await {
        tracing::warn!(role = role.name(), %error, "cannot write the RBAC objects of the role; retrying");
        tokio::select! {
            () = tokio::time::sleep(RETRY) => {}
            () = context.shutdown.requested() => return,
        }
    }
    role::supervise(role, own, context).await;
}

/// Applies the ServiceAccount, ClusterRole and ClusterRoleBinding of a role.
async fn grant(own: &Client, role: &Role) -> Result<(), controller::Error> {
    let name = role.account();
    let metadata = json!({"name": name, "labels": {"app.kubernetes.io/managed-by": MANAGER}});
    let subject = json!({"kind": "ServiceAccount", "namespace": NAMESPACE, "name": name});
    let role_ref = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": name});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    let version = format!("{RBAC}/v1");
    let cluster_role = json!({
        "apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": role.rules(),
    });
    let binding = json!({
        "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": role_ref, "subjects": [subject],
    });
    let how = Apply::new(MANAGER).force();
    for (kind, namespace, object) in
        [(ACCOUNTS, Some(NAMESPACE), account), (CLUSTER_ROLES, None, cluster_role), (BINDINGS, None, binding)]
    {
        Objects::new(own, &kind.resource(), namespace).apply::<Value>(&name, &how, &object).await?;
    }
    Ok(())
}
