//! Decoding of request bodies into objects of their type.

use kinds::protobuf::TypeMeta;
use kinds::schema::{Schema, TypeId, strict};
use kinds::{protobuf, schema};
use model::error::{Error, FieldError, quote};
use model::json;
use model::object::text;
use serde_json::Value;

use super::Call;
use super::options::FieldValidation;
use super::{metadata, type_meta};
use crate::registry::{Object, ResourceType};
use crate::request::negotiate::{self, Encoding, Offer};

/// Decodes the body of a create or update, with warnings about unknown and duplicate fields.
pub fn decode(call: &Call, validation: FieldValidation) -> Result<Object, Error> {
    let resource_type = &call.resource_type;
    let encoding = negotiate::body_encoding(&call.headers, resource_type.offer())?;
    let unrecognized = |problem: String| {
        let message = schema::unrecognized(&resource_type.kind, &problem, &call.body);
        Error::BadRequest { message }
    };
    let mut source = Source::Text;
    let mut complaints = Vec::new();
    let value = match encoding {
        Encoding::Json => {
            let parsed =
                json::parse(&call.body).map_err(|e| unrecognized(type_meta::unreadable(&e.to_string())))?;
            complaints = duplicate_fields(&parsed.duplicates);
            match resource_type.strategy.schema() {
                Some((schema, of)) => {
                    let json = TypedJson { text: &call.body, schema, of };
                    let value = json.merged(parsed);
                    source = Source::Json(json);
                    value
                }
                None => parsed.value,
            }
        }
        Encoding::Yaml => {
            let parsed = json::parse_yaml(&call.body).map_err(|e| unrecognized(e.to_string()))?;
            source = Source::Yaml(parsed.duplicates);
            parsed.value
        }
        Encoding::Protobuf => {
            source = Source::Protobuf;
            let version = resource_type.api_version();
            let decoded =
                protobuf::decode(schema::builtin(), &call.body, TypeMeta::new(&version, &resource_type.kind));
            decoded.map_err(|e| undecodable(resource_type, &e, &call.body))?.value
        }
    };
    let object = type_meta::typed(value).map_err(unrecognized)?;
    if resource_type.custom.is_some() && text(&object, &["kind"]).is_empty() {
        let body = String::from_utf8_lossy(&call.body);
        return Err(unrecognized(format!("Object 'Kind' is missing in '{body}'")));
    }
    let sent = DecodedBody { object, complaints, source };
    let object = fit(call, sent, validation).map_err(|unfit| unfit.of_body(resource_type))?;
    call.trail.sent(object.get("metadata"), || logged(call, object.clone()));
    Ok(object)
}

/// The JSON of a built-in object. It is parsed in order only if there is something to report.
struct TypedJson<'a> {
    text: &'a [u8],
    schema: &'static Schema,
    of: TypeId,
}

impl TypedJson<'_> {
    /// The object, with duplicate fields merged.
    fn merged(&self, parsed: json::Parsed) -> Value {
        if parsed.duplicates.is_empty() {
            return parsed.value;
        }
        let ordered = json::Ordered::parse(self.text);
        ordered.map_or(parsed.value, |ordered| strict::merged(self.schema, self.of, ordered))
    }

    /// Unknown and duplicate fields, in the order of the text.
    fn complaints(&self) -> Vec<String> {
        let ordered = json::Ordered::parse(self.text);
        ordered.map(|ordered| strict::complaints(self.schema, self.of, &ordered)).unwrap_or_default()
    }
}

/// The request object of the audit log: with kind, apiVersion and defaults.
pub fn logged(call: &Call, mut object: Object) -> Value {
    let resource_type = &call.resource_type;
    resource_type.strategy.default(&mut object);
    if let Some(conversion) = resource_type.conversion() {
        (conversion.from_stored)(&mut object);
    }
    object.insert("kind".to_owned(), resource_type.kind.as_str().into());
    object.insert("apiVersion".to_owned(), resource_type.api_version().into());
    Value::Object(object)
}

