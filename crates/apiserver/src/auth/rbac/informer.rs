//! The RBAC informers: keep the rules of the authorizer current.

use std::sync::Arc;

use futures::future::join_all;
use kinds::rbac::Index as Rules;
use model::ObjectKey;
use store::{Event, EventKind, Store, Stored};

use super::{Rbac, RbacKind};
use crate::informer::{Index, Informer};

/// Lists all roles and bindings, and returns the task that watches them until dropped.
pub(crate) async fn start_informers(
    store: Store,
    rbac: Arc<Rbac>,
) -> impl Future<Output = ()> + Send + 'static {
    let mut following = Vec::new();
    // One after the other: each concurrent list needs a database connection.
    for kind in RbacKind::ALL {
        let (index, position) = (RbacIndex { rbac: rbac.clone(), kind }, rbac.position(kind).clone());
        following.push(Informer::new(kind.resource(), index, position).start_patiently(&store).await);
    }
    async move {
        join_all(following).await;
    }
}

/// The index of one kind.
struct RbacIndex {
    rbac: Arc<Rbac>,
    kind: RbacKind,
}

impl Index for RbacIndex {
    type Fresh = Vec<Stored>;

    fn gather(&self, fresh: &mut Vec<Stored>, object: Stored) {
        fresh.push(object);
    }

    fn reset(&self, fresh: Vec<Stored>) {
        let mut rules = self.rbac.index_mut();
        rules.clear(self.kind.is_binding(), self.kind.is_of_cluster());
        for item in &fresh {
            put(&mut rules, self.kind, &item.key, Some(&item.value));
        }
    }

    fn apply(&self, events: &[Event]) {
        let mut rules = self.rbac.index_mut();
        for event in events {
            let change = &event.change;
            let value = (event.kind != EventKind::Deleted).then_some(&*change.value);
            put(&mut rules, self.kind, &change.key, value);
        }
    }
}

/// A role or binding that cannot be parsed grants nothing.
fn put(rules: &mut Rules, kind: RbacKind, key: &ObjectKey, value: Option<&[u8]>) {
    let ObjectKey { namespace, name, .. } = key;
    let unreadable =
        |error: serde_json::Error| tracing::error!(%key, %error, "cannot parse a stored role or binding");
    if kind.is_binding() {
        let binding = value.and_then(|value| serde_json::from_slice(value).map_err(unreadable).ok());
        rules.set_binding(namespace, name, binding);
    } else {
        let role = value.and_then(|value| serde_json::from_slice(value).map_err(unreadable).ok());
        rules.set_role(namespace, name, role);
    }
}
