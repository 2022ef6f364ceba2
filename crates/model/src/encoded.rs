//! An object as the bytes that clients will get, with the one gap that only the store can fill: its resourceVersion.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::Revision;

/// JSON bytes of an object, split where the digits of `metadata.resourceVersion` belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Encoded {
    /// Encodes an object. A resourceVersion that it already has is left out.
    pub fn new(object: &Map<String, Value>) -> Self {
        let own = own_managers(object);
        Self::encode(object, None, own.as_deref())
    }

    /// As [`Encoded::new`], with these `managedFields`, which are JSON already, in place of its own.
    pub fn managed(object: &Map<String, Value>, managed_fields: Option<&str>) -> Self {
        Self::encode(object, None, managed_fields)
    }

    /// As [`Encoded::managed`], with an `apiVersion` in front of everything else: [`split_version`] takes it
    /// off again.
    pub fn of_version(api_version: &str, object: &Map<String, Value>, managed_fields: Option<&str>) -> Self {
        Self::encode(object, Some(api_version), managed_fields)
    }

    fn encode(object: &Map<String, Value>, api_version: Option<&str>, managed_fields: Option<&str>) -> Self {
        let mut out = Vec::with_capacity(1024);
        let mut split = 0;
        let empty = Map::new();
        let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        out.push(b'{');
        let mut separator = Separator::default();
        if let Some(version) = api_version {
            separator.write(&mut out);
            write_entry(&mut out, "apiVersion", &Value::from(version));
        }
        // `metadata` keeps its place among the sorted keys, even if the object came without one.
        for (key, value) in object.range_before("metadata") {
            separator.write(&mut out);
            write_entry(&mut out, key, value);
        }
        separator.write(&mut out);
        out.extend_from_slice(b"\"metadata\":");
        write_metadata(&mut out, metadata, managed_fields, &mut split);
        for (key, value) in object.range_after("metadata") {
            separator.write(&mut out);
            write_entry(&mut out, key, value);
        }
        out.push(b'}');
        let after = out.split_off(split);
        Self { before: out, after }
    }

    /// A stored value, for another revision, without parsing it. `version_at` is the offset of the digits, as
    /// [`Encoded::version_at`] returned it when it was stored.
    pub fn of_stored(value: &[u8], version_at: usize) -> Self {
        let (before, rest) = value.split_at(version_at.min(value.len()));
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        Self { before: before.to_vec(), after: rest[digits..].to_vec() }
    }

    /// The bytes with this revision filled in.
    pub fn at(&self, revision: Revision) -> Bytes {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(revision.0);
        let mut out = Vec::with_capacity(self.before.len() + digits.len() + self.after.len());
        out.extend_from_slice(&self.before);
        out.extend_from_slice(digits.as_bytes());
        out.extend_from_slice(&self.after);
        out.into()
    }

    /// The bytes on either side of the revision.
    pub fn around_revision(&self) -> (&[u8], &[u8]) {
        (&self.before, &self.after)
    }

    /// The inverse of [`Encoded::around_revision`].
    pub fn from_around(before: Vec<u8>, after: Vec<u8>) -> Self {
        Self { before, after }
    }

    /// Offset of the digits of the revision.
    pub fn version_at(&self) -> usize {
        self.before.len()
    }

    /// Number of bytes without the digits.
    pub fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Never: there is always at least the metadata.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The version that [`Encoded::of_version`] put in front, and the rest behind the comma. An object without
/// one has an empty version.
pub fn split_version(value: &[u8]) -> (&str, &[u8]) {
    let without = ("", value.get(1..).unwrap_or_default());
    let Some(rest) = value.strip_prefix(VERSION_OPENING) else { return without };
    // A version holds nothing that JSON escapes: group and version are DNS names.
    let Some(end) = rest.iter().position(|byte| *byte == b'"') else { return without };
    let version = std::str::from_utf8(&rest[..end]).unwrap_or_default();
    (version, rest.get(end + 2..).unwrap_or_default())
}

const VERSION_OPENING: &[u8] = b"{\"apiVersion\":\"";

/// Replaces the revision of a stored value, without parsing it.
///
/// `version_at` is the offset of the digits, as [`Encoded::version_at`] returned it when it was stored.
pub fn with_revision(value: &[u8], version_at: usize, revision: Revision) -> Bytes {
    Encoded::of_stored(value, version_at).at(revision)
}

/// The `managedFields` that an object has, as JSON.
pub fn own_managers(object: &Map<String, Value>) -> Option<String> {
    let managed = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    managed.map(Value::to_string)
}

