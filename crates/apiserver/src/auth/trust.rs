//! What the server tells others of how it knows its callers, so that servers beside it can know them in the same way: the ConfigMap
//! `extension-apiserver-authentication`.

use std::sync::Weak;
use std::time::{Duration, SystemTime};

use http::Method;
use model::error::Error;
use model::{ObjectKey, Resource};
use process::reload::Current;
use process::tls;
use serde_json::{Map, Value, json};
use store::WatchScope;
use tokio::time::sleep;

use super::ProxyHeaders;
use crate::api::{ApiServer, Parts};
use crate::bootstrap::ask;
use crate::informer::Trigger;
use crate::verbs::store_error;

const SPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// How long to wait before something is tried again that failed.
const PAUSE: Duration = Duration::from_secs(5);

/// Whom a server believes, as far as others may know it.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// The authorities of client certificates, as PEM; empty where there are none.
    pub clients: String,
    /// The proxies that it believes.
    pub proxies: Option<TrustedProxies>,
}

/// Proxies that say for whom they speak.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies {
    /// The authorities of their certificates, as PEM.
    pub authorities: String,
    /// Their names; empty for any.
    pub names: Vec<String>,
    /// Where they say it.
    pub headers: ProxyHeaders,
}

impl Trust {
    fn is_nothing(&self) -> bool {
        self.clients.is_empty() && self.proxies.is_none()
    }

    /// The data that there has to be where these are: what other servers wrote stays, but for certificates that have ended.
    fn beside(&self, there: &Value, now: SystemTime) -> Result<Map<String, Value>, String> {
        let text = |key: &str| there[key].as_str().unwrap_or_default();
        let merged = |key: &str, own: &str| {
            tls::merge_bundles(&[text(key), own], now).map_err(|error| format!("{key}: {error}"))
        };
        let nobody = TrustedProxies::default();
        let proxies = self.proxies.as_ref().unwrap_or(&nobody);
        let mut data = Map::new();
        let clients = merged("client-ca-file", &self.clients)?;
        if !clients.is_empty() {
            data.insert("client-ca-file".to_owned(), clients.into());
        }
        let authorities = merged("requestheader-client-ca-file", &proxies.authorities)?;
        if authorities.is_empty() {
            return Ok(data);
        }
        data.insert("requestheader-client-ca-file".to_owned(), authorities.into());
        let ProxyHeaders { users, uids, groups, extra_prefixes } = &proxies.headers;
        for (key, own, may_be_empty) in [
            ("requestheader-allowed-names", &proxies.names, true),
            ("requestheader-username-headers", users, true),
            ("requestheader-uid-headers", uids, false),
            ("requestheader-group-headers", groups, true),
            ("requestheader-extra-headers-prefix", extra_prefixes, true),
        ] {
            let all = joined(text(key), own).map_err(|error| format!("{key}: {error}"))?;
            if may_be_empty || !all.is_empty() {
                data.insert(key.to_owned(), Value::from(all).to_string().into());
            }
        }
        Ok(data)
    }
}

/// The texts of a list in JSON, then one's own, each once.
fn joined(there: &str, own: &[String]) -> Result<Vec<String>, serde_json::Error> {
    let there: Vec<String> = if there.is_empty() { Vec::new() } else { serde_json::from_str(there)? };
    let mut all = Vec::new();
    for text in there.iter().chain(own) {
        if !all.contains(text) {
            all.push(text.clone());
        }
    }
    Ok(all)
}

/// Keeps what others may know, until it is dropped. Whoever else does the same, on another server, adds what is theirs.
pub(crate) async fn keep(server: Weak<Parts>, mut published: Current<Trust>) {
    let Some(progress) = server.upgrade().map(|parts| parts.progress.clone()) else { return };
    progress.wait_patiently().await;
    let Some((store, informers)) = server.upgrade().map(|parts| parts.followed()) else { return };
    let mut trigger = Trigger::new(&store, &informers, [WatchScope::one(key())]).await;
    loop {
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        let trust = published.get();
        let settled = if trust.is_nothing() { Ok(()) } else { settle(&api, &trust).await };
        drop(api);
        if let Err(error) = settled {
            tracing::warn!(%error, "cannot write the ConfigMap {SPACE}/{NAME}; retrying");
            sleep(PAUSE).await;
            continue;
        }
        tokio::select! {
            () = trigger.fired() => {}
            () = published.changed() => {}
        }
    }
}

