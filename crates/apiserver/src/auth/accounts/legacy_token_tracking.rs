//! Legacy token tracking: the ConfigMap `kube-apiserver-legacy-service-account-token-tracking`, and the last-used label of
//! token Secrets.

use std::sync::Weak;
use std::time::Duration;

use http::Method;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use model::error::Error;
use model::{ObjectKey, Resource};
use serde_json::{Value, json};
use store::WatchScope;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::api::{ApiServer, ServerState};
use crate::bootstrap::loopback;
use crate::informer::Trigger;
use crate::verbs::store_error;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// The least time between two writes of the ConfigMap, in case another server deletes it.
const BETWEEN_WRITES: Duration = Duration::from_secs(30 * 60);
/// Delay before a retry.
const PAUSE: Duration = Duration::from_secs(5);
/// Queued uses. A use beyond that is recorded with the next one.
const WAITING: usize = 64;

/// The use of a legacy token.
pub(crate) struct TokenUse {
    namespace: String,
    secret: String,
    uid: String,
    day: String,
}

/// Queues the uses of legacy tokens.
pub(super) struct LastUseRecorder(mpsc::Sender<TokenUse>);

/// The queue of token uses.
pub(crate) type TokenUses = mpsc::Receiver<TokenUse>;

impl LastUseRecorder {
    pub(super) fn new() -> (Self, TokenUses) {
        let (sender, uses) = mpsc::channel(WAITING);
        (Self(sender), uses)
    }

    /// Records the use of a token Secret, unless its label has the current day.
    pub(super) fn note(&self, namespace: &str, secret: &str, uid: &str, known: Option<&str>, now: Timestamp) {
        let Some(day) = new_day(known, now) else { return };
        let (namespace, secret, uid) = (namespace.to_owned(), secret.to_owned(), uid.to_owned());
        // If the queue is full, the next use is recorded.
        let _ = self.0.try_send(TokenUse { namespace, secret, uid, day });
    }
}

fn day(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}

/// The day to record; `None` if the label has it, or has tomorrow by a clock that is ahead.
fn new_day(known: Option<&str>, now: Timestamp) -> Option<String> {
    let today = day(now);
    let tomorrow = today.checked_add(1.day()).unwrap_or(today);
    let is_known = |day: Date| known == Some(&*day.to_string());
    (!is_known(today) && !is_known(tomorrow)).then(|| today.to_string())
}

/// The state of the ConfigMap.
#[derive(Debug, PartialEq, Eq)]
enum ConfigMapProblem {
    None,
    Missing,
    InvalidSince,
}

fn problem_of(map: Option<&Value>) -> ConfigMapProblem {
    let Some(map) = map else { return ConfigMapProblem::Missing };
    let is_day = |text: &str| Date::strptime("%Y-%m-%d", text).is_ok_and(|date| date.to_string() == text);
    if map["data"]["since"].as_str().is_some_and(is_day) {
        ConfigMapProblem::None
    } else {
        ConfigMapProblem::InvalidSince
    }
}

/// Whether the server serves ConfigMaps and Secrets.
pub(crate) fn is_served(api: &ApiServer) -> bool {
    let registry = api.registry();
    ["configmaps", "secrets", "namespaces"].iter().all(|plural| registry.find("", "v1", plural).is_some())
}

/// Writes the ConfigMap during bootstrap. A failure is logged: the controller retries.
pub(crate) async fn begin(api: &ApiServer) {
    if is_served(api)
        && let Err(error) = reconcile(api, true).await
    {
        tracing::warn!(%error, "cannot write the ConfigMap {NAMESPACE}/{NAME} during bootstrap; retrying later");
    }
}

fn key() -> ObjectKey {
    ObjectKey::new(&Resource::new("", "configmaps"), NAMESPACE, NAME)
}

