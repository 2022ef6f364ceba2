//! Types of the schema table as JSON schemas, in the dialects of OpenAPI v2 and v3.

use descriptions::Descriptions;
use kinds::schema::{Field, ListKind, Or, Schema, Shape, Type, TypeId};
use serde_json::{Map, Value, json};

use super::document::{DocumentFormat, Pieces};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `definitions`, references beside descriptions, no defaults.
    V2,
    /// `components`, references within `allOf`, defaults.
    V3,
}

impl Dialect {
    /// A reference to a type by name.
    pub fn reference(self, name: &str) -> String {
        match self {
            Self::V2 => format!("#/definitions/{name}"),
            Self::V3 => format!("#/components/schemas/{name}"),
        }
    }
}

/// The schemas of types and of all types that they refer to, by name.
pub struct SchemaDefinitions<'a> {
    pub(super) form: DocumentFormat,
    schema: &'a Schema,
    pub(super) descriptions: &'a Descriptions,
    done: Pieces,
    /// Referenced types that are not yet encoded.
    open: Vec<TypeId>,
}

impl<'a> SchemaDefinitions<'a> {
    pub fn new(form: DocumentFormat, schema: &'a Schema, descriptions: &'a Descriptions) -> Self {
        Self { form, schema, descriptions, done: Pieces::new(), open: Vec::new() }
    }

    /// Adds the schema of a type.
    pub(super) fn define(&mut self, name: &str, definition: &Value) {
        self.done.insert(name.to_owned(), self.form.schema(definition));
    }

    /// References a type, and schedules its schema.
    pub fn of_type(&mut self, of: TypeId) -> String {
        self.open.push(of);
        self.form.dialect.reference(&self.schema.get(of).full_name())
    }

    /// References the list type of a type.
    pub fn of_list(&mut self, of: TypeId, plural: &str) -> String {
        let item = self.schema.get(of);
        let name = format!("{}List", item.full_name());
        if !self.done.contains_key(&name) {
            let item_reference = self.of_type(of);
            let list = self.list(item, &item_reference, plural);
            self.define(&name, &list);
        }
        self.form.dialect.reference(&name)
    }

    /// References a built-in kind; `None` if it does not exist.
    pub fn of_kind(&mut self, group: &str, version: &str, kind: &str) -> Option<String> {
        self.schema.by_kind(group, version, kind).map(|id| self.of_type(id))
    }

    /// References a type of `meta/v1`.
    pub fn of_meta(&mut self, name: &str) -> String {
        let full = format!("{META}.{name}");
        match self.schema.by_name(&full) {
            Some(id) => self.of_type(id),
            None => self.of_fixed(&full, json!({"type": "object"})),
        }
    }

    /// Encodes all referenced schemas.
    pub fn finish(mut self) -> Pieces {
        while let Some(id) = self.open.pop() {
            let of = self.schema.get(id);
            let name = of.full_name();
            if !self.done.contains_key(&name) {
                // Inserted first: a type may refer to itself.
                self.done.insert(name.clone(), Vec::new());
                let definition = self.definition(of, &name);
                self.define(&name, &definition);
            }
        }
        self.done
    }

    fn definition(&mut self, of: &Type, name: &str) -> Value {
        let mut definition = Map::new();
        if let Some(text) = self.descriptions.of_type(name) {
            definition.insert("description".to_owned(), text.into());
        }
        definition.insert("type".to_owned(), "object".into());
        let required: Vec<&str> = of.fields().iter().filter(|f| f.required).map(|f| &*f.name).collect();
        if !required.is_empty() {
            definition.insert("required".to_owned(), required.into());
        }
        let mut properties: Map<String, Value> =
            of.fields().iter().map(|field| (field.name.to_string(), self.property(name, field))).collect();
        if of.group_version.is_some() || of.everywhere {
            self.add_type_meta(&mut properties);
        }
        if !properties.is_empty() {
            definition.insert("properties".to_owned(), properties.into());
        }
        if let Some((group, version)) = &of.group_version {
            definition.insert("x-kubernetes-group-version-kind".to_owned(), kinds(group, version, &of.name));
        }
        if of.everywhere {
            definition.insert("x-kubernetes-group-version-kind".to_owned(), kinds("", "v1", &of.name));
        }
        if of.atomic {
            definition.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
        }
        definition.into()
    }

