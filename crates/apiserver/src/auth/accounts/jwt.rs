//! The claims of service account tokens, and the JWT encoding.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// The claims, in the order of Kubernetes.
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

/// The private claims: the account and the objects that the token is bound to.
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

/// A reference by name and uid.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Reference {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// The claims of legacy tokens in Secrets.
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

/// A parsed token; nothing is verified.
pub(super) struct Parsed<'a> {
    pub claims: Claims,
    pub algorithm: String,
    /// The key ID; empty if absent.
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

/// Parses a JWT; `None` if it is none.
pub(super) fn parse(token: &str) -> Option<Parsed<'_>> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, payload) = signed.split_once('.')?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
    let claims: Claims = serde_json::from_slice(&decode(payload)?).ok()?;
    let signature = decode(signature)?;
    Some(Parsed { claims, algorithm: header.alg, key: header.kid, signed, signature })
}

/// The base64url encoding of JWT segments.
pub(super) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
