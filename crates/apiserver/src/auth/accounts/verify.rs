//! Verification of tokens: signature, lifetime, audiences, and existence of the account and the bound objects.

use std::sync::Arc;

use jiff::Timestamp;
use model::error::quote;
use model::{ObjectKey, Resource};
use process::signing::PublicKey;
use serde::Deserialize;
use store::Stored;
use subtle::ConstantTimeEq;

use super::jwt::{self, Bound, Claims, Legacy, Parsed, Reference, encode};
use super::{Accounts, Identity, account_of, signature_cache};
use crate::warnings::Warnings;

/// The issuer of legacy tokens.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// Accepted clock skew in seconds.
const LEEWAY: i64 = 60;
const AUTO_GENERATED: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.";
const INVALIDATED: &str = "service account token has been invalidated";

/// The fields of a stored object that verification needs.
#[derive(Default, Deserialize)]
struct StoredObject {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    data: Data,
    #[serde(default)]
    secrets: Vec<NamedReference>,
}

#[derive(Default, Deserialize)]
struct NamedReference {
    #[serde(default)]
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    deletion_timestamp: Option<String>,
    #[serde(default)]
    labels: Labels,
}

#[derive(Default, Deserialize)]
struct Labels {
    #[serde(rename = "kubernetes.io/legacy-token-invalid-since")]
    invalid_since: Option<String>,
    #[serde(rename = "kubernetes.io/legacy-token-last-used")]
    last_used: Option<String>,
}

#[derive(Default, Deserialize)]
struct Data {
    token: Option<String>,
}

/// An object that a token references.
struct ReferencedObject {
    uid: String,
    known: StoredObject,
}

impl ReferencedObject {
    fn ended_before(&self, moment: i64) -> bool {
        let time = self.known.metadata.deletion_timestamp.as_deref();
        // A timestamp that cannot be parsed counts as passed.
        time.is_some_and(|time| time.parse::<Timestamp>().map_or(true, |time| time.as_second() < moment))
    }
}

