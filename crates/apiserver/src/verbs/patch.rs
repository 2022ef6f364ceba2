//! patch: an object changed by a JSON patch or a merge patch.

use http::Response;
use model::error::{Error, FieldError};
use model::{Revision, json};
use serde_json::Value;

use super::Call;
use super::body::{Decoded, duplicate_fields, shape};
use super::options::WriteOptions;
use super::update::check_place;
use super::write::{self, Change, Changed};
use crate::body::Body;
use crate::registry::Object;
use crate::request::negotiate::content_type;

/// A patch that can be applied to any state of the object.
struct Patch {
    kind: PatchKind,
    patch: Value,
    duplicates: Vec<String>,
    options: WriteOptions,
}

enum PatchKind {
    Json,
    Merge,
}

pub async fn patch(call: Call) -> Result<Response<Body>, Error> {
    let options = WriteOptions::from_query(&call.query, "PatchOptions")?;
    let kind = match content_type(&call.headers) {
        "application/json-patch+json" => PatchKind::Json,
        "application/merge-patch+json" => PatchKind::Merge,
        _ => {
            let accepted = ["application/json-patch+json", "application/merge-patch+json"];
            return Err(Error::UnsupportedMediaType { accepted: accepted.map(str::to_owned).to_vec() });
        }
    };
    let parsed = json::parse(&call.body);
    let parsed =
        parsed.map_err(|error| Error::BadRequest { message: format!("error decoding patch: {error}") })?;
    let patch = Patch { kind, patch: parsed.value, duplicates: parsed.duplicates, options };
    write::change(&call, &patch, options).await
}

impl Change for Patch {
    fn apply(&self, call: &Call, old: &Object, revision: Revision) -> Result<Changed, Error> {
        let resource_type = &call.resource_type;
        // The patch sees the object as clients see it: with kind, version and resourceVersion.
        let mut seen = old.clone();
        seen.insert("kind".to_owned(), resource_type.kind.clone().into());
        seen.insert("apiVersion".to_owned(), resource_type.api_version().into());
        super::metadata::set_text(&mut seen, "resourceVersion", &revision.to_string());
        let mut document = Value::Object(seen);
        match self.kind {
            PatchKind::Json => model::patch::json::apply(&mut document, &self.patch)?,
            PatchKind::Merge => model::patch::merge::apply(&mut document, &self.patch)?,
        }
        let Value::Object(object) = document else {
            let message = "the patch does not leave an object".to_owned();
            return Err(Error::BadRequest { message });
        };
        let mut complaints = duplicate_fields(&self.duplicates);
        if let PatchKind::Json = self.kind {
            complaints.extend(model::patch::json::unknown_fields(&self.patch));
        }
        let shaped = shape(resource_type, object, complaints, self.options.field_validation);
        let Decoded { mut object, warnings } = shaped.map_err(|unfit| self.unfit(&unfit.reason))?;
        check_place(call, &mut object)?;
        // What the patch did not touch is not a precondition of the client's.
        if super::metadata::text(&object, "resourceVersion") == revision.to_string() && !self.names_revision()
        {
            super::metadata::remove(&mut object, "resourceVersion");
        }
        Ok(Changed { object, warnings })
    }
}

impl Patch {
    /// The object would be none of its type. Unlike Kubernetes, the answer shows the patch and not the patched object, which the
    /// caller may have no right to read.
    fn unfit(&self, reason: &str) -> Error {
        Error::Invalid {
            group: String::new(),
            kind: String::new(),
            name: String::new(),
            errors: vec![FieldError::invalid("patch", self.patch.to_string(), reason)],
        }
    }

    fn names_revision(&self) -> bool {
        match self.kind {
            PatchKind::Merge => self.patch.pointer("/metadata/resourceVersion").is_some(),
            PatchKind::Json => {
                self.patch.as_array().into_iter().flatten().any(|operation| {
                    write::text_at(operation, "path").starts_with("/metadata/resourceVersion")
                })
            }
        }
    }
}
