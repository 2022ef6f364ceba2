//! What a token says, and how it is written down.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// What a token says, in the order in which Kubernetes writes it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Claims {
    #[serde(default, skip_serializing_if = "Audience::is_empty")]
    pub aud: Audience,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iat: Option<i64>,
    #[serde(default)]
    pub iss: String,
    #[serde(default)]
    pub jti: String,
    #[serde(rename = "kubernetes.io", skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<Bound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbf: Option<i64>,
    #[serde(default)]
    pub sub: String,
    #[serde(flatten, skip_serializing)]
    pub legacy: Legacy,
}

/// One audience or several.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Audience {
    Several(Vec<String>),
    One(String),
}

impl Default for Audience {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

impl Audience {
    pub fn names(&self) -> &[String] {
        match self {
            Self::Several(names) => names,
            Self::One(name) => std::slice::from_ref(name),
        }
    }

    fn is_empty(&self) -> bool {
        self.names().is_empty()
    }
}

/// Whose token it is, and what it ends with.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Bound {
    #[serde(default)]
    pub namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    #[serde(default)]
    pub serviceaccount: Reference,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<i64>,
}

/// One object, and no later one of the same name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Reference {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// What tokens in secrets say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Legacy {
    #[serde(default, rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub name: String,
    #[serde(default, rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub uid: String,
    #[serde(default, rename = "kubernetes.io/serviceaccount/secret.name")]
    pub secret: String,
    #[serde(default, rename = "kubernetes.io/serviceaccount/namespace")]
    pub namespace: String,
}

/// A token taken apart; nothing of it is checked yet.
pub(super) struct Parsed<'a> {
    pub claims: Claims,
    pub algorithm: String,
    /// The name of the key; empty where it says none.
    pub key: String,
    pub signed: &'a str,
    pub signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
}

/// Takes a token apart; `None` if it is none of the kind.
pub(super) fn parse(token: &str) -> Option<Parsed<'_>> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, payload) = signed.split_once('.')?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
    let claims: Claims = serde_json::from_slice(&decode(payload)?).ok()?;
    let signature = decode(signature)?;
    Some(Parsed { claims, algorithm: header.alg, key: header.kid, signed, signature })
}

/// A part of a token.
pub(super) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
