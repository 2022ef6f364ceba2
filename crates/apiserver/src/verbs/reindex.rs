//! Fields that become selectable: objects that were written before are written again, so that the index has them.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use model::Selector;
use model::error::Error;
use serde_json::Value;
use store::{ListQuery, Position, Precondition, Stored, Write};

use super::definition::has_moved;
use super::metadata::{self, attributes};
use super::{Call, instances, store_error};
use crate::registry::{Definition, Object};

/// Objects read at once; they are written side by side, so that they share commits.
const PAGE: usize = 500;
const SIDE_BY_SIDE: usize = 100;

/// Does so where a definition has new selectable fields. What is written from now on has them in any case: a write requires the
/// definition as it is.
pub async fn reindex(call: &Call, new: &Object, old: &Object) -> Result<(), Error> {
    if !call.resource_type.is_definition() || fields(new).is_subset(&fields(old)) {
        return Ok(());
    }
    loop {
        let registry = call.api.registry();
        let Some(definition) = registry.by_name(metadata::text(new, "name")) else { return Ok(()) };
        match write_again(call, definition).await {
            Err(Error::DefinitionChanged) => call.api.catalog.moves_on(definition).await?,
            outcome => return outcome,
        }
    }
}

/// All selectable fields of all versions.
fn fields(definition: &Object) -> BTreeSet<&str> {
    let versions = definition.get("spec").and_then(|spec| spec.get("versions")).and_then(Value::as_array);
    let of_version = |version| Value::get(version, "selectableFields").and_then(Value::as_array);
    let fields = versions.into_iter().flatten().filter_map(of_version).flatten();
    fields.filter_map(|field| field.get("jsonPath").and_then(Value::as_str)).collect()
}

async fn write_again(call: &Call, definition: &Arc<Definition>) -> Result<(), Error> {
    let Some(call) = instances(&call.api, definition) else { return Ok(()) };
    let mut query = ListQuery {
        resource: call.resource_type.resource.clone(),
        namespace: None,
        selector: Selector::default(),
        at: None,
        after: None,
        limit: PAGE,
    };
    loop {
        let page = call.api.store.list(&query).await.map_err(store_error)?;
        let writes: Vec<_> = page.items.iter().map(|item| write(&call, item)).collect();
        let outcomes: Vec<_> = futures::stream::iter(writes).buffered(SIDE_BY_SIDE).collect().await;
        outcomes.into_iter().collect::<Result<(), Error>>()?;
        match page.items.last() {
            Some(last) if page.more => {
                let (namespace, name) = (last.key.namespace.clone(), last.key.name.clone());
                query.after = Some(Position { namespace, name });
            }
            _ => return Ok(()),
        }
    }
}

async fn write(call: &Call, item: &Stored) -> Result<(), Error> {
    let object = call.resource_type.read(item).await?;
    let update = Write::Update {
        key: item.key.clone(),
        expect: Precondition { revision: Some(item.revision), uid: None },
        attributes: attributes(&call.resource_type, &object),
        body: call.resource_type.sealed(&object).await?,
    };
    match call.write(vec![update]).await {
        Err(error) if has_moved(call, &error) => Err(Error::DefinitionChanged),
        // Whoever was faster has written the fields, or there is nothing to find any more.
        Ok(_) | Err(store::Error::Conflict { .. } | store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(store_error(error)),
    }
}