impl Accounts {
    /// The identity of a token and its accepted audiences. `None`: the token has another issuer. `Err`: it is invalid.
    pub async fn verify(
        &self,
        token: &str,
        wanted: &[String],
        warnings: &Warnings,
    ) -> Result<Option<(Identity, Vec<String>)>, String> {
        let Some(claims) = self.signed(token)? else { return Ok(None) };
        let is_legacy = claims.iss == LEGACY_ISSUER;
        let own = &self.settings.audiences;
        let given = if claims.aud.names().is_empty() { own } else { claims.aud.names() };
        let audiences: Vec<String> =
            wanted.iter().filter(|audience| given.contains(audience)).cloned().collect();
        if audiences.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                go(given),
                go(wanted)
            ));
        }
        let now = Timestamp::now().as_second();
        let identity = match &claims.kubernetes {
            _ if is_legacy => self.of_secret(token, &claims.sub, &claims.legacy, warnings).await?,
            bound => self.of_claims(&claims, &bound.clone().unwrap_or_default(), now).await?,
        };
        Ok(Some((identity, audiences)))
    }

    /// The claims of a token with a valid signature. `None`: the token has another issuer.
    fn signed(&self, token: &str) -> Result<Option<Arc<Claims>>, String> {
        let (digest, keyring) = (signature_cache::digest(token), self.keyring());
        if let Some(claims) = keyring.signatures.get(&digest) {
            return Ok(Some(claims));
        }
        let Some(parsed) = jwt::parse(token) else { return Ok(None) };
        let issuer = &parsed.claims.iss;
        if issuer != LEGACY_ISSUER && !self.settings.issuers.contains(issuer) {
            return Ok(None);
        }
        check_signature(keyring.verifying(), &parsed)?;
        let claims = Arc::new(parsed.claims);
        keyring.signatures.add(digest, claims.clone());
        Ok(Some(claims))
    }

    async fn of_claims(&self, claims: &Claims, bound: &Bound, now: i64) -> Result<Identity, String> {
        check_times(claims, now)?;
        let Bound { namespace, serviceaccount, pod, secret, node, .. } = bound;
        let account = self.account(namespace, &serviceaccount.name).await?;
        if account.uid != serviceaccount.uid {
            let (is, said) = (account.uid, &serviceaccount.uid);
            return Err(format!("service account UID ({is}) does not match claim ({said})"));
        }
        if account.ended_before(now - LEEWAY) {
            return Err(format!("service account {namespace}/{} has been deleted", serviceaccount.name));
        }
        if let Some(secret) = secret {
            self.still_there("secret", "secrets", namespace, secret, now).await?;
        }
        if let Some(pod) = pod {
            self.still_there("pod", "pods", namespace, pod, now).await?;
        } else if let Some(node) = node {
            self.still_there("node", "nodes", "", node, now).await?;
        }
        let mut identity = Identity::service_account(namespace, &serviceaccount.name);
        identity.uid.clone_from(&serviceaccount.uid);
        let mut note = |key: &str, value: &str| {
            if !value.is_empty() {
                let key = format!("authentication.kubernetes.io/{key}");
                identity.extra.insert(key, vec![value.to_owned()]);
            }
        };
        if !claims.jti.is_empty() {
            note("credential-id", &format!("JTI={}", claims.jti));
        }
        if let Some(Reference { name, uid }) = pod {
            note("pod-name", name);
            note("pod-uid", uid);
        }
        if let Some(Reference { name, uid }) = node {
            note("node-name", name);
            note("node-uid", uid);
        }
        Ok(identity)
    }

    async fn still_there(
        &self,
        kind: &str,
        resource: &str,
        namespace: &str,
        reference: &Reference,
        now: i64,
    ) -> Result<(), String> {
        let found = self.find(resource, namespace, &reference.name).await?.ok_or(INVALIDATED)?;
        if found.uid != reference.uid {
            let (is, said) = (found.uid, &reference.uid);
            return Err(format!(
                "{kind} UID ({is}) does not match service account {kind} ref claim ({said})"
            ));
        }
        if found.ended_before(now - LEEWAY) { Err(INVALIDATED.to_owned()) } else { Ok(()) }
    }

    /// Verifies a legacy token.
    async fn of_secret(
        &self,
        token: &str,
        subject: &str,
        legacy: &Legacy,
        warnings: &Warnings,
    ) -> Result<Identity, String> {
        let Legacy { name, uid, secret, namespace } = legacy;
        for (claim, value) in [
            ("sub", subject),
            ("namespace", namespace),
            ("secretName", secret),
            ("serviceAccountName", name),
            ("serviceAccountUID", uid),
        ] {
            if value.is_empty() {
                return Err(format!("{claim} claim is missing"));
            }
        }
        if account_of(subject) != Some((namespace, name)) {
            return Err("sub claim is invalid".to_owned());
        }
        let kept = self.find("secrets", namespace, secret).await?;
        let kept = kept.filter(|kept| kept.known.metadata.deletion_timestamp.is_none());
        let kept = kept.ok_or("Token has been invalidated")?;
        let stored = kept.known.data.token.as_deref().unwrap_or_default();
        let stored =
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, stored).unwrap_or_default();
        if !bool::from(stored.ct_eq(token.as_bytes())) {
            return Err("Token does not match server's copy".to_owned());
        }
        let account = self.account(namespace, name).await?;
        if account.known.metadata.deletion_timestamp.is_some() {
            return Err(format!("ServiceAccount {namespace}/{name} has been deleted"));
        }
        if account.uid != *uid {
            return Err(format!("ServiceAccount UID ({}) does not match claim ({uid})", account.uid));
        }
        let Labels { invalid_since, last_used } = kept.known.metadata.labels;
        self.last_uses.note(namespace, secret, &kept.uid, last_used.as_deref(), Timestamp::now());
        if invalid_since.is_some_and(|since| !since.is_empty()) {
            return Err(format!(
                "the token in secret {namespace}/{secret} for service account {namespace}/{name} has been marked invalid. \
                 Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
                 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token"
            ));
        }
        if account.known.secrets.iter().any(|named| named.name == *secret) {
            warnings.add(AUTO_GENERATED);
        }
        Ok(Identity { uid: uid.clone(), ..Identity::service_account(namespace, name) })
    }

    async fn account(&self, namespace: &str, name: &str) -> Result<ReferencedObject, String> {
        let found = self.find("serviceaccounts", namespace, name).await?;
        found.ok_or_else(|| format!("serviceaccounts {} not found", quote(name)))
    }

    async fn find(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ReferencedObject>, String> {
        let key = ObjectKey::new(&Resource::new("", resource), namespace, name);
        let found = self.store.get(&key, None).await.map_err(|error| error.to_string())?;
        let known = |Stored { uid, value, .. }: Stored| {
            let known = serde_json::from_slice(&value).map_err(|_| "cannot parse a stored object".to_owned());
            known.map(|known| ReferencedObject { uid: uid.0, known })
        };
        found.map(known).transpose()
    }
}

fn check_signature(keys: &[PublicKey], parsed: &Parsed<'_>) -> Result<(), String> {
    let named = keys.iter().filter(|key| parsed.key.is_empty() || encode(&key.fingerprint()) == parsed.key);
    let mut named = named.peekable();
    if named.peek().is_none() {
        return Err("invalid signature, no keys found".to_owned());
    }
    let fits = named.any(|key| {
        key.algorithm().to_string() == parsed.algorithm
            && key.verify(parsed.signed.as_bytes(), &parsed.signature)
    });
    if fits { Ok(()) } else { Err("go-jose/go-jose: error in cryptographic primitive".to_owned()) }
}

fn check_times(claims: &Claims, now: i64) -> Result<(), String> {
    let problem = if claims.nbf.is_some_and(|from| now + LEEWAY < from) {
        "is not valid yet"
    } else if claims.exp.is_some_and(|until| now - LEEWAY > until) {
        "has expired"
    } else if claims.iat.is_some_and(|at| now + LEEWAY < at) {
        "is issued in the future"
    } else {
        return Ok(());
    };
    Err(format!("service account token {problem}"))
}

/// A list in Go's format.
fn go(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| model::error::quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}
