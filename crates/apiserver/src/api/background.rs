//! The background tasks of a server, each with its name.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use model::error::Error;
use tokio::sync::oneshot;

use super::ApiServer;
use crate::auth::accounts::legacy_token_tracking;
use crate::auth::rbac;
use crate::identity_lease::IdentityLeaseController;
use crate::verbs::store_error;
use crate::{bootstrap, crds, flow_control};

/// Input of the tasks that start after the first answer.
pub(super) struct Start {
    pub address: Option<SocketAddr>,
    pub identity_lease: Option<IdentityLeaseController>,
    pub uses: legacy_token_tracking::TokenUses,
    pub has_roles: bool,
    pub is_fresh: bool,
}

impl ApiServer {
    /// Starts the tasks that the first answer does not need.
    pub(super) fn start_tasks(
        &self,
        Start { address, mut identity_lease, uses, has_roles, is_fresh }: Start,
    ) {
        let (server, progress) = (Arc::downgrade(&self.0), self.progress.clone());
        let (listed, roles_listed) = oneshot::channel();
        if has_roles {
            let listing = rbac::start_informers(self.store.clone(), self.rbac.clone());
            let progress = progress.clone();
            self.spawn("the RBAC informer", async move {
                progress.may_start().await;
                let following = listing.await;
                let _ = listed.send(());
                following.await;
            });
        }
        let (hand_over, handed_over) = oneshot::channel();
        let (state, begun) = (server.clone(), progress.clone());
        let has_identity_lease = identity_lease.is_some();
        self.tasks.start_finite("the bootstrap of the default objects", async move {
            begun.may_start().await;
            // Bootstrap waits for the RBAC informer: it must see the roles that are created, and know those that exist.
            if has_roles && roles_listed.await.is_err() {
                return;
            }
            bootstrap::complete(state, address, &mut identity_lease, is_fresh).await;
            let _ = hand_over.send(identity_lease);
        });
        let (flows, bootstrap) = (flow_control::run(server.clone()), progress.clone());
        self.spawn("the FlowSchema controller", async move {
            bootstrap.completed().await;
            flows.await;
        });
        if legacy_token_tracking::is_served(self) {
            let (tokens, bootstrap) = (legacy_token_tracking::run(server.clone(), uses), progress);
            self.spawn("the legacy token tracking controller", async move {
                bootstrap.completed().await;
                tokens.await;
            });
        }
        if has_identity_lease {
            self.spawn("the identity Lease controller", async move {
                if let Ok(Some(identity_lease)) = handed_over.await {
                    identity_lease.run(server).await;
                }
            });
        } else {
            self.lease_release.complete();
        }
    }

    /// Starts the informers of CRDs and of admission plugins, and the controllers of CRDs.
    pub(super) async fn start_informers(&self, serves_crds: bool) -> Result<(), Error> {
        let of_crds = async {
            if !serves_crds {
                return Ok(());
            }
            let following = crds::start_registration(&self.store, self.catalog.clone()).await;
            let following = following.map_err(store_error)?;
            self.spawn("the CRD informer", following);
            let changes = self.catalog.position.changes();
            self.spawn("the CRD controller", crds::run_controller(Arc::downgrade(&self.0), changes));
            let indexing = crds::run_indexer(Arc::downgrade(&self.0));
            self.spawn("the selectable field controller", indexing);
            Ok(())
        };
        let registry = self.registry();
        let of_admission = self.admission.start_informers(&self.store, &registry);
        let ((), following) = tokio::try_join!(of_crds, of_admission)?;
        for (resource, task) in following {
            self.spawn(format!("the informer of {resource}"), task);
        }
        Ok(())
    }

    /// Starts a task that runs as long as the server. It may end early only if the server stops or is dropped.
    pub(super) fn spawn(
        &self,
        name: impl Into<Cow<'static, str>>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let (server, shutdown, leaving) =
            (Arc::downgrade(&self.0), self.shutdown.clone(), self.leaving.clone());
        self.tasks.start(name, async move {
            task.await;
            if server.strong_count() == 0 || shutdown.is_requested() || leaving.is_requested() {
                std::future::pending::<()>().await;
            }
        });
    }
}