fn key() -> ObjectKey {
    ObjectKey::new(&Resource::new("", "configmaps"), SPACE, NAME)
}

/// Writes what is missing.
async fn settle(api: &ApiServer, trust: &Trust) -> Result<(), Error> {
    let found = api.store.get(&key(), None).await.map_err(store_error)?;
    let map: Option<Value> = found.as_ref().and_then(|found| serde_json::from_slice(&found.value).ok());
    let there = map.as_ref().map_or(&Value::Null, |map| &map["data"]);
    match trust.beside(there, SystemTime::now()) {
        Ok(data) if there.as_object().map_or(data.is_empty(), |there| *there == data) => {}
        Ok(data) => {
            let revision = found.as_ref().map(|found| found.revision.to_string());
            write(api, there, data, revision).await?;
        }
        // Who wrote that has to mend it, and is heard then.
        Err(reason) => tracing::warn!(reason, "{SPACE}/{NAME} cannot be understood"),
    }
    Ok(())
}

/// Makes the object, or changes the data of the one that is there.
async fn write(
    api: &ApiServer,
    there: &Value,
    mut data: Map<String, Value>,
    revision: Option<String>,
) -> Result<(), Error> {
    let list = format!("/api/v1/namespaces/{SPACE}/configmaps");
    let (method, path, metadata) = match revision {
        None => (Method::POST, list, json!({"namespace": SPACE, "name": NAME})),
        Some(revision) => {
            for key in there.as_object().into_iter().flat_map(Map::keys) {
                data.entry(key).or_insert(Value::Null);
            }
            (Method::PATCH, format!("{list}/{NAME}"), json!({"resourceVersion": revision}))
        }
    };
    let object = json!({"metadata": metadata, "data": data});
    match ask(api, method, &path, object.to_string()).await? {
        // Somebody else may have been faster, which the watch will say.
        200 | 201 | 404 | 409 => Ok(()),
        code => Err(Error::Internal { message: format!("{path}: {code}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(name: &str) -> String {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        x509::pem::encode(x509::pem::CERTIFICATE, params.self_signed(&key).unwrap().der())
    }

    #[test]
    fn what_other_servers_say_stays() {
        let [clients, proxies, others] = ["clients", "proxies", "others"].map(authority);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let alone = Trust { clients: clients.clone(), proxies: None };
        assert_eq!(Value::from(alone.beside(&Value::Null, now).unwrap()), json!({"client-ca-file": clients}));

        let headers = ProxyHeaders { uids: Vec::new(), ..ProxyHeaders::usual() };
        let proxied =
            TrustedProxies { authorities: proxies.clone(), names: vec!["front".to_owned()], headers };
        let both = Trust { clients: clients.clone(), proxies: Some(proxied) };
        let expected = json!({
            "client-ca-file": clients,
            "requestheader-client-ca-file": proxies,
            "requestheader-allowed-names": r#"["front"]"#,
            "requestheader-username-headers": r#"["X-Remote-User"]"#,
            "requestheader-group-headers": r#"["X-Remote-Group"]"#,
            "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
        });
        assert_eq!(Value::from(both.beside(&Value::Null, now).unwrap()), expected);
        assert_eq!(Value::from(both.beside(&expected, now).unwrap()), expected);
        assert_eq!(Value::from(alone.beside(&expected, now).unwrap()), expected, "of another server");

        let of_another = json!({
            "client-ca-file": others, "requestheader-client-ca-file": proxies,
            "requestheader-allowed-names": r#"["back","front"]"#, "requestheader-uid-headers": r#"["X-Uid"]"#, "mine": "1",
        });
        let found = both.beside(&of_another, now).unwrap();
        assert_eq!(found["client-ca-file"], format!("{others}{clients}"));
        assert_eq!(found["requestheader-allowed-names"], r#"["back","front"]"#);
        assert_eq!(found["requestheader-uid-headers"], r#"["X-Uid"]"#);
        assert!(!found.contains_key("mine"));
        assert!(both.beside(&json!({"requestheader-allowed-names": "front"}), now).is_err());
    }
}
