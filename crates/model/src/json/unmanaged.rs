//! Stored objects without their `managedFields`: half of many an object, and used by few callers.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Parses a stored object without its `metadata.managedFields`.
///
/// # Errors
/// When it is no JSON object.
pub fn without_managers(stored: &[u8]) -> serde_json::Result<Map<String, Value>> {
    serde_json::from_slice(stored).map(|Unmanaged(object)| object)
}

struct Unmanaged(Map<String, Value>);

impl<'de> Deserialize<'de> for Unmanaged {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields(|key: &str| if key == "metadata" { Reading::Metadata } else { Reading::All });
        deserializer.deserialize_map(fields).map(Self)
    }
}

/// The metadata of an object.
struct Metadata(Map<String, Value>);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields(|key: &str| if key == "managedFields" { Reading::Nothing } else { Reading::All });
        deserializer.deserialize_map(fields).map(Self)
    }
}

/// Extent to which a field is parsed.
enum Reading {
    All,
    Metadata,
    Nothing,
}

/// The fields of an object, each parsed as far as the function says.
struct Fields<F>(F);

impl<'de, F: Fn(&str) -> Reading> Visitor<'de> for Fields<F> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = match self.0(&key) {
                Reading::All => access.next_value()?,
                Reading::Metadata => Value::Object(access.next_value::<Metadata>()?.0),
                Reading::Nothing => {
                    access.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            fields.insert(key, value);
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_managers_of_the_object_itself_are_missing() {
        let template = json!({"metadata": {"managedFields": [1]}});
        let stored = json!({
            "data": {"managedFields": "x"}, "spec": {"template": template},
            "metadata": {"name": "n", "managedFields": [{"manager": "m"}], "labels": {"managedFields": "y"}},
        });
        let expected = json!({
            "data": {"managedFields": "x"}, "spec": {"template": template},
            "metadata": {"name": "n", "labels": {"managedFields": "y"}},
        });
        let read = without_managers(stored.to_string().as_bytes()).unwrap();
        assert_eq!(Value::Object(read), expected);
        assert!(without_managers(b"[]").is_err());
    }
}
