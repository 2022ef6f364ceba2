//! Protobuf answers as they came, so that what the decoder drops shows as a difference.
//!
//! Scripts compare decoded answers, and the decoder is Orlop's own. An answer counts as read in full if its decoded form, encoded again,
//! has the same bytes: Kubernetes writes fields in the order of their numbers and leaves no choice.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{protobuf, schema};
use serde_json::Value;

/// Where an answer has its bytes.
pub(crate) const RAW: &str = "protobuf";

/// The bytes of an answer as a file of answers has them.
pub(crate) fn raw(bytes: &[u8]) -> Value {
    STANDARD.encode(bytes).into()
}

/// Takes the bytes of an answer out; a sentence if decoding them drops something.
pub(crate) fn check(answer: &mut Value) -> Option<String> {
    let raw = answer.as_object_mut()?.remove(RAW)?;
    let bytes = raw.as_str().and_then(|text| STANDARD.decode(text).ok());
    bytes.map_or_else(|| Some("its protobuf is not base64".to_owned()), |bytes| unread(&bytes))
}

/// How protobuf differs from what is left of it when it is decoded and encoded again.
pub(crate) fn unread(bytes: &[u8]) -> Option<String> {
    let decoded = match protobuf::decode(schema::builtin(), bytes, ("", "")) {
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
