//! Equivalent resources: the types that serve the same stored objects, and the conversion of one object between them.
//! `versioned_request.rs` applies it to a whole request.

use std::sync::Arc;

use kinds::policies::MatchedResource;
use model::error::Error;
use serde_json::Value;

use crate::admission::AdmissionAttributes;
use crate::registry::custom::Conversion;
use crate::registry::{Object, Served};

/// The types that serve the objects of a request, its own included, as far as they have the subresource.
pub(in crate::admission) fn equivalents(request: &AdmissionAttributes<'_>) -> Vec<Arc<Served>> {
    let call = request.call;
    let has_subresource = |of: &&Arc<Served>| of.verbs_of(request.subresource()).is_some();
    if let Some(crd) = &call.crd {
        return crd.types().filter(has_subresource).cloned().collect();
    }
    let registry = call.api.registry();
    let registered = registry.types().take_while(|of| of.custom.is_none()).filter(has_subresource);
    registered.filter(|of| of.resource == call.resource_type.resource).cloned().collect()
}

/// A type as match rules name it.
pub(in crate::admission) fn matched_resource(of: &Served) -> MatchedResource<'_> {
    MatchedResource { group: &of.group, version: &of.version, plural: &of.plural }
}

/// Converts an object of a request to an equivalent type, with kind and apiVersion. Built-in objects keep their stored shape.
pub(in crate::admission) async fn to_equivalent(
    from: &Served,
    to: &Served,
    object: &Object,
) -> Result<Object, Error> {
    let mut object = object.clone();
    if let Some(conversion) = to.conversion() {
        (conversion.from_stored)(&mut object);
    }
    let mut object = converted(from, to, object).await?;
    name(&mut object, to);
    Ok(object)
}

/// Converts an object back from an equivalent type. Keeps kind and apiVersion only if the object had them before.
pub(super) async fn from_equivalent(
    from: &Served,
    to: &Served,
    mut object: Object,
    before: &Object,
) -> Result<Object, Error> {
    if let Some(conversion) = from.conversion() {
        (conversion.to_stored)(&mut object);
    }
    let mut object = converted(from, to, object).await?;
    name(&mut object, to);
    for key in ["kind", "apiVersion"] {
        if !before.contains_key(key) {
            object.remove(key);
        }
    }
    Ok(object)
}

/// Converts a custom object to another version, by webhook if the CRD has one.
async fn converted(from: &Served, to: &Served, mut object: Object) -> Result<Object, Error> {
    let Some(view) = from.custom.as_ref().filter(|_| from.version != to.version) else { return Ok(object) };
    let Conversion::Webhook(converter) = &view.versions.conversion else { return Ok(object) };
    name(&mut object, from);
    let converted = converter.convert(&from.kind, vec![object], &to.api_version()).await?;
    Ok(converted.into_iter().next().unwrap_or_default())
}

/// Sets kind and apiVersion.
fn name(object: &mut Object, of: &Served) {
    object.insert("kind".to_owned(), of.kind.as_str().into());
    object.insert("apiVersion".to_owned(), of.api_version().into());
}

/// Parses a stored object, with kind, apiVersion and resourceVersion.
pub(in crate::admission) async fn read_stored(of: &Served, stored: &store::Stored) -> Result<Object, Error> {
    let object = of.read(stored).await?;
    let mut object = to_equivalent(of, of, &object).await?;
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("resourceVersion".to_owned(), stored.revision.to_string().into());
    }
    Ok(object)
}
