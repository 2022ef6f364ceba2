//! Admin access to devices in use (dynamic resource allocation).

use kinds::{admin_access, bad_admin_access};
use model::error::{Error, FieldError};

use crate::admission::AdmissionAttributes;
use crate::registry::Object;

/// The error of an object that requests admin access without the label on its namespace.
pub async fn bad_access(
    request: &AdmissionAttributes<'_>,
    new: &Object,
    old: Option<&Object>,
) -> Result<Option<FieldError>, Error> {
    let resource_type = &request.call.resource_type;
    let (group, kind) = (&*resource_type.group, &*resource_type.kind);
    let Some(path) = admin_access(group, kind, request.subresource(), new, old) else { return Ok(None) };
    let namespace = request.look_up("", "namespaces", "", request.call.namespace()).await?;
    Ok(bad_admin_access(path, namespace.as_ref()))
}