fn write_metadata(
    out: &mut Vec<u8>,
    metadata: &Map<String, Value>,
    managed_fields: Option<&str>,
    split: &mut usize,
) {
    out.push(b'{');
    let mut separator = Separator::default();
    for (key, value) in metadata.range_before("managedFields") {
        separator.write(out);
        write_entry(out, key, value);
    }
    if let Some(managed_fields) = managed_fields {
        separator.write(out);
        out.extend_from_slice(b"\"managedFields\":");
        out.extend_from_slice(managed_fields.as_bytes());
    }
    for (key, value) in
        metadata.range_after("managedFields").filter(|(key, _)| key.as_str() < "resourceVersion")
    {
        separator.write(out);
        write_entry(out, key, value);
    }
    separator.write(out);
    out.extend_from_slice(b"\"resourceVersion\":\"");
    *split = out.len();
    out.push(b'"');
    for (key, value) in metadata.range_after("resourceVersion") {
        separator.write(out);
        write_entry(out, key, value);
    }
    out.push(b'}');
}

fn write_entry(out: &mut Vec<u8>, key: &str, value: &Value) {
    serde_json::to_writer(&mut *out, key).expect("a string always encodes");
    out.push(b':');
    serde_json::to_writer(&mut *out, value).expect("a JSON value always encodes");
}

/// A comma before every entry but the first.
#[derive(Default)]
struct Separator(bool);

impl Separator {
    fn write(&mut self, out: &mut Vec<u8>) {
        if self.0 {
            out.push(b',');
        }
        self.0 = true;
    }
}

/// The sorted entries on either side of a key, which itself is in neither.
trait Around {
    fn range_before<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a String, &'a Value)>;
    fn range_after<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a String, &'a Value)>;
}

impl Around for Map<String, Value> {
    fn range_before<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.iter().filter(move |(k, _)| k.as_str() < key)
    }

    fn range_after<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.iter().filter(move |(k, _)| k.as_str() > key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_version_in_front_is_taken_off_again() {
        let object = json!({"A": 1, "metadata": {"name": "n"}});
        let encoded = Encoded::of_version("example.io/v1", object.as_object().unwrap(), None);
        let bytes = encoded.at(Revision(7));
        let (version, rest) = split_version(&bytes);
        assert_eq!(version, "example.io/v1");
        assert_eq!(rest, br#""A":1,"metadata":{"name":"n","resourceVersion":"7"}}"#);
        let bytes = Encoded::new(object.as_object().unwrap()).at(Revision(7));
        assert_eq!(split_version(&bytes), ("", &bytes[1..]));
    }

    fn encode(object: Value) -> Encoded {
        Encoded::new(object.as_object().unwrap())
    }

    #[test]
    fn the_revision_is_spliced_into_metadata() {
        let encoded = encode(json!({
            "kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "\"x\""},
            "metadata": {"name": "n", "resourceVersion": "7", "uid": "u"},
        }));
        let bytes = encoded.at(Revision(1234));
        let read: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            read,
            json!({
                "kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "\"x\""},
                "metadata": {"name": "n", "resourceVersion": "1234", "uid": "u"},
            })
        );
        assert_eq!(with_revision(&bytes, encoded.version_at(), Revision(5)), encoded.at(Revision(5)));
    }

    #[test]
    fn managed_fields_have_their_place() {
        let object = json!({"metadata": {"labels": {}, "managedFields": [1], "name": "n", "uid": "u"}});
        let text = |encoded: Encoded| String::from_utf8(encoded.at(Revision(7)).to_vec()).unwrap();
        let rest = r#""name":"n","resourceVersion":"7","uid":"u"}}"#;
        let before = r#"{"metadata":{"labels":{},"#;
        assert_eq!(text(encode(object.clone())), format!(r#"{before}"managedFields":[1],{rest}"#));
        let object = object.as_object().unwrap();
        assert_eq!(
            text(Encoded::managed(object, Some("[2]"))),
            format!(r#"{before}"managedFields":[2],{rest}"#)
        );
        assert_eq!(text(Encoded::managed(object, None)), format!("{before}{rest}"));
    }

    #[test]
    fn an_object_without_metadata_gets_one() {
        let read: Value = serde_json::from_slice(&encode(json!({})).at(Revision(1))).unwrap();
        assert_eq!(read, json!({"metadata": {"resourceVersion": "1"}}));
    }
}