/// Kubernetes' message for invalid protobuf.
fn undecodable(resource_type: &ResourceType, error: &protobuf::DecodeError, body: &[u8]) -> Error {
    use protobuf::DecodeError;
    match error {
        DecodeError::Envelope(problem) => {
            Error::BadRequest { message: schema::unrecognized(&resource_type.kind, problem, body) }
        }
        DecodeError::UnknownKind { api_version, kind } | DecodeError::Object { api_version, kind, .. } => {
            let (kind, version) = (kind.clone(), api_version.clone());
            Unfit::Shape { kind, version, reason: error.to_string() }.of_body(resource_type)
        }
    }
}

/// The reason why an object does not fit its type.
pub enum Unfit {
    /// It cannot be decoded.
    Shape {
        /// Its kind.
        kind: String,
        /// Its apiVersion.
        version: String,
        /// The error.
        reason: String,
    },
    /// It has another kind or apiVersion.
    Other(Error),
}

impl Unfit {
    /// Kubernetes' message for such a body.
    fn of_body(self, resource_type: &ResourceType) -> Error {
        let expected = &resource_type.kind;
        match self {
            Self::Shape { kind, version, reason } => Error::BadRequest {
                message: format!(
                    "{kind} in version {} cannot be handled as a {expected}: {reason}",
                    quote(&version)
                ),
            },
            Self::Other(error) => error,
        }
    }
}

/// Decodes a JSON object: checks kind and field types, removes kind and apiVersion, and warns about unknown fields.
pub fn shape(
    call: &Call,
    object: Object,
    complaints: Vec<String>,
    validation: FieldValidation,
) -> Result<Object, Unfit> {
    fit(call, DecodedBody { object, complaints, source: Source::Text }, validation)
}

/// Like [`shape`], for the result of server-side apply.
pub fn shape_applied(call: &Call, object: Object) -> Result<Object, Unfit> {
    let sent = DecodedBody { object, complaints: Vec::new(), source: Source::Applied };
    fit(call, sent, FieldValidation::Ignore)
}

/// A parsed body with its format.
struct DecodedBody<'a> {
    object: Object,
    complaints: Vec<String>,
    source: Source<'a>,
}

/// The format of a body.
enum Source<'a> {
    /// A patch, or the JSON of a custom object: unknown fields are reported after all other warnings.
    Text,
    /// The JSON of a built-in type: warnings have its order.
    Json(TypedJson<'a>),
    /// YAML; duplicate keys are one warning with several messages.
    Yaml(Vec<String>),
    /// Protobuf, which has only known fields of the right types.
    Protobuf,
    /// The result of server-side apply.
    Applied,
}

fn fit(call: &Call, sent: DecodedBody, validation: FieldValidation) -> Result<Object, Unfit> {
    let DecodedBody { mut object, mut complaints, source } = sent;
    let resource_type = &call.resource_type;
    match &resource_type.custom {
        Some(_) => check_custom_kind(resource_type, &object).map_err(Unfit::Other)?,
        None => check_kind(resource_type, &object)?,
    }
    object.remove("kind");
    object.remove("apiVersion");
    if resource_type.custom.is_none() {
        mark_reset(&mut object);
    }
    let unfit = |reason: String| Unfit::Shape {
        kind: resource_type.kind.clone(),
        version: resource_type.version.clone(),
        reason,
    };
    let strategy = &resource_type.strategy;
    let decoded = match source {
        Source::Protobuf => Ok(Vec::new()),
        Source::Applied => strategy.decode_applied(&mut object),
        Source::Text | Source::Json(_) | Source::Yaml(_) => strategy.decode(&mut object),
    };
    complaints.extend(decoded.map_err(unfit)?);
    if let Source::Json(json) = &source
        && !complaints.is_empty()
    {
        complaints = json.complaints();
    }
    if let Some(conversion) = resource_type.conversion() {
        (conversion.to_stored)(&mut object);
    }
    let repeated = match source {
        Source::Yaml(repeated) => repeated,
        _ => Vec::new(),
    };
    match validation {
        FieldValidation::Strict => {
            if !repeated.is_empty() {
                complaints.insert(0, json::repeated_keys_error(&repeated));
            }
            if !complaints.is_empty() {
                return Err(unfit(format!("strict decoding error: {}", complaints.join(", "))));
            }
        }
        FieldValidation::Warn => call.warnings.extend(repeated.into_iter().chain(complaints)),
        FieldValidation::Ignore => {}
    }
    Ok(object)
}

