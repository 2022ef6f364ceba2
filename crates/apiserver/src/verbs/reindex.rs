//! Writes an object again unchanged, to index a new selectable field.

use model::error::Error;
use store::{Precondition, Stored, Write};

use super::crd::has_moved;
use super::metadata::attributes;
use super::{Call, store_error};

/// Writes the object, unless it changed meanwhile.
pub async fn write_again(call: &Call, item: &Stored) -> Result<(), Error> {
    let object = call.resource_type.read(item).await?;
    let update = Write::Update {
        key: item.key.clone(),
        expect: Precondition { revision: Some(item.revision), uid: None },
        attributes: attributes(&call.resource_type, &object),
        body: call.resource_type.sealed(&object).await?,
    };
    match call.write(vec![update]).await {
        Err(error) if has_moved(call, &error) => Err(Error::DefinitionChanged),
        // A conflicting write has indexed it, or it is deleted.
        Ok(_) | Err(store::Error::Conflict { .. } | store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(store_error(error)),
    }
}
