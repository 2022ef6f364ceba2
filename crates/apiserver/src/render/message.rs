//! Stored objects as protobuf: from their bytes, without a tree.

use std::borrow::Cow;

use kinds::protobuf::{EncodeError, Encoder, TypeMeta};
use kinds::schema;
use model::error::Error;

use super::not_encoded;
use crate::registry::Served;
use crate::request::negotiate::View;

/// The type of an object of which only the metadata is shown: apiVersion and kind.
pub const METADATA: (&str, &str) = ("meta.k8s.io/v1", "PartialObjectMetadata");

/// Writes objects of a resource type, whole or their metadata. There are no tables here.
pub struct Messages<'s> {
    served: &'s Served,
    view: View,
    api_version: String,
    encoder: Encoder<'static>,
}

impl<'s> Messages<'s> {
    pub fn new(served: &'s Served, view: View) -> Self {
        let api_version = match view {
            View::Metadata => METADATA.0.to_owned(),
            View::Whole | View::Table => served.api_version(),
        };
        Self { served, view, api_version, encoder: Encoder::new(schema::builtin()) }
    }

    /// One object as an answer.
    pub fn object(&mut self, stored: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::with_capacity(stored.len());
        self.write(stored, |encoder, of, json| encoder.object(of, json, &mut out))?;
        Ok(out)
    }

    /// One object of a list.
    pub fn item(&mut self, stored: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.write(stored, |encoder, of, json| encoder.item(of, json, out))
    }

    /// One object in an event of a watch.
    pub fn event(&mut self, event: &str, stored: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.write(stored, |encoder, of, json| encoder.event(event, of, json, out))
    }

    /// The type of the metadata has no field for the rest of an object: nobody has to take it away.
    fn write(
        &mut self,
        stored: &[u8],
        write: impl FnOnce(&mut Encoder, TypeMeta<'_>, &[u8]) -> Result<(), EncodeError>,
    ) -> Result<(), Error> {
        let (kind, json) = match self.view {
            View::Metadata => (METADATA.1, Cow::Borrowed(stored)),
            View::Whole | View::Table => (&*self.served.kind, self.served.shown(stored)?),
        };
        write(&mut self.encoder, TypeMeta::new(&self.api_version, kind), &json).map_err(not_encoded)
    }
}
