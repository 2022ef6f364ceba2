//! Lists the objects that a quota counts, and writes its status.

use std::collections::BTreeMap;

use controller::{ObjectKey, Objects, Result};
use jiff::Timestamp;
use kube::Client;
use kube::api::{ApiResource, ListParams};
use model::Object;
use quota::{Counted, QuotaResource, Tally};
use serde_json::Value;

use super::decide::{WatchDetail, watch_detail};
use crate::kinds::QUOTAS;
use crate::views::Existence;

/// Recalculates one quota. Returns whether its status had other hard limits before.
pub(super) async fn count(
    client: &Client,
    key: &ObjectKey,
    served: &BTreeMap<QuotaResource, ApiResource>,
) -> Result<bool> {
    let quotas = Objects::new(client, &QUOTAS.resource(), key.namespace());
    // The RBAC role of the controller allows to list quotas, but not to get one.
    let selection = ListParams::default().fields(&format!("metadata.name={}", key.name));
    let Some(mut quota) = quotas.list::<Object>(&selection).await?.items.pop() else { return Ok(false) };
    let mut tally = Tally::of(&quota);
    for (resource, names) in served {
        add_all(&mut tally, client, key, resource, names).await?;
    }
    let Some(status) = tally.status(&quota) else { return Ok(false) };
    let is_new = quota.get("status").and_then(|status| status.get("hard")) != status.get("hard");
    quota.insert("status".to_owned(), status);
    // The update has the resource version that was read before the count: a charge in the meantime is a conflict, not
    // lost.
    quotas.replace_subresource::<Value>("status", &key.name, &quota).await?;
    Ok(is_new)
}

/// Adds the objects of one resource; a resource that is not served has none.
async fn add_all(
    tally: &mut Tally,
    client: &Client,
    key: &ObjectKey,
    resource: &QuotaResource,
    names: &ApiResource,
) -> Result<()> {
    let objects = Objects::new(client, names, key.namespace());
    let counted =
        Counted { group: &resource.group, plural: &resource.plural, now: Timestamp::now().as_second() };
    let counts = if watch_detail(resource) == WatchDetail::Count {
        count_all(tally, counted, &objects).await
    } else {
        add_each(tally, counted, &objects).await
    };
    match counts {
        Err(error) if error.is_not_found() => Ok(()),
        counts => counts,
    }
}

/// Counts objects by their metadata.
async fn count_all(tally: &mut Tally, counted: Counted<'_>, objects: &Objects) -> Result<()> {
    let (mut pages, nothing) = (objects.metadata_pages::<Existence>(ListParams::default()), Object::new());
    let mut has_begun = false;
    while let Some(page) = pages.next().await? {
        begin(tally, counted, &mut has_begun);
        page.iter().for_each(|_| tally.add(counted, &nothing));
    }
    Ok(())
}

/// Adds the use of each object.
async fn add_each(tally: &mut Tally, counted: Counted<'_>, objects: &Objects) -> Result<()> {
    let mut pages = objects.pages::<Object>(ListParams::default());
    let mut has_begun = false;
    while let Some(page) = pages.next().await? {
        begin(tally, counted, &mut has_begun);
        page.iter().for_each(|object| tally.add(counted, object));
    }
    Ok(())
}

fn begin(tally: &mut Tally, counted: Counted<'_>, has_begun: &mut bool) {
    if !std::mem::replace(has_begun, true) {
        tally.begin(counted);
    }
}
