//! Raw protobuf answers, so that a field which the decoder drops shows as a difference.
//!
//! Scripts compare decoded answers, and the decoder is Orlop's own. An answer counts as decoded completely if
//! encoding it again gives the same bytes: Kubernetes' encoding is deterministic, with fields in the order of
//! their numbers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kinds::{protobuf, schema};
use serde_json::Value;

/// The key of an answer's raw bytes.
pub(crate) const RAW: &str = "protobuf";

/// The raw bytes in the form of an answers file.
pub(crate) fn raw(bytes: &[u8]) -> Value {
    STANDARD.encode(bytes).into()
}

/// Removes the raw bytes of an answer; returns a message if decoding them loses something.
pub(crate) fn check(answer: &mut Value) -> Option<String> {
    let raw = answer.as_object_mut()?.remove(RAW)?;
    let bytes = raw.as_str().and_then(|text| STANDARD.decode(text).ok());
    bytes.map_or_else(|| Some("its protobuf is not base64".to_owned()), |bytes| unread(&bytes))
}

/// The difference between a protobuf message and its decoded and re-encoded form.
pub(crate) fn unread(bytes: &[u8]) -> Option<String> {
    let decoded = match protobuf::decode(schema::builtin(), bytes, protobuf::TypeMeta::UNKNOWN) {
        Ok(decoded) => decoded.value,
        Err(error) => return Some(format!("its protobuf cannot be decoded: {error}")),
    };
    match protobuf::encode(schema::builtin(), &decoded) {
        Ok(again) if again == bytes => None,
        Ok(again) => {
            let at = again.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            let (had, has) = (bytes.len(), again.len());
            Some(format!(
                "its protobuf differs from byte {at} on when it is encoded again: {had} bytes became {has}"
            ))
        }
        Err(error) => Some(format!("its protobuf cannot be encoded again: {error}")),
    }
}
