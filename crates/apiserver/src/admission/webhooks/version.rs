//! Conversion of objects that a webhook changed back to the version of the request.

use model::Revision;
use model::error::Error;
use serde_json::Value;

use crate::admission::AdmissionAttributes;
use crate::registry::{Object, Served};
use crate::verbs::{metadata_mut, text};

/// Converts an object from the version of the webhook to that of the request.
pub(super) async fn taken(
    request: &AdmissionAttributes<'_>,
    object: Value,
    from: &Served,
) -> Result<Object, Error> {
    let Value::Object(mut object) = object else {
        return Err(Error::internal("the patched document is no object"));
    };
    object.remove("kind");
    object.remove("apiVersion");
    from.strategy.decode(&mut object).map_err(Error::internal)?;
    if let Some(conversion) = from.conversion() {
        (conversion.to_stored)(&mut object);
    }
    if let (Some(view), true) = (&request.call.resource_type.custom, is_other(request, from)) {
        let sealed = from.sealed(&object).await?;
        object = view.open(&sealed.at(Revision::ZERO), Revision::ZERO).await?;
    }
    request.shown.strategy.default(&mut object);
    Ok(object)
}

fn is_other(request: &AdmissionAttributes<'_>, served: &Served) -> bool {
    let of = &request.call.resource_type;
    (&served.group, &served.version) != (&of.group, &of.version) && served.resource == of.resource
}

/// Sets the resourceVersion that Kubernetes shows to webhooks after a patch.
pub(super) fn set_revision(request: &AdmissionAttributes<'_>, object: &mut Object, is_final: bool) {
    if let Some(old) = request.old.filter(|_| is_final || request.call.is_patch())
        && text(object, "resourceVersion").is_empty()
    {
        let revision = text(old, "resourceVersion").to_owned();
        metadata_mut(object).insert("resourceVersion".to_owned(), revision.into());
    }
}
