//! The printer columns of a CRD.

use jiff::Timestamp;
use model::object::text_in;
use serde_json::{Map, Value, json};

use super::json_path::{JsonPath, Selected, shown};
use crate::rules::since;

/// The smallest power of two above the 64-bit integers.
const TOO_GREAT: f64 = 9_223_372_036_854_775_808.0;

/// The columns of one version: the name, and those of `additionalPrinterColumns`.
#[derive(Debug)]
pub struct Columns {
    columns: Box<[Column]>,
}

#[derive(Debug)]
struct Column {
    name: Box<str>,
    kind: Box<str>,
    format: Box<str>,
    description: Box<str>,
    priority: i64,
    path: JsonPath,
}

impl Columns {
    /// Parses the `additionalPrinterColumns` of a version of a valid CRD. The default is the age.
    pub fn compile(columns: &[Value]) -> Self {
        let age = [json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
            "description": "When it was created."})];
        let columns = if columns.is_empty() { &age } else { columns };
        // An invalid path ends the list, as in Kubernetes.
        Self { columns: columns.iter().map_while(Column::read).collect() }
    }

    /// The `columnDefinitions` of a table.
    pub fn definitions(&self) -> Vec<Value> {
        let name = json!({"name": "Name", "type": "string", "format": "name", "priority": 0,
            "description": "The name of the object."});
        let others = self.columns.iter().map(|column| {
            json!({"name": column.name, "type": column.kind, "format": column.format,
                "description": column.description, "priority": column.priority})
        });
        std::iter::once(name).chain(others).collect()
    }

    /// The cells of an object, one per column; `null` if it has no value of the column's type.
    pub fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let name = object.get("metadata").and_then(|metadata| metadata.get("name"));
        let others = self.columns.iter().map(|column| column.cell(object, now).unwrap_or_default());
        std::iter::once(name.cloned().unwrap_or_default()).chain(others).collect()
    }
}

impl Column {
    fn read(column: &Value) -> Option<Self> {
        let text = |key: &str| text_in(column, key);
        let path = text("jsonPath");
        let description = match text("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            description => description.to_owned(),
        };
        Some(Self {
            name: text("name").into(),
            kind: text("type").into(),
            format: text("format").into(),
            description: description.into(),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            path: JsonPath::parse(path).ok()?,
        })
    }

    fn cell(&self, object: &Map<String, Value>, now: Timestamp) -> Option<Value> {
        let found = self.path.first(object)?;
        let value = match &found {
            found if &*self.kind == "string" => return Some(shown(found).into()),
            Selected::Root(_) => return None,
            Selected::Value(value) => *value,
        };
        match (&*self.kind, value) {
            ("integer", Value::Number(number)) => Some(whole(number)),
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => Some(value.clone()),
            ("date", Value::String(time)) => Some(age(time, now)),
            _ => None,
        }
    }
}

/// A number truncated to an integer; one that is too large becomes the smallest integer, as in Go.
fn whole(number: &serde_json::Number) -> Value {
    let float = || number.as_f64().filter(|float| float.abs() < TOO_GREAT);
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is not wanted, and the rest fits")]
    let truncated = || float().map_or(i64::MIN, |float| float as i64);
    number.as_i64().unwrap_or_else(truncated).into()
}

fn age(time: &str, now: Timestamp) -> Value {
    match time {
        "" => "<unknown>".into(),
        time => since(time, now).unwrap_or_else(|| "<invalid>".to_owned()).into(),
    }
}
