//! patch: JSON patch, merge patch, strategic merge patch, or server-side apply.

use http::Response;
use kinds::patch::strategic;
use kinds::schema::{Schema, TypeId, strict};
use model::error::{Error, FieldError};
use model::object::text_in;
use model::{Revision, json};
use serde_json::Value;

use super::Call;
use super::apply::{self, APPLY_PATCH};
use super::body::{Unfit, duplicate_fields, shape};
use super::options::WriteOptions;
use super::update::check_place;
use super::write::{self, Mutated, Mutation};
use crate::body::Body;
use crate::registry::Object;
use crate::request::negotiate::content_type;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// A patch.
pub struct Patch {
    kind: PatchKind,
    patch: Value,
    /// Strict decoding errors of the patch itself.
    complaints: Vec<String>,
    options: WriteOptions,
}

#[derive(Clone, Copy)]
enum PatchKind {
    Json,
    Merge,
    Strategic(&'static Schema, TypeId),
}

pub async fn patch(call: Call) -> Result<Response<Body>, Error> {
    if content_type(&call.headers) == APPLY_PATCH {
        return apply::apply(call).await;
    }
    let options = WriteOptions::of_patch(&call.query, false)?;
    let patch = Patch::read(&call, options)?;
    write::update(&call, &patch, options).await
}

/// A strategic merge patch needs a schema, which only built-in types have.
fn patch_kind(call: &Call) -> Result<PatchKind, Error> {
    let schema = call.resource_type.strategy.schema();
    match (content_type(&call.headers), schema) {
        (JSON_PATCH, _) => Ok(PatchKind::Json),
        (MERGE_PATCH, _) => Ok(PatchKind::Merge),
        (STRATEGIC_PATCH, Some((schema, of))) => Ok(PatchKind::Strategic(schema, of)),
        (_, None) => {
            let accepted = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH].map(str::to_owned).to_vec();
            Err(Error::UnsupportedMediaType { accepted })
        }
        _ => Err(Error::UnsupportedMediaType { accepted: Vec::new() }),
    }
}

/// Strict decoding errors of the operations of a JSON patch.
fn operation_complaints(body: &[u8], parsed: &json::Parsed) -> Vec<String> {
    if parsed.duplicates.is_empty() && !kinds::patch::json::has_unknown_fields(&parsed.value) {
        return Vec::new();
    }
    let complaints = json::Ordered::parse(body).map(|patch| strict::patch_complaints(&patch));
    let complaints = complaints.unwrap_or_default().into_iter();
    complaints.map(|complaint| format!("json patch {complaint}")).collect()
}

impl Mutation for Patch {
    fn apply(&self, call: &Call, old: &Object, revision: Revision) -> Result<Mutated, Error> {
        let document = self.patched(call, old, revision)?;
        let Value::Object(object) = document else {
            let message = "the patched document is no object".to_owned();
            return Err(Error::BadRequest { message });
        };
        let shaped = shape(call, object, self.complaints.clone(), self.options.field_validation);
        let mut object = shaped.map_err(|unfit| match unfit {
            Unfit::Shape { reason, .. } => self.unfit(call, old, revision, &reason),
            Unfit::Other(error) => error,
        })?;
        check_place(call, &mut object)?;
        // The resourceVersion is a precondition only if the patch sets it.
        if super::metadata::text(&object, "resourceVersion") == revision.to_string() && !self.names_revision()
        {
            super::metadata::remove(&mut object, "resourceVersion");
        }
        Ok(Mutated { object, tracked: None })
    }
}

impl Patch {
    /// The patched object, with kind, apiVersion and resourceVersion.
    fn patched(&self, call: &Call, old: &Object, revision: Revision) -> Result<Value, Error> {
        let resource_type = &call.resource_type;
        let mut seen = old.clone();
        if let Some(conversion) = resource_type.conversion() {
            (conversion.from_stored)(&mut seen);
        }
        seen.insert("kind".to_owned(), resource_type.kind.clone().into());
        seen.insert("apiVersion".to_owned(), resource_type.api_version().into());
        super::metadata::set_text(&mut seen, "resourceVersion", &revision.to_string());
        let mut document = Value::Object(seen);
        match self.kind {
            PatchKind::Json => kinds::patch::json::apply(&mut document, &self.patch)?,
            PatchKind::Merge => kinds::patch::merge::apply(&mut document, &self.patch)?,
            PatchKind::Strategic(schema, of) => {
                strategic::apply(schema, of, &mut document, &self.patch)?;
            }
        }
        Ok(document)
    }

    /// Reads the patch from the request body.
    pub fn read(call: &Call, options: WriteOptions) -> Result<Self, Error> {
        let kind = patch_kind(call)?;
        let parsed = json::parse(&call.body);
        let parsed = parsed
            .map_err(|error| Error::BadRequest { message: format!("error decoding patch: {error}") })?;
        call.trail.sent(None, || parsed.value.clone());
        let complaints = match kind {
            PatchKind::Json => operation_complaints(&call.body, &parsed),
            PatchKind::Merge | PatchKind::Strategic(..) => duplicate_fields(&parsed.duplicates),
        };
        Ok(Self { kind, patch: parsed.value, complaints, options })
    }

    /// The error of a patched object that does not fit its type. Unlike Kubernetes, it shows the patch and not the patched
    /// object, which the caller may not be allowed to read.
    fn unfit(&self, call: &Call, old: &Object, revision: Revision, reason: &str) -> Error {
        let (patch, own) = match self.kind {
            PatchKind::Strategic(schema, of) => {
                let patched = self.patched(call, old, revision).unwrap_or_default();
                (kinds::patch::go_text(&self.patch), strategic::unfit(schema, of, &patched))
            }
            PatchKind::Json | PatchKind::Merge => (self.patch.to_string(), None),
        };
        Error::Invalid {
            group: String::new(),
            kind: String::new(),
            name: String::new(),
            errors: vec![FieldError::invalid("patch", patch, own.as_deref().unwrap_or(reason))],
        }
    }

    fn names_revision(&self) -> bool {
        match self.kind {
            PatchKind::Merge | PatchKind::Strategic(..) => {
                self.patch.pointer("/metadata/resourceVersion").is_some()
            }
            PatchKind::Json => self
                .patch
                .as_array()
                .into_iter()
                .flatten()
                .any(|operation| text_in(operation, "path").starts_with("/metadata/resourceVersion")),
        }
    }
}
