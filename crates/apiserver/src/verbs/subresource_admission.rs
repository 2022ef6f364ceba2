//! How plugins see a change of an object, or of the part of it that is written.

use model::error::Error;

use super::Call;
use crate::admission::AdmissionAttributes;
use crate::registry::{Object, Served};

/// A part that stands for an object where plugins look at a change: its scale.
pub trait SubresourceObject: Sync {
    /// The type of the part.
    fn resource_type(&self) -> &Served;

    /// The part of an object.
    fn of(&self, call: &Call, object: &Object) -> Result<Object, Error>;

    /// Writes the part into its object.
    fn put(&self, call: &Call, object: &mut Object, subresource: &Object);
}

/// What plugins get as the old object.
pub fn old_subresource(
    call: &Call,
    subresource: Option<&dyn SubresourceObject>,
    old: &Object,
) -> Result<Option<Object>, Error> {
    subresource.map(|subresource| subresource.of(call, old)).transpose()
}

/// The first phase of admission, for an object or for its part.
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

/// The second phase.
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
