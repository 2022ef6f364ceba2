//! Tables: the columns of `kubectl get`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::strategy::Object;

/// Renders objects as table rows.
pub trait TableRenderer: Send + Sync {
    /// The `columnDefinitions` of the table.
    fn columns(&self) -> Vec<Value>;

    /// The cells of one row, as many as there are columns.
    fn cells(&self, object: &Object, now: Timestamp) -> Vec<Value>;
}

/// The default columns: name and age.
pub struct NameAndAge;

impl TableRenderer for NameAndAge {
    fn columns(&self) -> Vec<Value> {
        let name = "Name must be unique within a namespace.";
        vec![
            json!({"name": "Name", "type": "string", "format": "name", "description": name, "priority": 0}),
            json!({"name": "Created At", "type": "date", "format": "", "description": "When it was made.", "priority": 0}),
        ]
    }

    fn cells(&self, object: &Object, _now: Timestamp) -> Vec<Value> {
        let metadata = object.get("metadata");
        let field = |key| metadata.and_then(|metadata| metadata.get(key)).cloned().unwrap_or(Value::Null);
        vec![field("name"), field("creationTimestamp")]
    }
}
