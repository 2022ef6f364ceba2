//! How plugins see a change of an object, or of the part of it that is written.

use model::error::Error;

use super::Call;
use crate::admission::Request;
use crate::registry::{Object, Served};

/// A part that stands for an object where plugins look at a change: its scale.
pub trait Part: Sync {
    /// The type of the part.
    fn shown(&self) -> &Served;

    /// The part of an object.
    fn of(&self, call: &Call, object: &Object) -> Result<Object, Error>;

    /// Writes the part into its object.
    fn put(&self, call: &Call, object: &mut Object, part: &Object);
}

/// What plugins get as the old object.
pub fn old_part(call: &Call, part: Option<&dyn Part>, old: &Object) -> Result<Option<Object>, Error> {
    part.map(|part| part.of(call, old)).transpose()
}

/// The first phase of admission, for an object or for its part.
pub async fn admit(request: &Request<'_>, part: Option<&dyn Part>, object: &mut Object) -> Result<(), Error> {
    let Some(part) = part.filter(|_| !request.is_nobodys()) else {
        return request.admit(Some(object)).await;
    };
    let before = part.of(request.call, object)?;
    let mut after = before.clone();
    request.admit(Some(&mut after)).await?;
    if after != before {
        part.put(request.call, object, &after);
    }
    Ok(())
}

/// The second phase.
pub async fn validate(request: &Request<'_>, part: Option<&dyn Part>, object: &Object) -> Result<(), Error> {
    match part.filter(|_| !request.is_nobodys()) {
        Some(part) => request.validate(Some(&part.of(request.call, object)?)).await,
        None => request.validate(Some(object)).await,
    }
}
