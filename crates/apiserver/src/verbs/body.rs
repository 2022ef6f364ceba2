//! From the bytes of a request's body to an object of its type.

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

/// Decodes the body of a create or update; its sender is warned of what does not belong there.
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
            let decoded = protobuf::decode(schema::builtin(), &call.body, (&version, &resource_type.kind));
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

/// The JSON of an object of a built-in type. It is read in its order only where there is something to report.
struct TypedJson<'a> {
    text: &'a [u8],
    schema: &'static Schema,
    of: TypeId,
}

impl TypedJson<'_> {
    /// The object; fields that come twice are merged.
    fn merged(&self, parsed: json::Parsed) -> Value {
        if parsed.duplicates.is_empty() {
            return parsed.value;
        }
        let ordered = json::Ordered::parse(self.text);
        ordered.map_or(parsed.value, |ordered| strict::merged(self.schema, self.of, ordered))
    }

    /// Unknown fields and fields that come twice, in the order of the text.
    fn complaints(&self) -> Vec<String> {
        let ordered = json::Ordered::parse(self.text);
        ordered.map(|ordered| strict::complaints(self.schema, self.of, &ordered)).unwrap_or_default()
    }
}

/// An object that was sent, as the audit log has it: with kind, version and what was left out.
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

/// Kubernetes' words for protobuf that cannot be read.
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

/// Why an object is none of the type.
pub enum Unfit {
    /// It cannot be read as one.
    Shape {
        /// The kind that it says it is.
        kind: String,
        /// The version that it says it is.
        version: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It says that it is something else.
    Other(Error),
}

impl Unfit {
    /// Kubernetes' words for a body that cannot become an object of the type.
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

/// Brings a JSON object into the shape of its type: right kind, known fields, right types, without kind and version. Its sender is warned
/// of what does not belong there.
pub fn shape(
    call: &Call,
    object: Object,
    complaints: Vec<String>,
    validation: FieldValidation,
) -> Result<Object, Unfit> {
    fit(call, DecodedBody { object, complaints, source: Source::Text }, validation)
}

/// The same for what an applied configuration makes of an object.
pub fn shape_applied(call: &Call, object: Object) -> Result<Object, Unfit> {
    let sent = DecodedBody { object, complaints: Vec::new(), source: Source::Applied };
    fit(call, sent, FieldValidation::Ignore)
}

/// An object as it came, and what is odd about it.
struct DecodedBody<'a> {
    object: Object,
    complaints: Vec<String>,
    source: Source<'a>,
}

/// Where an object comes from.
enum Source<'a> {
    /// A patch, or the JSON of a custom object: what its schema does not know is reported behind all other complaints.
    Text,
    /// The JSON of a built-in type: complaints have its order.
    Json(TypedJson<'a>),
    /// YAML; keys that come twice are one complaint, which has a sentence about each of them.
    Yaml(Vec<String>),
    /// It has nothing but what its type has, in the form that a check would leave.
    Protobuf,
    /// From an object and an applied configuration.
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

/// An empty list of managers means the same as one with an empty entry, which decoding leaves as it is. In custom objects it means
/// nothing.
fn mark_reset(object: &mut Object) {
    let managed = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields"));
    if let Some(Value::Array(entries)) = managed
        && entries.is_empty()
    {
        entries.push(Value::Object(Object::new()));
    }
}

/// The complaints about keys that came twice.
pub fn duplicate_fields(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("duplicate field {}", quote(path))).collect()
}

/// Kind and version may be left out; what is there must be those of the path.
fn check_kind(resource_type: &ResourceType, object: &Object) -> Result<(), Unfit> {
    let expected = resource_type.api_version();
    let (kind, version) = (text(object, &["kind"]), text(object, &["apiVersion"]));
    let kind = if kind.is_empty() { resource_type.kind.as_str() } else { kind };
    let version = if version.is_empty() { expected.as_str() } else { version };
    // Clients that are older than the version which is served send evictions all the same.
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

/// Custom objects say what they are, and a wrong kind is one more rule that they break.
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
            let decoded = protobuf::decode(schema::builtin(), &call.body, ("v1", "DeleteOptions"));
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
        // What is unknown is forgiven here, and wrong types are not.
        schema::check(schema::builtin(), of, &mut value).map_err(|mismatch| bad(mismatch.to_string()))?;
    }
    call.trail.sent(None, || {
        let mut options = value.clone();
        options["kind"] = "DeleteOptions".into();
        // Kubernetes calls it so.
        options["apiVersion"] = "meta.k8s.io/__internal".into();
        options
    });
    Ok(value)
}
