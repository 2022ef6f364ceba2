//! Protobuf encoding of stored objects, directly from their bytes.

use std::borrow::Cow;

use kinds::protobuf::{EncodeError, Encoder, TypeMeta};
use kinds::schema;
use model::error::Error;

use super::not_encoded;
use crate::registry::Served;
use crate::request::negotiate::Representation;

/// apiVersion and kind of metadata-only objects.
pub const METADATA: (&str, &str) = ("meta.k8s.io/v1", "PartialObjectMetadata");

/// Encodes objects of a resource type, whole or their metadata. Tables have no protobuf form.
pub struct Messages<'s> {
    served: &'s Served,
    view: Representation,
    api_version: String,
    encoder: Encoder<'static>,
}

impl<'s> Messages<'s> {
    pub fn new(served: &'s Served, view: Representation) -> Self {
        let api_version = match view {
            Representation::Metadata => METADATA.0.to_owned(),
            Representation::Whole | Representation::Table => served.api_version(),
        };
        Self { served, view, api_version, encoder: Encoder::new(schema::builtin()) }
    }

    /// Encodes a response object.
    pub fn object(&mut self, stored: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::with_capacity(stored.len());
        self.write(stored, |encoder, of, json| encoder.object(of, json, &mut out))?;
        Ok(out)
    }

    /// Encodes a list item.
    pub fn item(&mut self, stored: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.write(stored, |encoder, of, json| encoder.item(of, json, out))
    }

    /// Encodes a watch event.
    pub fn event(&mut self, event: &str, stored: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.write(stored, |encoder, of, json| encoder.event(event, of, json, out))
    }

    /// PartialObjectMetadata has no field for the rest of the object, which is therefore skipped.
    fn write(
        &mut self,
        stored: &[u8],
        write: impl FnOnce(&mut Encoder, TypeMeta<'_>, &[u8]) -> Result<(), EncodeError>,
    ) -> Result<(), Error> {
        let (kind, json) = match self.view {
            Representation::Metadata => (METADATA.1, Cow::Borrowed(stored)),
            Representation::Whole | Representation::Table => (&*self.served.kind, self.served.shown(stored)?),
        };
        write(&mut self.encoder, TypeMeta::new(&self.api_version, kind), &json).map_err(not_encoded)
    }
}
