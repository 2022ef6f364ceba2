//! The continue token of paged lists: opaque to clients, and validated.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Revision;
use model::error::Error;
use serde::{Deserialize, Serialize};
use store::Position;

/// The position and revision of the next page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContinueToken {
    v: String,
    /// The revision of all pages; zero for the newest state, after the history expired.
    rv: u64,
    namespace: String,
    name: String,
    /// The number of objects after the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<u64>,
}

const VERSION: &str = "meta.k8s.io/v1";

impl ContinueToken {
    /// A token for the page after `position`.
    pub fn new(revision: Option<Revision>, position: Position, left: Option<u64>) -> Self {
        let Position { namespace, name } = position;
        let rv = revision.unwrap_or(Revision::ZERO).0;
        Self { v: VERSION.to_owned(), rv, namespace, name, left }
    }

    /// The encoded token.
    pub fn encode(&self) -> String {
        let json = serde_json::to_vec(self).expect("a struct of numbers and strings always encodes");
        URL_SAFE_NO_PAD.encode(json)
    }

    /// Decodes a token.
    pub fn decode(text: &str) -> Result<Self, Error> {
        let bad = |reason: &str| Error::BadRequest {
            message: format!("invalid continue token: continue key is not valid: {reason}"),
        };
        let json = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| bad("not base64"))?;
        let value = model::json::parse(String::from_utf8_lossy(&json).as_bytes())
            .map_err(|error| bad(&error.to_string()))?
            .value;
        let version = value.get("v").and_then(serde_json::Value::as_str).unwrap_or("");
        if version != VERSION {
            return Err(bad(&format!("server does not recognize this encoded version {version}")));
        }
        serde_json::from_value(value).map_err(|_| bad("not a token of this server"))
    }

    /// The revision of the page; `None` for the newest.
    pub fn revision(&self) -> Option<Revision> {
        Some(Revision(self.rv)).filter(|revision| *revision != Revision::ZERO)
    }

    /// The start of the page.
    pub fn position(&self) -> Position {
        Position { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// The number of objects after the previous page.
    pub fn left(&self) -> Option<u64> {
        self.left
    }

    /// The same position in the newest state, for a client whose revision expired.
    #[must_use]
    pub fn inconsistent(&self) -> Self {
        Self { rv: 0, left: None, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_went() {
        let position = Position { namespace: "n".to_owned(), name: "x\u{e9}".to_owned() };
        let token = ContinueToken::new(Some(Revision(7)), position.clone(), Some(3));
        let read = ContinueToken::decode(&token.encode()).unwrap();
        assert_eq!(read, token);
        assert_eq!((read.revision(), read.position(), read.left()), (Some(Revision(7)), position, Some(3)));
        assert_eq!(read.inconsistent().revision(), None);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["abc", "!!!", "", "e30", "eyJ2IjoieCJ9"] {
            assert!(matches!(ContinueToken::decode(text), Err(Error::BadRequest { .. })), "{text}");
        }
    }
}
