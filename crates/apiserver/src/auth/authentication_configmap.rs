//! The ConfigMap `extension-apiserver-authentication`: publishes CAs and front proxies for extension API servers.

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
use crate::api::{ApiServer, ServerState};
use crate::bootstrap::loopback;
use crate::informer::Trigger;
use crate::verbs::store_error;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// Delay before a retry.
const PAUSE: Duration = Duration::from_secs(5);

/// The published CAs and front proxies.
#[derive(Clone, Debug, Default)]
pub struct ClusterAuthenticationInfo {
    /// The CA of client certificates as PEM; empty if there is none.
    pub client_ca: String,
    /// The trusted front proxies.
    pub request_header: Option<RequestHeaderInfo>,
}

/// Front proxies, which name their users in headers.
#[derive(Clone, Debug, Default)]
pub struct RequestHeaderInfo {
    /// The CA of proxy certificates as PEM.
    pub ca: String,
    /// The accepted common names; empty for all.
    pub allowed_names: Vec<String>,
    /// The headers that name the user.
    pub headers: ProxyHeaders,
}

impl ClusterAuthenticationInfo {
    fn is_empty(&self) -> bool {
        self.client_ca.is_empty() && self.request_header.is_none()
    }

    /// The merged data of the ConfigMap: entries of other servers stay, expired certificates are dropped.
    fn merged_into(&self, there: &Value, now: SystemTime) -> Result<Map<String, Value>, String> {
        let text = |key: &str| there[key].as_str().unwrap_or_default();
        let merged = |key: &str, own: &str| {
            tls::merge_bundles(&[text(key), own], now).map_err(|error| format!("{key}: {error}"))
        };
        let none = RequestHeaderInfo::default();
        let request_header = self.request_header.as_ref().unwrap_or(&none);
        let mut data = Map::new();
        let client_ca = merged("client-ca-file", &self.client_ca)?;
        if !client_ca.is_empty() {
            data.insert("client-ca-file".to_owned(), client_ca.into());
        }
        let request_header_ca = merged("requestheader-client-ca-file", &request_header.ca)?;
        if request_header_ca.is_empty() {
            return Ok(data);
        }
        data.insert("requestheader-client-ca-file".to_owned(), request_header_ca.into());
        let ProxyHeaders { users, uids, groups, extra_prefixes } = &request_header.headers;
        for (key, own, may_be_empty) in [
            ("requestheader-allowed-names", &request_header.allowed_names, true),
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

/// Merges a JSON list with own entries, without duplicates.
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

/// Maintains the ConfigMap until dropped. Several servers merge their data.
pub(crate) async fn run(server: Weak<ServerState>, mut published: Current<ClusterAuthenticationInfo>) {
    let Some(progress) = server.upgrade().map(|state| state.progress.clone()) else { return };
    progress.wait_without_starting().await;
    let Some((store, informers)) = server.upgrade().map(|state| state.store_and_informers()) else { return };
    let mut trigger = Trigger::new(&store, &informers, [WatchScope::one(key())]).await;
    loop {
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        let info = published.get();
        let reconciled = if info.is_empty() { Ok(()) } else { reconcile(&api, &info).await };
        drop(api);
        if let Err(error) = reconciled {
            tracing::warn!(%error, "cannot write the ConfigMap {NAMESPACE}/{NAME}; retrying");
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
    ObjectKey::new(&Resource::new("", "configmaps"), NAMESPACE, NAME)
}

/// Creates or updates the ConfigMap if it differs.
async fn reconcile(api: &ApiServer, info: &ClusterAuthenticationInfo) -> Result<(), Error> {
    let found = api.store.get(&key(), None).await.map_err(store_error)?;
    let map: Option<Value> = found.as_ref().and_then(|found| serde_json::from_slice(&found.value).ok());
    let there = map.as_ref().map_or(&Value::Null, |map| &map["data"]);
    match info.merged_into(there, SystemTime::now()) {
        Ok(data) if there.as_object().map_or(data.is_empty(), |there| *there == data) => {}
        Ok(data) => {
            let revision = found.as_ref().map(|found| found.revision.to_string());
            write(api, there, data, revision).await?;
        }
        // A write that repairs the ConfigMap triggers the next attempt.
        Err(reason) => {
            tracing::warn!(reason, "cannot merge the ConfigMap {NAMESPACE}/{NAME}: its data is invalid")
        }
    }
    Ok(())
}

/// Creates the ConfigMap, or patches its data.
async fn write(
    api: &ApiServer,
    there: &Value,
    mut data: Map<String, Value>,
    revision: Option<String>,
) -> Result<(), Error> {
    let list = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let (method, path, metadata) = match revision {
        None => (Method::POST, list, json!({"namespace": NAMESPACE, "name": NAME})),
        Some(revision) => {
            for key in there.as_object().into_iter().flat_map(Map::keys) {
                data.entry(key).or_insert(Value::Null);
            }
            (Method::PATCH, format!("{list}/{NAME}"), json!({"resourceVersion": revision}))
        }
    };
    let object = json!({"metadata": metadata, "data": data});
    match loopback::request(api, method, &path, object.to_string()).await? {
        // After a conflict with another server the trigger fires again.
        200 | 201 | 404 | 409 => Ok(()),
        code => Err(Error::Internal { message: format!("{path}: {code}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ca(name: &str) -> String {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        x509::pem::encode(x509::pem::CERTIFICATE, params.self_signed(&key).unwrap().der())
    }

    #[test]
    fn data_of_other_servers_is_kept() {
        let [clients, proxies, others] = ["clients", "proxies", "others"].map(ca);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let alone = ClusterAuthenticationInfo { client_ca: clients.clone(), request_header: None };
        assert_eq!(
            Value::from(alone.merged_into(&Value::Null, now).unwrap()),
            json!({"client-ca-file": clients})
        );

        let headers = ProxyHeaders { uids: Vec::new(), ..ProxyHeaders::usual() };
        let proxied =
            RequestHeaderInfo { ca: proxies.clone(), allowed_names: vec!["front".to_owned()], headers };
        let both = ClusterAuthenticationInfo { client_ca: clients.clone(), request_header: Some(proxied) };
        let expected = json!({
            "client-ca-file": clients,
            "requestheader-client-ca-file": proxies,
            "requestheader-allowed-names": r#"["front"]"#,
            "requestheader-username-headers": r#"["X-Remote-User"]"#,
            "requestheader-group-headers": r#"["X-Remote-Group"]"#,
            "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
        });
        assert_eq!(Value::from(both.merged_into(&Value::Null, now).unwrap()), expected);
        assert_eq!(Value::from(both.merged_into(&expected, now).unwrap()), expected);
        assert_eq!(Value::from(alone.merged_into(&expected, now).unwrap()), expected, "of another server");

        let of_another = json!({
            "client-ca-file": others, "requestheader-client-ca-file": proxies,
            "requestheader-allowed-names": r#"["back","front"]"#, "requestheader-uid-headers": r#"["X-Uid"]"#, "mine": "1",
        });
        let found = both.merged_into(&of_another, now).unwrap();
        assert_eq!(found["client-ca-file"], format!("{others}{clients}"));
        assert_eq!(found["requestheader-allowed-names"], r#"["back","front"]"#);
        assert_eq!(found["requestheader-uid-headers"], r#"["X-Uid"]"#);
        assert!(!found.contains_key("mine"));
        assert!(both.merged_into(&json!({"requestheader-allowed-names": "front"}), now).is_err());
    }
}