/// Marks an empty list of managers, which resets managedFields, by an empty entry that decoding keeps. For custom objects it
/// means nothing.
fn mark_reset(object: &mut Object) {
    let managed = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields"));
    if let Some(Value::Array(entries)) = managed
        && entries.is_empty()
    {
        entries.push(Value::Object(Object::new()));
    }
}

/// The messages about duplicate keys.
pub fn duplicate_fields(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("duplicate field {}", quote(path))).collect()
}

/// kind and apiVersion may be omitted; otherwise they must match the path.
fn check_kind(resource_type: &ResourceType, object: &Object) -> Result<(), Unfit> {
    let expected = resource_type.api_version();
    let (kind, version) = (text(object, &["kind"]), text(object, &["apiVersion"]));
    let kind = if kind.is_empty() { resource_type.kind.as_str() } else { kind };
    let version = if version.is_empty() { expected.as_str() } else { version };
    // Kubernetes accepts evictions of this older version.
    let is_older = kind == "Eviction" && version == "policy/v1beta1";
    if (version == expected || is_older) && kind == resource_type.kind {
        return Ok(());
    }
    let short = version.rsplit('/').next().unwrap_or(version);
    let reason = if type_meta::is_registered(version, kind) {
        let internal =
            format!("{}.{}", type_meta::internal_package(&resource_type.group), resource_type.kind);
        format!("converting ({short}.{kind}) to ({internal}): unknown conversion")
    } else {
        type_meta::not_registered(version, kind)
    };
    Err(Unfit::Shape { kind: kind.to_owned(), version: short.to_owned(), reason })
}

/// Custom objects must have a kind; a wrong one is a validation error.
fn check_custom_kind(resource_type: &ResourceType, object: &Object) -> Result<(), Error> {
    let expected = resource_type.api_version();
    let (kind, version) = (text(object, &["kind"]), text(object, &["apiVersion"]));
    if version != expected {
        let message = format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        );
        return Err(Error::BadRequest { message });
    }
    if kind == resource_type.kind {
        return Ok(());
    }
    let errors = vec![FieldError::invalid("kind", kind, format!("must be {}", resource_type.kind))];
    let name = metadata::text(object, "name").to_owned();
    Err(Error::Invalid { group: resource_type.group.clone(), kind: kind.to_owned(), name, errors })
}

/// Decodes `DeleteOptions`.
pub fn delete_options(call: &Call) -> Result<Value, Error> {
    let bad = |message: String| Error::BadRequest { message };
    let value = match negotiate::body_encoding(&call.headers, Offer::WHOLE)? {
        Encoding::Json => {
            json::parse(&call.body).map_err(|e| bad(type_meta::unreadable(&e.to_string())))?.value
        }
        Encoding::Yaml => json::parse_yaml(&call.body).map_err(|e| bad(e.to_string()))?.value,
        Encoding::Protobuf => {
            let decoded =
                protobuf::decode(schema::builtin(), &call.body, TypeMeta::new("v1", "DeleteOptions"));
            decoded.map_err(|e| bad(e.to_string()))?.value
        }
    };
    let mut options = type_meta::typed(value).map_err(bad)?;
    let (version, kind) = (text(&options, &["apiVersion"]), text(&options, &["kind"]));
    if !matches!(kind, "" | "DeleteOptions") {
        return Err(bad(type_meta::not_registered(version, kind)));
    }
    options.remove("apiVersion");
    options.remove("kind");
    let mut value = Value::Object(options);
    if let Some(of) = schema::builtin().by_kind("", "v1", "DeleteOptions") {
        // Unknown fields are ignored here, wrong types are not.
        schema::check(schema::builtin(), of, &mut value).map_err(|mismatch| bad(mismatch.to_string()))?;
    }
    call.trail.sent(None, || {
        let mut options = value.clone();
        options["kind"] = "DeleteOptions".into();
        // The apiVersion of decoded options in Kubernetes.
        options["apiVersion"] = "meta.k8s.io/__internal".into();
        options
    });
    Ok(value)
}