    /// Adds `kind` and `apiVersion`, which the table omits.
    pub(super) fn add_type_meta(&self, properties: &mut Map<String, Value>) {
        for field in ["apiVersion", "kind"] {
            let text = self.descriptions.of_field("io.k8s.api.core.v1.Pod", field);
            let mut property = json!({"type": "string"});
            if let Some(text) = text {
                property["description"] = text.into();
            }
            properties.insert(field.to_owned(), property);
        }
    }

    fn list(&mut self, item: &Type, item_reference: &str, plural: &str) -> Value {
        let mut properties = Map::new();
        self.add_type_meta(&mut properties);
        let mut items = json!({"type": "array", "items": self.referring(item_reference, true)});
        items["description"] = format!("List of {plural}").into();
        properties.insert("items".to_owned(), items);
        let metadata = self.of_meta("ListMeta");
        properties.insert("metadata".to_owned(), self.referring(&metadata, true).into());
        let mut list = json!({
            "description": format!("{}List is a list of objects of kind {}.", item.name, item.name),
            "type": "object",
            "required": ["items"],
            "properties": properties,
        });
        if let Some((group, version)) = &item.group_version {
            list["x-kubernetes-group-version-kind"] = kinds(group, version, &format!("{}List", item.name));
        }
        list
    }

    fn property(&mut self, of: &str, field: &Field) -> Value {
        let is_written = field.required || field.written;
        let mut property = self.shape(&field.shape, is_written && !field.pointer, !field.pointer);
        if let (Dialect::V3, Some(default)) = (self.form.dialect, &field.default)
            && let Ok(default) = serde_json::from_str::<Value>(default)
        {
            property.insert("default".to_owned(), default);
        }
        if let Some(text) = self.descriptions.of_field(of, &field.name) {
            property = self.beside_reference(property);
            property.insert("description".to_owned(), text.into());
        }
        property = if has_extensions(field) { self.beside_reference(property) } else { property };
        add_extensions(&mut property, field);
        property.into()
    }

    /// In v3 a reference has no siblings.
    pub(super) fn beside_reference(&self, mut property: Map<String, Value>) -> Map<String, Value> {
        if self.form.dialect == Dialect::V3
            && let Some(reference) = property.remove("$ref")
        {
            property.insert("allOf".to_owned(), json!([{"$ref": reference}]));
        }
        property
    }

    /// `zero`: whether the empty value is the default; `whole`: whether an empty struct is.
    fn shape(&mut self, shape: &Shape, zero: bool, whole: bool) -> Map<String, Value> {
        let mut schema = match shape {
            Shape::String { values, .. } => {
                let mut schema = plain("string", "");
                if !values.is_empty() {
                    let mut values: Vec<&str> = values.iter().map(|value| &**value).collect();
                    values.sort_unstable();
                    schema.insert("enum".to_owned(), values.into());
                }
                schema
            }
            Shape::Bool => plain("boolean", ""),
            Shape::Int32 => plain("integer", "int32"),
            Shape::Int64 => plain("integer", "int64"),
            Shape::Double => plain("number", "double"),
            Shape::Bytes => plain("string", "byte"),
            Shape::List(item) | Shape::Wrapped(item) => {
                let mut schema = plain("array", "");
                schema.insert("items".to_owned(), self.shape(item, true, true).into());
                schema
            }
            Shape::Map(item) => {
                let mut schema = plain("object", "");
                schema.insert("additionalProperties".to_owned(), self.shape(item, true, true).into());
                schema
            }
            Shape::Object(of) => {
                let reference = self.of_type(*of);
                return self.referring(&reference, whole);
            }
            special => {
                let (name, v2, v3) = special_type(special);
                let schema = if self.form.dialect == Dialect::V2 { v2 } else { v3 };
                let reference = self.of_fixed(name, schema);
                return self.referring(&reference, false);
            }
        };
        if zero && self.form.dialect == Dialect::V3 {
            let default = match shape {
                Shape::String { .. } => Some(json!("")),
                Shape::Bool => Some(json!(false)),
                Shape::Int32 | Shape::Int64 | Shape::Double => Some(json!(0)),
                _ => None,
            };
            schema.extend(default.map(|default| ("default".to_owned(), default)));
        }
        schema
    }

