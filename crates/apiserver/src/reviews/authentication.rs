//! Who is somebody?

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use model::error::Error;
use serde_json::json;

use super::{Asked, Review, spec, spec_text, user};
use crate::registry::Object;
use crate::verbs::creation_time;

/// `SelfSubjectReview`
pub struct WhoAmI;

impl Review for WhoAmI {
    fn answer<'a>(
        &'a self,
        asked: &'a Asked<'a>,
        object: &'a mut Object,
    ) -> BoxFuture<'a, Result<(), Error>> {
        object.insert("metadata".to_owned(), json!({"creationTimestamp": creation_time()}));
        object.insert("status".to_owned(), json!({"userInfo": user(asked.caller)}));
        ready(Ok(())).boxed()
    }
}

/// `TokenReview`
pub struct WhoseToken;

impl Review for WhoseToken {
    fn answer<'a>(
        &'a self,
        asked: &'a Asked<'a>,
        object: &'a mut Object,
    ) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let token = spec_text(object, "token");
            if token.is_empty() {
                return Err(Error::bad_request("token is required for TokenReview in authentication"));
            }
            let wanted = spec(object, "audiences").cloned().unwrap_or_default();
            let wanted: Vec<String> = serde_json::from_value(wanted).unwrap_or_default();
            let owner = asked.api.authentication.owner_of(token, &wanted, asked.warnings);
            let status = match owner.await {
                Ok((identity, audiences)) => {
                    json!({"authenticated": true, "user": user(&identity), "audiences": audiences})
                }
                Err(error) => json!({"user": {}, "error": error}),
            };
            object.insert("status".to_owned(), status);
            Ok(())
        }
        .boxed()
    }
}
