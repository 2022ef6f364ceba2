//! Objects in the version in which a policy asks for them.

use std::sync::Arc;

use kinds::policies::MatchedResource;
use model::error::Error;
use serde_json::Value;

use crate::admission::AdmissionAttributes;
use crate::registry::custom::Conversion;
use crate::registry::{Object, Served};

/// Types that show the same objects as that of a request, itself among them, as far as they have the subresource of the request.
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

/// A type as rules name it.
pub(in crate::admission) fn matched_resource(of: &Served) -> MatchedResource<'_> {
    MatchedResource { group: &of.group, version: &of.version, plural: &of.plural }
}

/// An object of a request as an object of another type, with kind and version. Objects of types without a CRD come in
/// the shape that they are stored in.
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

/// The way back: an object that was shown as one of another type, with kind and version where it had them before.
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

/// A custom object in another version, where that is not the same.
async fn converted(from: &Served, to: &Served, mut object: Object) -> Result<Object, Error> {
    let Some(view) = from.custom.as_ref().filter(|_| from.version != to.version) else { return Ok(object) };
    let Conversion::Webhook(converter) = &view.versions.conversion else { return Ok(object) };
    name(&mut object, from);
    let converted = converter.convert(&from.kind, vec![object], &to.api_version()).await?;
    Ok(converted.into_iter().next().unwrap_or_default())
}

/// Gives an object the kind and the version of its type.
fn name(object: &mut Object, of: &Served) {
    object.insert("kind".to_owned(), of.kind.as_str().into());
    object.insert("apiVersion".to_owned(), of.api_version().into());
}

/// A stored object as an object of its type.
pub(in crate::admission) async fn read_stored(of: &Served, stored: &store::Stored) -> Result<Object, Error> {
    let object = of.read(stored).await?;
    let mut object = to_equivalent(of, of, &object).await?;
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("resourceVersion".to_owned(), stored.revision.to_string().into());
    }
    Ok(object)
}
