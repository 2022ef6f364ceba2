//! Issues service account tokens.

use model::error::Error;

use super::Accounts;
use super::jwt::{Audience, Bound, Claims};

/// The lifetime that kubelets request. Such tokens are extended, for clients that never reload them.
const USUAL: i64 = 3607;
const EXTENDED: i64 = 365 * 24 * 60 * 60;

impl Accounts {
    /// Issues a token for these audiences and this lifetime. Returns the token and its credential ID.
    pub fn issue(
        &self,
        mut bound: Bound,
        audiences: &[String],
        seconds: i64,
        now: i64,
    ) -> Result<(String, String), Error> {
        let own = &self.settings.audiences;
        let is_ours = audiences.iter().all(|audience| own.contains(audience));
        let mut lifetime = seconds;
        if self.settings.extends && bound.pod.is_some() && seconds == USUAL && is_ours {
            bound.warnafter = Some(now + seconds);
            lifetime = EXTENDED;
        }
        let user = format!("{}{}:{}", super::PREFIX, bound.namespace, bound.serviceaccount.name);
        let id = uuid::Uuid::new_v4().to_string();
        let claims = Claims {
            aud: Audience::Several(audiences.to_vec()),
            exp: Some(now + lifetime),
            iat: Some(now),
            iss: self.settings.issuers.first().cloned().unwrap_or_default(),
            jti: id.clone(),
            kubernetes: Some(bound),
            nbf: Some(now),
            sub: user,
            ..Claims::default()
        };
        let claims = serde_json::to_vec(&claims).map_err(|error| Error::internal(error.to_string()))?;
        let failed = |error| Error::internal(format!("failed to generate token: {error}"));
        Ok((self.keyring().signing.token(&claims).map_err(failed)?, format!("JTI={id}")))
    }
}
