//! Who is somebody?

use model::error::Error;
use serde_json::json;

use super::{Asked, Review, spec_text, user};
use crate::registry::Object;
use crate::verbs::creation_time;

/// The name under which tokens are meant for this server.
const AUDIENCE: &str = "https://kubernetes.default.svc";

/// `SelfSubjectReview`
pub struct WhoAmI;

impl Review for WhoAmI {
    fn answer(&self, asked: &Asked<'_>, object: &mut Object) -> Result<(), Error> {
        object.insert("metadata".to_owned(), json!({"creationTimestamp": creation_time()}));
        object.insert("status".to_owned(), json!({"userInfo": user(asked.caller)}));
        Ok(())
    }
}

/// `TokenReview`
pub struct WhoseToken;

impl Review for WhoseToken {
    fn answer(&self, asked: &Asked<'_>, object: &mut Object) -> Result<(), Error> {
        let token = spec_text(object, "token");
        if token.is_empty() {
            return Err(Error::bad_request("token is required for TokenReview in authentication"));
        }
        let status = match asked.api.authentication.owner_of(token) {
            Some(identity) => {
                json!({"authenticated": true, "user": user(&identity), "audiences": [AUDIENCE]})
            }
            None => json!({"user": {}, "error": "invalid bearer token"}),
        };
        object.insert("status".to_owned(), status);
        Ok(())
    }
}
