//! Who may be answered before all of the first objects are there.

use std::time::Duration;

use http::HeaderMap;
use model::error::Error;
use model::rbac;
use tokio::time::timeout;

use crate::api::ApiServer;
use crate::auth::{Identity, MASTERS, impersonate};
use crate::pipeline::Target;
use crate::request::verb::Verb;

/// How long a request waits for them.
const PATIENCE: Duration = Duration::from_secs(10);
/// Whose objects, or answers, come from roles.
const OF_ROLES: [&str; 3] = [rbac::GROUP, "authorization.k8s.io", "authentication.k8s.io"];

/// Waits until the first objects are there, if the answer to this request may depend on them.
pub(crate) async fn until_complete(
    api: &ApiServer,
    caller: &Identity,
    target: &Target,
    headers: &HeaderMap,
) -> Result<(), Error> {
    if api.complete.initialized() || can_begin(caller, target, headers) {
        return Ok(());
    }
    match timeout(PATIENCE, api.complete.wait()).await {
        Ok(_) => Ok(()),
        // What keeps them from being made, such as a webhook that refuses everything, can only be taken away by a request.
        Err(_) if needs_no_role(caller, headers) => Ok(()),
        Err(_) => Err(Error::Unavailable {
            message: "the first roles and bindings are not there yet; try again".to_owned(),
        }),
    }
}

/// Whether they may do everything, and do it as themselves.
fn needs_no_role(caller: &Identity, headers: &HeaderMap) -> bool {
    caller.is_in(MASTERS) && !impersonate::is_asked(headers)
}

/// The server itself makes them. Who may do everything needs no role to read what has nothing to do with roles.
fn can_begin(caller: &Identity, target: &Target, headers: &HeaderMap) -> bool {
    if *caller == Identity::server() {
        return true;
    }
    let Target::Resource { verb, place } = target else { return false };
    matches!(verb, Verb::Get | Verb::List | Verb::Watch)
        && !OF_ROLES.contains(&place.group.as_str())
        && needs_no_role(caller, headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::path::ResourcePath;

    fn asks(verb: Verb, group: &str) -> Target {
        Target::Resource { verb, place: ResourcePath { group: group.to_owned(), ..ResourcePath::default() } }
    }

    #[test]
    fn only_who_needs_no_role_begins_before_they_are_there() {
        let master = Identity::authenticated("admin", [MASTERS.to_owned()]);
        let other = Identity::authenticated("ann", []);
        let plain = Target::Plain { method: "get".to_owned(), path: "/readyz".to_owned() };
        let impersonating = HeaderMap::from_iter([(
            http::HeaderName::from_static("impersonate-user"),
            http::HeaderValue::from_static("ann"),
        )]);
        let none = HeaderMap::new();
        for (caller, target, headers, begins) in [
            (&master, asks(Verb::Get, ""), &none, true),
            (&master, asks(Verb::Watch, "apps"), &none, true),
            (&master, asks(Verb::Create, ""), &none, false),
            (&master, asks(Verb::List, rbac::GROUP), &none, false),
            (&master, asks(Verb::Get, ""), &impersonating, false),
            (&master, plain, &none, false),
            (&other, asks(Verb::Get, ""), &none, false),
            (&Identity::server(), asks(Verb::Create, rbac::GROUP), &none, true),
        ] {
            assert_eq!(can_begin(caller, &target, headers), begins, "{caller:?}");
        }
        // Who waited in vain goes on only if no role could matter.
        assert!(needs_no_role(&master, &none));
        assert!(!needs_no_role(&master, &impersonating) && !needs_no_role(&other, &none));
    }
}
