//! Start-up gate: which requests may be served before the bootstrap objects exist, and when the remaining objects are
//! created.

use std::time::Duration;

use http::HeaderMap;
use model::error::Error;
use tokio::sync::SetOnce;
use tokio::time::{sleep, timeout};

use super::objects::is_created_later;
use crate::api::ApiServer;
use crate::auth::{Connection, Identity, MASTERS, impersonate};
use crate::pipeline::RequestInfo;
use crate::request::verb::Verb;

/// The longest wait of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Delay of the remaining objects if no request comes.
const IDLE_DELAY: Duration = Duration::from_millis(50);
/// Delay after the first answer, so that its client gets the processor.
const AFTER_FIRST_ANSWER: Duration = Duration::from_millis(5);

/// The progress of the bootstrap.
#[derive(Default)]
pub(crate) struct BootstrapProgress {
    has_answered: SetOnce<()>,
    is_waited_for: SetOnce<()>,
    is_complete: SetOnce<()>,
}

impl BootstrapProgress {
    /// Whether all bootstrap objects exist.
    pub fn is_complete(&self) -> bool {
        self.is_complete.initialized()
    }

    /// Records that all bootstrap objects exist.
    pub fn complete(&self) {
        // A second call changes nothing.
        let _ = self.is_complete.set(());
    }

    /// Starts the creation of the remaining objects and waits for it.
    pub async fn wait(&self) {
        let _ = self.is_waited_for.set(());
        self.is_complete.wait().await;
    }

    /// Waits until all bootstrap objects exist.
    pub async fn completed(&self) {
        self.is_complete.wait().await;
    }

    /// Like [`BootstrapProgress::wait`], but does not start the creation early.
    pub async fn wait_without_starting(&self) {
        let _ = timeout(TIMEOUT, self.is_complete.wait()).await;
    }

    /// Waits for the first answer, a delay or a waiting request; then the remaining objects are created.
    pub async fn may_start(&self) {
        let after_answer = async {
            self.has_answered.wait().await;
            sleep(AFTER_FIRST_ANSWER).await;
        };
        tokio::select! {
            _ = self.is_waited_for.wait() => {}
            () = after_answer => {}
            () = sleep(IDLE_DELAY) => {}
        }
    }
}

/// Records an answer to a client.
pub(crate) fn note_answer(api: &ApiServer, connection: &Connection) {
    let is_own = || matches!(connection, Connection::InProcess(caller) if *caller == Identity::server());
    if !api.progress.is_complete() && !is_own() {
        // Only the first one matters.
        let _ = api.progress.has_answered.set(());
    }
}

/// Waits for the bootstrap objects if the response may depend on them.
pub(crate) async fn wait_for_bootstrap(
    api: &ApiServer,
    caller: &Identity,
    info: &RequestInfo,
    headers: &HeaderMap,
) -> Result<(), Error> {
    if api.progress.is_complete() || needs_no_bootstrap(caller, info, headers) {
        return Ok(());
    }
    match timeout(TIMEOUT, api.progress.wait()).await {
        Ok(()) => Ok(()),
        // If the bootstrap fails, for instance by a webhook that denies everything, only an administrator's request can
        // repair it.
        Err(_) if needs_no_role(caller, headers) => Ok(()),
        Err(_) => Err(Error::Unavailable {
            message: "the default roles and bindings do not exist yet; try again".to_owned(),
        }),
    }
}

/// Whether the caller is in `system:masters` and impersonates no other user.
fn needs_no_role(caller: &Identity, headers: &HeaderMap) -> bool {
    caller.is_in(MASTERS) && !impersonate::is_requested(headers)
}

/// Loopback requests create the objects. Administrators may read resources that the bootstrap does not touch.
fn needs_no_bootstrap(caller: &Identity, info: &RequestInfo, headers: &HeaderMap) -> bool {
    if *caller == Identity::server() {
        return true;
    }
    let RequestInfo::Resource { verb, path } = info else { return false };
    matches!(verb, Verb::Get | Verb::List | Verb::Watch)
        && !is_created_later(&path.group, &path.resource)
        && needs_no_role(caller, headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::path::ResourcePath;

    fn asks(verb: Verb, group: &str) -> RequestInfo {
        RequestInfo::Resource {
            verb,
            path: ResourcePath { group: group.to_owned(), ..ResourcePath::default() },
        }
    }

    #[tokio::test(start_paused = true)]
    async fn remaining_objects_wait_for_the_first_answer_a_delay_or_a_request_that_needs_them() {
        let begun = tokio::time::Instant::now();
        let nobody = BootstrapProgress::default();
        nobody.may_start().await;
        assert_eq!(begun.elapsed(), IDLE_DELAY);

        let (asked, begun) = (BootstrapProgress::default(), tokio::time::Instant::now());
        asked.has_answered.set(()).unwrap();
        asked.may_start().await;
        assert_eq!(begun.elapsed(), AFTER_FIRST_ANSWER);

        let (waited_for, begun) = (BootstrapProgress::default(), tokio::time::Instant::now());
        let complete = async {
            waited_for.may_start().await;
            waited_for.complete();
        };
        tokio::join!(waited_for.wait(), complete);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[test]
    fn only_callers_that_need_no_role_are_served_before_bootstrap() {
        let master = Identity::authenticated("admin", [MASTERS.to_owned()]);
        let other = Identity::authenticated("ann", []);
        let plain = RequestInfo::Plain { method: "get".to_owned(), path: "/readyz".to_owned() };
        let impersonating = HeaderMap::from_iter([(
            http::HeaderName::from_static("impersonate-user"),
            http::HeaderValue::from_static("ann"),
        )]);
        let none = HeaderMap::new();
        for (caller, info, headers, begins) in [
            (&master, asks(Verb::Get, ""), &none, true),
            (&master, asks(Verb::Watch, "apps"), &none, true),
            (&master, asks(Verb::Create, ""), &none, false),
            (&master, asks(Verb::List, kinds::rbac::GROUP), &none, false),
            (&master, asks(Verb::Get, ""), &impersonating, false),
            (&master, plain, &none, false),
            (&other, asks(Verb::Get, ""), &none, false),
            (&Identity::server(), asks(Verb::Create, kinds::rbac::GROUP), &none, true),
        ] {
            assert_eq!(needs_no_bootstrap(caller, &info, headers), begins, "{caller:?}");
        }
        // A caller whose wait timed out goes on only if no role could matter.
        assert!(needs_no_role(&master, &none));
        assert!(!needs_no_role(&master, &impersonating) && !needs_no_role(&other, &none));
    }
}
