//! The task that keeps the rules as the stored roles and bindings say.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use model::rbac::{GROUP, Index};
use model::{ObjectKey, Resource, Revision, Selector};
use store::{EventKind, ListQuery, Position, Store, Watch, WatchScope};

use super::{Kind, Rbac};

/// Objects read at once.
const PAGE: usize = 500;
/// How long to wait before the log is read again that could not be read.
const PAUSE: Duration = Duration::from_millis(200);

/// Reads all rules from the store, and gives what follows them until it is dropped.
pub(crate) async fn follow(store: Store, rbac: Arc<Rbac>) -> impl Future<Output = ()> + Send + 'static {
    let watches = loop {
        // One after the other: each that reads beside another needs a connection of its own.
        let all = stream::iter(Kind::ALL).then(|kind| read_all(&store, &rbac, kind));
        match all.try_collect::<Vec<_>>().await {
            Ok(watches) => break watches,
            Err(error) => pause(&error).await,
        }
    };
    async move {
        let each = Kind::ALL.into_iter().zip(watches);
        join_all(each.map(|(kind, watch)| keep_up(&store, &rbac, kind, watch))).await;
    }
}

async fn keep_up(store: &Store, rbac: &Rbac, kind: Kind, mut watch: Watch) {
    loop {
        match watch.next().await {
            Ok(events) => apply(rbac, kind, &events),
            Err(store::Error::Expired { .. }) => match read_all(store, rbac, kind).await {
                Ok(again) => watch = again,
                Err(error) => pause(&error).await,
            },
            Err(error) => pause(&error).await,
        }
    }
}

async fn pause(error: &store::Error) {
    tracing::warn!(%error, "roles and bindings cannot be followed; trying again");
    tokio::time::sleep(PAUSE).await;
}

/// Reads all objects of a kind, as of one revision, and watches from there.
async fn read_all(store: &Store, rbac: &Rbac, kind: Kind) -> Result<Watch, store::Error> {
    let resource = Resource::new(GROUP, kind.plural());
    let mut query = ListQuery {
        resource: resource.clone(),
        namespace: None,
        selector: Selector::default(),
        at: None,
        after: None,
        limit: PAGE,
    };
    let mut all = Vec::new();
    let revision = loop {
        let page = store.list(&query).await?;
        let last = page.items.last().map(|item| item.key.clone());
        all.extend(page.items);
        match last {
            Some(last) if page.more => {
                query.after = Some(Position { namespace: last.namespace, name: last.name });
                query.at = Some(page.revision);
            }
            _ => break page.revision,
        }
    };
    {
        let mut index = rbac.index_mut();
        index.clear(kind.is_binding(), kind.is_of_cluster());
        for item in &all {
            put(&mut index, kind, &item.key, Some(&item.value));
        }
    }
    rbac.reach(kind, revision);
    let scope = WatchScope { resource, namespace: None, name: None, selector: Selector::default() };
    store.watch(scope, revision).await
}

fn apply(rbac: &Rbac, kind: Kind, events: &[store::Event]) {
    let mut reached = Revision::ZERO;
    {
        let mut index = rbac.index_mut();
        for event in events {
            let change = &event.change;
            reached = change.revision;
            let value = (event.kind != EventKind::Deleted).then_some(&*change.value);
            put(&mut index, kind, &change.key, value);
        }
    }
    rbac.reach(kind, reached);
}

/// Who cannot be read gives nothing to anybody.
fn put(index: &mut Index, kind: Kind, key: &ObjectKey, value: Option<&[u8]>) {
    let ObjectKey { namespace, name, .. } = key;
    let unreadable =
        |error: serde_json::Error| tracing::error!(%key, %error, "a stored object cannot be read");
    if kind.is_binding() {
        let binding = value.and_then(|value| serde_json::from_slice(value).map_err(unreadable).ok());
        index.set_binding(namespace, name, binding);
    } else {
        let role = value.and_then(|value| serde_json::from_slice(value).map_err(unreadable).ok());
        index.set_role(namespace, name, role);
    }
}
