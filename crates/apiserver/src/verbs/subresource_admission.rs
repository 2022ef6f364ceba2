//! Admission of updates: plugins get the object, or the subresource object that is written.

use model::error::Error;

use super::Call;
use crate::admission::AdmissionAttributes;
use crate::registry::{Object, Served};

/// A subresource object that admission sees instead of its parent, such as a Scale.
pub trait SubresourceObject: Sync {
    /// The type of the subresource object.
    fn resource_type(&self) -> &Served;

    /// Extracts the subresource object.
    fn of(&self, call: &Call, object: &Object) -> Result<Object, Error>;

    /// Writes the subresource object into its parent.
    fn put(&self, call: &Call, object: &mut Object, subresource: &Object);
}

/// The old object for admission.
pub fn old_subresource(
    call: &Call,
    subresource: Option<&dyn SubresourceObject>,
    old: &Object,
) -> Result<Option<Object>, Error> {
    subresource.map(|subresource| subresource.of(call, old)).transpose()
}

/// Mutating admission of the object or its subresource object.
pub async fn admit(
    request: &AdmissionAttributes<'_>,
    subresource: Option<&dyn SubresourceObject>,
    object: &mut Object,
) -> Result<(), Error> {
    let Some(subresource) = subresource.filter(|_| !request.has_no_plugins()) else {
        return request.admit(Some(object)).await;
    };
    let before = subresource.of(request.call, object)?;
    let mut after = before.clone();
    request.admit(Some(&mut after)).await?;
    if after != before {
        subresource.put(request.call, object, &after);
    }
    Ok(())
}

/// Validating admission.
pub async fn validate(
    request: &AdmissionAttributes<'_>,
    subresource: Option<&dyn SubresourceObject>,
    object: &Object,
) -> Result<(), Error> {
    match subresource.filter(|_| !request.has_no_plugins()) {
        Some(subresource) => request.validate(Some(&subresource.of(request.call, object)?)).await,
        None => request.validate(Some(object)).await,
    }
}
