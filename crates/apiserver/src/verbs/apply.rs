//! Server-side apply: merges a configuration into the object, or creates it.

use http::Response;
use kinds::patch::cannot_unmarshal;
use model::error::Error;
use model::object;
use model::{Revision, json};
use serde_json::Value;

use super::body::{Unfit, shape_applied};
use super::create::{create_applied, forget_version, may_create};
use super::managed_fields::FieldManager;
use super::metadata::{self, time};
use super::options::{FieldValidation, WriteOptions};
use super::update::check_place;
use super::write::{self, Mutated, Mutation, now};
use super::{Call, store_error};
use crate::body::Body;
use crate::registry::Object;

/// The media type of server-side apply.
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// An applied configuration.
pub struct Configuration {
    config: Object,
    /// A message per duplicate key.
    repeated_keys: Vec<String>,
    field_validation: FieldValidation,
}

pub async fn apply(call: Call) -> Result<Response<Body>, Error> {
    let options = WriteOptions::of_patch(&call.query, true)?;
    let configuration = Configuration::read(&call, options)?;
    if call.path.subresource.is_empty() {
        let found = call.api.store.get(&call.key(), None).await.map_err(store_error)?;
        if found.is_none() {
            let mut applied = configuration.applied(&call, None, Revision::ZERO)?;
            forget_version(&call, &mut applied.object)?;
            may_create(&call)?;
            match create_applied(&call, applied, options).await {
                // Another client created the object; apply to it.
                Err(Error::AlreadyExists { .. }) => {}
                answer => return answer,
            }
        }
    }
    write::update(&call, &configuration, options).await
}

impl Configuration {
    /// Reads the configuration from the request body.
    pub fn read(call: &Call, options: WriteOptions) -> Result<Self, Error> {
        let bad = |message: String| Error::BadRequest { message };
        let parsed = json::parse_yaml(&call.body)
            .map_err(|error| bad(format!("error decoding YAML: error converting YAML to JSON: {error}")))?;
        call.trail.sent(None, || parsed.value.clone());
        let mut config = match parsed.value {
            Value::Object(config) => config,
            Value::Null => Object::new(),
            other => {
                let expected = cannot_unmarshal(&other, "value of type map[string]interface {}");
                let problem = format!("error unmarshaling JSON: while decoding JSON: {expected}");
                return Err(bad(format!("error decoding YAML: {problem}")));
            }
        };
        config.values_mut().for_each(round);
        Ok(Self { config, repeated_keys: parsed.duplicates, field_validation: options.field_validation })
    }

    /// Duplicate keys are reported after the configuration was merged.
    fn check_keys(&self, call: &Call) -> Result<(), Error> {
        match self.field_validation {
            FieldValidation::Strict if !self.repeated_keys.is_empty() => {
                let problem = json::repeated_keys_error(&self.repeated_keys);
                let message = format!("error strict decoding YAML: error converting YAML to JSON: {problem}");
                Err(Error::BadRequest { message })
            }
            FieldValidation::Warn => {
                call.warnings.extend(self.repeated_keys.iter().cloned());
                Ok(())
            }
            FieldValidation::Strict | FieldValidation::Ignore => Ok(()),
        }
    }

    /// Merges the configuration into an object, or into none.
    pub fn applied(&self, call: &Call, old: Option<&Object>, revision: Revision) -> Result<Mutated, Error> {
        self.check_kind(call)?;
        let writing = FieldManager::new(call, time(now()));
        let applied = writing.apply(old, &self.config, call.query.flag("force"))?;
        let mut object = match (applied.object, old) {
            (Some(object), _) => self.shaped(call, object)?,
            (None, Some(old)) => old.clone(),
            (None, None) => Object::new(),
        };
        metadata::remove(&mut object, "managedFields");
        self.check_keys(call)?;
        self.check_uid(call, &object, old)?;
        check_place(call, &mut object)?;
        // The resourceVersion is a precondition only if the configuration has it.
        if metadata::text(&self.config, "resourceVersion").is_empty()
            && metadata::text(&object, "resourceVersion") == revision.to_string()
        {
            metadata::remove(&mut object, "resourceVersion");
        }
        Ok(Mutated { object, tracked: Some(applied.tracked) })
    }

    fn shaped(&self, call: &Call, mut object: Object) -> Result<Object, Error> {
        let resource_type = &call.resource_type;
        let text = |key| metadata::text(&self.config, key);
        let kind = kind_text(&resource_type.api_version(), &resource_type.kind);
        object.insert("apiVersion".to_owned(), resource_type.api_version().into());
        object.insert("kind".to_owned(), resource_type.kind.clone().into());
        shape_applied(call, object).map_err(|unfit| match unfit {
            Unfit::Other(error) => error,
            Unfit::Shape { reason, .. } => Error::Failed {
                message: format!(
                    "failed to convert new object ({}/{}; {kind}) to proper version: \
                     unable to convert unstructured object to {kind}: {}",
                    text("namespace"),
                    text("name"),
                    converted(&reason)
                ),
            },
        })
    }

    /// kind and apiVersion are required, and must match the path.
    fn check_kind(&self, call: &Call) -> Result<(), Error> {
        let text = |key| object::text(&self.config, &[key]);
        let (version, kind) = (text("apiVersion"), text("kind"));
        if version == call.resource_type.api_version() && kind == call.resource_type.kind {
            return Ok(());
        }
        Err(Error::BadRequest { message: format!("invalid object type: {}", kind_text(version, kind)) })
    }

    fn check_uid(&self, call: &Call, object: &Object, old: Option<&Object>) -> Result<(), Error> {
        let uid = metadata::text(object, "uid");
        if old.is_some() || uid.is_empty() {
            return Ok(());
        }
        let message = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        Err(call.resource_type.conflict(&call.path.name, message))
    }
}

/// A number without a fraction is an integer, whatever its notation.
fn round(value: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= EXACT);
            if let Some(whole) = whole {
                *value = Value::from(whole as i64);
            }
        }
        _ => {}
    }
}

/// Kubernetes' conversion error, which lacks the path.
fn converted(reason: &str) -> String {
    let Some((given, rest)) = reason.split_once(" into Go struct field ") else { return reason.to_owned() };
    let expected = rest.rsplit_once(" of type ").map_or(rest, |(_, expected)| expected);
    if given.starts_with("json: cannot unmarshal number") {
        return format!("cannot convert float64 to {expected}");
    }
    format!("{given} into Go value of type {expected}")
}

/// A kind in messages.
fn kind_text(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

impl Mutation for Configuration {
    fn apply(&self, call: &Call, old: &Object, revision: Revision) -> Result<Mutated, Error> {
        self.applied(call, Some(old), revision)
    }
}
