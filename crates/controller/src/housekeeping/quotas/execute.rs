//! Reads everything that a quota counts, and writes what it came to.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::Client;
use kube::api::{ApiResource, ListParams};
use quota::{Counted, Resource, Tally};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::decide::{Sight, sight};
use crate::housekeeping::kinds::QUOTAS;
use crate::housekeeping::views::There;
use crate::{ObjectKey, Objects, Page, Result};

/// Objects that are read at once.
const PAGE: u32 = 500;

type Object = Map<String, Value>;

/// Counts one quota again. True if its status said of something else before what is counted.
pub(super) async fn count(
    client: &Client,
    key: &ObjectKey,
    served: &BTreeMap<Resource, ApiResource>,
) -> Result<bool> {
    let quotas = Objects::new(client, &QUOTAS.resource(), key.namespace());
    // The controller may list quotas, not get one.
    let selection = ListParams::default().fields(&format!("metadata.name={}", key.name));
    let Some(mut quota) = quotas.list::<Object>(&selection).await?.items.pop() else { return Ok(false) };
    let mut tally = Tally::of(&quota);
    for (resource, names) in served {
        add_all(&mut tally, client, key, resource, names).await?;
    }
    let Some(status) = tally.status(&quota) else { return Ok(false) };
    let is_new = quota.get("status").and_then(|status| status.get("hard")) != status.get("hard");
    quota.insert("status".to_owned(), status);
    // With the revision that was read before anything was counted: what was charged meanwhile is not lost.
    quotas.replace_part::<Value>("status", &key.name, &quota).await?;
    Ok(is_new)
}

/// Adds the objects of one type; of a type that is no longer served there are none.
async fn add_all(
    tally: &mut Tally,
    client: &Client,
    key: &ObjectKey,
    resource: &Resource,
    names: &ApiResource,
) -> Result<()> {
    let objects = Objects::new(client, names, key.namespace());
    let counted = Counted { group: &resource.0, plural: &resource.1, now: Timestamp::now().as_second() };
    let (is_count, nothing) = (sight(resource) == Sight::Count, Object::new());
    let (mut has_begun, mut selection) = (false, ListParams::default().limit(PAGE));
    loop {
        let next = if is_count {
            let Some(page) = found(objects.list_metadata::<There>(&selection).await)? else { return Ok(()) };
            begin(tally, counted, &mut has_begun);
            page.items.iter().for_each(|_| tally.add(counted, &nothing));
            page.metadata.continue_token
        } else {
            let Some(page) = found(objects.list::<Object>(&selection).await)? else { return Ok(()) };
            begin(tally, counted, &mut has_begun);
            page.items.iter().for_each(|object| tally.add(counted, object));
            page.metadata.continue_token
        };
        if next.is_empty() {
            return Ok(());
        }
        selection.continue_token = Some(next);
    }
}

fn begin(tally: &mut Tally, counted: Counted<'_>, has_begun: &mut bool) {
    if !std::mem::replace(has_begun, true) {
        tally.begin(counted);
    }
}

fn found<T: DeserializeOwned>(page: Result<Page<T>>) -> Result<Option<Page<T>>> {
    match page {
        Ok(page) => Ok(Some(page)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
