//! The OIDC discovery document and the JWKS, by which other servers verify tokens.

use process::signing::KeyNumbers;
use serde_json::{Value, json};

use super::Accounts;
use super::jwt::encode;

impl Accounts {
    /// The document of `/openid/v1/jwks`.
    pub fn key_set(&self) -> Value {
        let keyring = self.keyring();
        let keys = keyring.verifying().iter().filter_map(|key| {
            let (id, algorithm) = (encode(&key.fingerprint()), key.algorithm().to_string());
            Some(match key.numbers()? {
                KeyNumbers::Rsa { n, e } => {
                    json!({"use": "sig", "kty": "RSA", "kid": id, "alg": algorithm, "n": encode(&n), "e": encode(&e)})
                }
                KeyNumbers::Point { curve, x, y } => json!({
                    "use": "sig", "kty": "EC", "kid": id, "crv": curve, "alg": algorithm, "x": encode(&x), "y": encode(&y),
                }),
            })
        });
        json!({"keys": keys.collect::<Vec<_>>()})
    }

    /// The document of `/.well-known/openid-configuration`.
    pub fn discovery(&self) -> Value {
        let mut algorithms: Vec<String> =
            self.keyring().verifying().iter().map(|key| key.algorithm().to_string()).collect();
        algorithms.sort();
        algorithms.dedup();
        let at = || format!("https://{}/openid/v1/jwks", self.address);
        json!({
            "issuer": self.settings.issuers.first(),
            "jwks_uri": self.settings.jwks_uri.clone().unwrap_or_else(at),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        })
    }
}
