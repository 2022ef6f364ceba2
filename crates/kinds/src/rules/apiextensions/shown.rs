//! Formats versions and schemas as Go does in messages: all fields by their Go names.

use model::Object;
use serde_json::{Map, Value};

/// The form of a field.
enum Form {
    Text,
    Flag,
    Number,
    /// JSON; `null` if absent.
    Raw,
    Schema,
    Schemas,
    SchemaMap,
    /// A schema or a list of schemas.
    Items,
    /// A schema or a boolean.
    Open,
    /// Schemas or lists of strings, by name.
    Dependencies,
    Struct(Fields),
    Structs(Fields),
}

/// The fields of a type: Go name, JSON key and form.
type Fields = &'static [(&'static str, &'static str, Form)];

const VERSION: Fields = &[
    ("Name", "name", Form::Text),
    ("Served", "served", Form::Flag),
    ("Storage", "storage", Form::Flag),
    ("Deprecated", "deprecated", Form::Flag),
    ("DeprecationWarning", "deprecationWarning", Form::Raw),
    ("Schema", "schema", Form::Struct(&[("OpenAPIV3Schema", "openAPIV3Schema", Form::Schema)])),
    ("Subresources", "subresources", Form::Struct(SUBRESOURCES)),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", Form::Structs(COLUMN)),
    ("SelectableFields", "selectableFields", Form::Structs(&[("JSONPath", "jsonPath", Form::Text)])),
];

const SUBRESOURCES: Fields = &[
    ("Status", "status", Form::Struct(&[])),
    (
        "Scale",
        "scale",
        Form::Struct(&[
            ("SpecReplicasPath", "specReplicasPath", Form::Text),
            ("StatusReplicasPath", "statusReplicasPath", Form::Text),
            ("LabelSelectorPath", "labelSelectorPath", Form::Raw),
        ]),
    ),
];

const COLUMN: Fields = &[
    ("Name", "name", Form::Text),
    ("Type", "type", Form::Text),
    ("Format", "format", Form::Text),
    ("Description", "description", Form::Text),
    ("Priority", "priority", Form::Number),
    ("JSONPath", "jsonPath", Form::Text),
];

const SCHEMA: Fields = &[
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Raw),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Raw),
    ("Maximum", "maximum", Form::Raw),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Raw),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Raw),
    ("MinLength", "minLength", Form::Raw),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Raw),
    ("MinItems", "minItems", Form::Raw),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Raw),
    ("Enum", "enum", Form::Raw),
    ("MaxProperties", "maxProperties", Form::Raw),
    ("MinProperties", "minProperties", Form::Raw),
    ("Required", "required", Form::Raw),
    ("Items", "items", Form::Items),
    ("AllOf", "allOf", Form::Schemas),
    ("OneOf", "oneOf", Form::Schemas),
    ("AnyOf", "anyOf", Form::Schemas),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::SchemaMap),
    ("AdditionalProperties", "additionalProperties", Form::Open),
    ("PatternProperties", "patternProperties", Form::SchemaMap),
    ("Dependencies", "dependencies", Form::Dependencies),
    ("AdditionalItems", "additionalItems", Form::Open),
    ("Definitions", "definitions", Form::SchemaMap),
    (
        "ExternalDocs",
        "externalDocs",
        Form::Struct(&[("Description", "description", Form::Text), ("URL", "url", Form::Text)]),
    ),
    ("Example", "example", Form::Raw),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Form::Raw),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Form::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Raw),
    ("XListType", "x-kubernetes-list-type", Form::Raw),
    ("XMapType", "x-kubernetes-map-type", Form::Raw),
    ("XValidations", "x-kubernetes-validations", Form::Structs(RULE)),
];

const RULE: Fields = &[
    ("Rule", "rule", Form::Text),
    ("Message", "message", Form::Text),
    ("MessageExpression", "messageExpression", Form::Text),
    ("Reason", "reason", Form::Raw),
    ("FieldPath", "fieldPath", Form::Text),
    ("OptionalOldSelf", "optionalOldSelf", Form::Raw),
];

/// The versions of a CRD; properties that all of them share are shown as nil.
pub fn shown_versions(versions: &[Value], is_shared: impl Fn(&str) -> bool) -> String {
    if versions.is_empty() {
        return "null".to_owned();
    }
    const OWN: [&str; 5] = ["name", "served", "storage", "deprecated", "deprecationWarning"];
    let shown = versions.iter().filter_map(Value::as_object).map(|version| {
        let mut version = version.clone();
        version.retain(|key, _| OWN.contains(&key.as_str()) || !is_shared(key));
        fields(&version, VERSION)
    });
    list(shown)
}

/// A schema.
pub fn shown_schema(schema: &Object) -> String {
    fields(schema, SCHEMA)
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn fields(object: &Map<String, Value>, of: Fields) -> String {
    let fields = of.iter().map(|(name, key, form)| format!("\"{name}\":{}", form.write(object.get(*key))));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn json(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn schema_or_null(value: Option<&Value>) -> String {
    value.and_then(Value::as_object).map_or_else(|| "null".to_owned(), shown_schema)
}

fn map(value: &Value, of: impl Fn(&Value) -> String) -> String {
    let entries = value.as_object().into_iter().flatten();
    let entries = entries.map(|(key, value)| format!("{}:{}", json(&key.as_str().into()), of(value)));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

impl Form {
    fn write(&self, value: Option<&Value>) -> String {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return match self {
                Self::Text => "\"\"",
                Self::Flag => "false",
                Self::Number => "0",
                _ => "null",
            }
            .to_owned();
        };
        let items = || value.as_array().into_iter().flatten();
        match self {
            Self::Text | Self::Flag | Self::Number | Self::Raw => json(value),
            Self::Schema => schema_or_null(Some(value)),
            Self::Schemas => list(items().map(|item| schema_or_null(Some(item)))),
            Self::SchemaMap => map(value, |schema| schema_or_null(Some(schema))),
            Self::Items => {
                let several =
                    if value.is_array() { Self::Schemas.write(Some(value)) } else { "null".to_owned() };
                format!("{{\"Schema\":{},\"JSONSchemas\":{several}}}", schema_or_null(Some(value)))
            }
            Self::Open => {
                let allows = value.as_bool().unwrap_or(true);
                format!("{{\"Allows\":{allows},\"Schema\":{}}}", schema_or_null(Some(value)))
            }
            Self::Dependencies => map(value, |value| {
                let names = if value.is_array() { json(value) } else { "null".to_owned() };
                format!("{{\"Schema\":{},\"Property\":{names}}}", schema_or_null(Some(value)))
            }),
            Self::Struct(of) => {
                value.as_object().map_or_else(|| "null".to_owned(), |object| fields(object, of))
            }
            Self::Structs(of) => list(items().filter_map(Value::as_object).map(|object| fields(object, of))),
        }
    }
}