    fn referring(&self, reference: &str, whole: bool) -> Map<String, Value> {
        let mut schema = Map::from_iter([("$ref".to_owned(), reference.into())]);
        if whole && self.form.dialect == Dialect::V3 {
            schema = self.beside_reference(schema);
            schema.insert("default".to_owned(), json!({}));
        }
        schema
    }

    fn of_fixed(&mut self, name: &str, mut schema: Value) -> String {
        if !self.done.contains_key(name) {
            if let (Some(text), Value::Object(fields)) = (self.descriptions.of_type(name), &mut schema) {
                fields.insert("description".to_owned(), text.into());
            }
            self.define(name, &schema);
        }
        self.form.dialect.reference(name)
    }
}

fn plain(kind: &str, format: &str) -> Map<String, Value> {
    let mut schema = Map::from_iter([("type".to_owned(), kind.into())]);
    if !format.is_empty() {
        schema.insert("format".to_owned(), format.into());
    }
    schema
}

pub(super) fn kinds(group: &str, version: &str, kind: &str) -> Value {
    json!([{"group": group, "version": version, "kind": kind}])
}

fn has_extensions(field: &Field) -> bool {
    field.list.is_some() || field.patch.is_some()
}

fn add_extensions(property: &mut Map<String, Value>, field: &Field) {
    let mut add = |key: &str, value: Value| property.insert(format!("x-kubernetes-{key}"), value);
    match &field.list {
        Some(ListKind::Atomic) if matches!(field.shape, Shape::List(_) | Shape::Wrapped(_)) => {
            add("list-type", "atomic".into());
        }
        Some(ListKind::Atomic) => {
            add("map-type", "atomic".into());
        }
        Some(ListKind::Granular) => {
            add("map-type", "granular".into());
        }
        Some(ListKind::Set) => {
            add("list-type", "set".into());
        }
        Some(ListKind::Map(keys)) => {
            add("list-type", "map".into());
            add("list-map-keys", keys.iter().map(|key| Value::from(&**key)).collect());
        }
        None => {}
    }
    if let Some(patch) = &field.patch {
        add("patch-strategy", (*patch.strategy).into());
        if let Some(key) = &patch.key {
            add("patch-merge-key", (**key).into());
        }
    }
}

/// Types with their own JSON format: name, v2 schema, v3 schema.
fn special_type(shape: &Shape) -> (&'static str, Value, Value) {
    let same = |name, schema: Value| (name, schema.clone(), schema);
    match shape {
        Shape::Time => same(
            "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
            json!({"type": "string", "format": "date-time"}),
        ),
        Shape::MicroTime => same(
            "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
            json!({"type": "string", "format": "date-time"}),
        ),
        Shape::Quantity => (
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            json!({"type": "string"}),
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        ),
        Shape::IntOrString => (
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            json!({"type": "string", "format": "int-or-string"}),
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
        Shape::Fields => same("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", json!({"type": "object"})),
        Shape::Raw => same("io.k8s.apimachinery.pkg.runtime.RawExtension", json!({"type": "object"})),
        Shape::Or(_, Or::Bool) => {
            same("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool", json!({}))
        }
        Shape::Or(_, Or::List) => {
            same("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray", json!({}))
        }
        Shape::Or(_, Or::Strings) => same(
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
            json!({}),
        ),
        _ => same("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", json!({})),
    }
}
