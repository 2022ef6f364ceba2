//! SelfSubjectReview and TokenReview.

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use model::error::Error;
use serde_json::json;

use super::{Review, ReviewContext, spec, spec_text, user};
use crate::registry::Object;
use crate::verbs::creation_time;

/// `SelfSubjectReview`: the identity of the caller.
pub struct SelfSubjectReview;

impl Review for SelfSubjectReview {
    fn answer<'a>(
        &'a self,
        context: &'a ReviewContext<'a>,
        object: &'a mut Object,
    ) -> BoxFuture<'a, Result<(), Error>> {
        object.insert("metadata".to_owned(), json!({"creationTimestamp": creation_time()}));
        object.insert("status".to_owned(), json!({"userInfo": user(context.caller)}));
        ready(Ok(())).boxed()
    }
}

/// `TokenReview`: the user of a token.
pub struct TokenReview;

impl Review for TokenReview {
    fn answer<'a>(
        &'a self,
        context: &'a ReviewContext<'a>,
        object: &'a mut Object,
    ) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let token = spec_text(object, "token");
            if token.is_empty() {
                return Err(Error::bad_request("token is required for TokenReview in authentication"));
            }
            let wanted = spec(object, "audiences").cloned().unwrap_or_default();
            let wanted: Vec<String> = serde_json::from_value(wanted).unwrap_or_default();
            let owner = context.api.authentication.owner_of(token, &wanted, context.warnings);
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
