//! Tokens that are kept in secrets: since when their use is noted, and on which day each was used last.

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

use crate::api::{ApiServer, Parts};
use crate::bootstrap::ask;
use crate::informer::Trigger;
use crate::verbs::store_error;

const SPACE: &str = "kube-system";
const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// How often the note since when may be made: servers that want it and others that do not shall not fight.
const BETWEEN_NOTES: Duration = Duration::from_secs(30 * 60);
/// How long to wait before something is tried again that failed.
const PAUSE: Duration = Duration::from_secs(5);
/// Uses that wait to be noted. What is too much is noted with the next use.
const WAITING: usize = 64;

/// A token was used.
pub(crate) struct Use {
    namespace: String,
    secret: String,
    uid: String,
    day: String,
}

/// Takes down which tokens were used.
pub(super) struct Ledger(mpsc::Sender<Use>);

/// What is taken down.
pub(crate) type Uses = mpsc::Receiver<Use>;

impl Ledger {
    pub(super) fn new() -> (Self, Uses) {
        let (sender, uses) = mpsc::channel(WAITING);
        (Self(sender), uses)
    }

    /// Takes down that the token of a secret was used now, unless that is known of this day.
    pub(super) fn note(&self, namespace: &str, secret: &str, uid: &str, known: Option<&str>, now: Timestamp) {
        let Some(day) = new_day(known, now) else { return };
        let (namespace, secret, uid) = (namespace.to_owned(), secret.to_owned(), uid.to_owned());
        // If nobody can take it down now, the next use will be.
        let _ = self.0.try_send(Use { namespace, secret, uid, day });
    }
}

fn day(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}

/// The day to note. None where it is known; tomorrow is known to a server whose clock is ahead.
fn new_day(known: Option<&str>, now: Timestamp) -> Option<String> {
    let today = day(now);
    let tomorrow = today.checked_add(1.day()).unwrap_or(today);
    let is_known = |day: Date| known == Some(&*day.to_string());
    (!is_known(today) && !is_known(tomorrow)).then(|| today.to_string())
}

/// What is wrong with the note since when uses are noted.
#[derive(Debug, PartialEq, Eq)]
enum Lack {
    Nothing,
    All,
    Since,
}

fn lack(map: Option<&Value>) -> Lack {
    let Some(map) = map else { return Lack::All };
    let is_day = |text: &str| Date::strptime("%Y-%m-%d", text).is_ok_and(|date| date.to_string() == text);
    if map["data"]["since"].as_str().is_some_and(is_day) { Lack::Nothing } else { Lack::Since }
}

/// Whether a server has what this is about.
pub(crate) fn is_served(api: &ApiServer) -> bool {
    let registry = api.registry();
    ["configmaps", "secrets", "namespaces"].iter().all(|plural| registry.find("", "v1", plural).is_some())
}

/// Makes the first note since when uses are noted. A server that cannot is complete without.
pub(crate) async fn begin(api: &ApiServer) {
    if is_served(api)
        && let Err(error) = settle(api, true).await
    {
        tracing::warn!(%error, "that the use of tokens is noted cannot be noted yet");
    }
}

fn key() -> ObjectKey {
    ObjectKey::new(&Resource::new("", "configmaps"), SPACE, NAME)
}

/// Makes the note since when uses are noted, if it may be made now and is not right. Says whether it is missing.
async fn settle(api: &ApiServer, may_make: bool) -> Result<bool, Error> {
    let found = api.store.get(&key(), None).await.map_err(store_error)?;
    let map: Option<Value> = found.as_ref().and_then(|found| serde_json::from_slice(&found.value).ok());
    let list = format!("/api/v1/namespaces/{SPACE}/configmaps");
    let data = json!({"since": day(Timestamp::now()).to_string()});
    let lack = lack(map.as_ref());
    match lack {
        Lack::All if may_make => {
            let map = json!({"metadata": {"namespace": SPACE, "name": NAME}, "data": data});
            expect(ask(api, Method::POST, &list, map.to_string()).await?, &list)?;
        }
        Lack::Since => {
            let path = format!("{list}/{NAME}");
            let revision = found.map(|found| found.revision.to_string());
            let patch = json!({"metadata": {"resourceVersion": revision}, "data": data});
            expect(ask(api, Method::PATCH, &path, patch.to_string()).await?, &path)?;
        }
        Lack::All | Lack::Nothing => {}
    }
    Ok(lack == Lack::All && !may_make)
}

/// Somebody else may have been faster.
fn expect(code: u16, path: &str) -> Result<(), Error> {
    match code {
        200 | 201 | 404 | 409 => Ok(()),
        code => Err(Error::Internal { message: format!("{path}: {code}") }),
    }
}

/// Keeps the note since when, and writes down what is used, until it is dropped. Whoever else does the same at the same time, on
/// another server, does no harm.
pub(crate) async fn keep(server: Weak<Parts>, mut uses: Uses) {
    let mut next_note = Instant::now() + BETWEEN_NOTES;
    let Some((store, informers)) = server.upgrade().map(|parts| parts.followed()) else { return };
    let mut trigger = Trigger::new(&store, &informers, [WatchScope::one(key())]).await;
    loop {
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        let may_make = Instant::now() >= next_note;
        let settled = settle(&api, may_make).await;
        drop(api);
        let is_missing = match settled {
            Ok(is_missing) => is_missing,
            Err(error) => {
                tracing::warn!(%error, "cannot write the ConfigMap {SPACE}/{NAME}; retrying");
                sleep(PAUSE).await;
                continue;
            }
        };
        if may_make {
            next_note = Instant::now() + BETWEEN_NOTES;
        }
        loop {
            tokio::select! {
                () = trigger.fired() => break,
                () = sleep_until(next_note), if is_missing => break,
                used = uses.recv() => {
                    let (Some(used), Some(api)) = (used, server.upgrade().map(ApiServer::of)) else { return };
                    write_down(&api, &used).await;
                }
            }
        }
    }
}

async fn write_down(api: &ApiServer, Use { namespace, secret, uid, day }: &Use) {
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
    let labels = json!({"kubernetes.io/legacy-token-last-used": day});
    let patch = json!({"metadata": {"uid": uid, "labels": labels}});
    let written = ask(api, Method::PATCH, &path, patch.to_string()).await;
    if let Err(error) = written.and_then(|code| expect(code, &path)) {
        tracing::warn!(%error, "the last use of a token cannot be noted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_noted_once_a_day() {
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
    fn a_note_without_a_day_is_made_again() {
        assert_eq!(lack(None), Lack::All);
        for (map, expected) in [
            (json!({"data": {"since": "2026-02-28"}}), Lack::Nothing),
            (json!({"data": {"since": "2026-2-28"}}), Lack::Since),
            (json!({"data": {"since": "soon"}}), Lack::Since),
            (json!({}), Lack::Since),
        ] {
            assert_eq!(lack(Some(&map)), expected, "{map}");
        }
    }
}
