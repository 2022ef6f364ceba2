//! The selectable fields of a custom resource.

use serde_json::{Map, Value};

use super::json_path::{JsonPath, Selected, shown};

/// The `selectableFields` of one version.
#[derive(Debug, Default)]
pub struct Selectable {
    fields: Box<[(Box<str>, JsonPath)]>,
}

impl Selectable {
    /// Parses the `selectableFields` of a version of a valid CRD.
    pub fn compile(fields: &[Value]) -> Self {
        let paths = fields.iter().filter_map(|field| field.get("jsonPath")?.as_str());
        let fields =
            paths.filter_map(|path| Some((path.trim_start_matches('.').into(), JsonPath::parse(path).ok()?)));
        Self { fields: fields.collect() }
    }

    /// The fields as selectors name them: `spec.color`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| &**name)
    }

    /// The value of a field as selectors compare it; empty if it is missing.
    pub fn value(&self, object: &Map<String, Value>, name: &str) -> String {
        let field = self.fields.iter().find(|(field, _)| **field == *name);
        let found = field.and_then(|(_, path)| path.first(object));
        found
            .filter(|found| !matches!(found, Selected::Value(Value::Null)))
            .map(|found| shown(&found))
            .unwrap_or_default()
    }
}