/// Writes the ConfigMap if it is missing or invalid and a write is due. Returns whether it is missing.
async fn reconcile(api: &ApiServer, may_create: bool) -> Result<bool, Error> {
    let found = api.store.get(&key(), None).await.map_err(store_error)?;
    let map: Option<Value> = found.as_ref().and_then(|found| serde_json::from_slice(&found.value).ok());
    let list = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let data = json!({"since": day(Timestamp::now()).to_string()});
    let problem = problem_of(map.as_ref());
    match problem {
        ConfigMapProblem::Missing if may_create => {
            let map = json!({"metadata": {"namespace": NAMESPACE, "name": NAME}, "data": data});
            expect(loopback::request(api, Method::POST, &list, map.to_string()).await?, &list)?;
        }
        ConfigMapProblem::InvalidSince => {
            let path = format!("{list}/{NAME}");
            let revision = found.map(|found| found.revision.to_string());
            let patch = json!({"metadata": {"resourceVersion": revision}, "data": data});
            expect(loopback::request(api, Method::PATCH, &path, patch.to_string()).await?, &path)?;
        }
        ConfigMapProblem::Missing | ConfigMapProblem::None => {}
    }
    Ok(problem == ConfigMapProblem::Missing && !may_create)
}

/// Accepts conflicts: another server may have written the ConfigMap.
fn expect(code: u16, path: &str) -> Result<(), Error> {
    match code {
        200 | 201 | 404 | 409 => Ok(()),
        code => Err(Error::Internal { message: format!("{path}: {code}") }),
    }
}

/// Maintains the ConfigMap and records token uses until dropped. Several servers may do so concurrently.
pub(crate) async fn run(server: Weak<ServerState>, mut uses: TokenUses) {
    let mut next_note = Instant::now() + BETWEEN_WRITES;
    let Some((store, informers)) = server.upgrade().map(|state| state.store_and_informers()) else { return };
    let mut trigger = Trigger::new(&store, &informers, [WatchScope::one(key())]).await;
    loop {
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        let may_create = Instant::now() >= next_note;
        let reconciled = reconcile(&api, may_create).await;
        drop(api);
        let is_missing = match reconciled {
            Ok(is_missing) => is_missing,
            Err(error) => {
                tracing::warn!(%error, "cannot write the ConfigMap {NAMESPACE}/{NAME}; retrying");
                sleep(PAUSE).await;
                continue;
            }
        };
        if may_create {
            next_note = Instant::now() + BETWEEN_WRITES;
        }
        loop {
            tokio::select! {
                () = trigger.fired() => break,
                () = sleep_until(next_note), if is_missing => break,
                used = uses.recv() => {
                    let (Some(used), Some(api)) = (used, server.upgrade().map(ApiServer::of)) else { return };
                    record(&api, &used).await;
                }
            }
        }
    }
}

async fn record(api: &ApiServer, TokenUse { namespace, secret, uid, day }: &TokenUse) {
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
    let labels = json!({"kubernetes.io/legacy-token-last-used": day});
    let patch = json!({"metadata": {"uid": uid, "labels": labels}});
    let written = loopback::request(api, Method::PATCH, &path, patch.to_string()).await;
    if let Err(error) = written.and_then(|code| expect(code, &path)) {
        tracing::warn!(%error, "cannot record the last use of a legacy token");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_use_is_recorded_once_a_day() {
        let now: Timestamp = "2026-02-28T23:59:59Z".parse().unwrap();
        for (known, expected) in [
            (None, Some("2026-02-28")),
            (Some(""), Some("2026-02-28")),
            (Some("2026-02-27"), Some("2026-02-28")),
            (Some("2026-02-28"), None),
            (Some("2026-03-01"), None),
            (Some("2026-03-02"), Some("2026-02-28")),
        ] {
            assert_eq!(new_day(known, now).as_deref(), expected, "{known:?}");
        }
    }

    #[test]
    fn a_configmap_without_a_date_is_rewritten() {
        assert_eq!(problem_of(None), ConfigMapProblem::Missing);
        for (map, expected) in [
            (json!({"data": {"since": "2026-02-28"}}), ConfigMapProblem::None),
            (json!({"data": {"since": "2026-2-28"}}), ConfigMapProblem::InvalidSince),
            (json!({"data": {"since": "soon"}}), ConfigMapProblem::InvalidSince),
            (json!({}), ConfigMapProblem::InvalidSince),
        ] {
            assert_eq!(problem_of(Some(&map)), expected, "{map}");
        }
    }
}
