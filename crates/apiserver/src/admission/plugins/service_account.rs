//! `ServiceAccount`: sets the service account of a Pod and mounts its token.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::error::{Error, quote};
use model::object::{items, list_mut, map_mut, present, text, text_in};
use model::{ObjectKey, Resource, names};
use serde_json::{Value, json};

use crate::admission::informers::{InformerCache, PluginInformer};
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;

const TOKEN_VOLUME: &str = "kube-api-access-";
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Lifetime of a mounted token, in seconds.
const TOKEN_SECONDS: u32 = 3607;
/// Number of lookups of an account that its controller has not created yet, and the delay between them.
const ATTEMPTS: u32 = 40;
const WAIT: Duration = Duration::from_millis(25);
const MIRROR: [&str; 3] = ["metadata", "annotations", "kubernetes.io/config.mirror"];
const LIMITED: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) struct ServiceAccount(Arc<InformerCache<Object>>);

impl ServiceAccount {
    pub fn new() -> Self {
        let read = |_: &ObjectKey, account: Object| Some(needed(account));
        Self(InformerCache::new(Resource::new("", "serviceaccounts"), read))
    }

    pub fn informer(&self) -> Arc<dyn PluginInformer> {
        self.0.clone()
    }

    /// The service account of a Pod. Retries: the controller may not have created it yet, or this server's cache may not have
    /// it yet.
    async fn account_of(
        &self,
        request: &AdmissionAttributes<'_>,
        pod: &Object,
    ) -> Result<Arc<Object>, Error> {
        let (namespace, name) = (request.namespace(), text(pod, &["spec", "serviceAccountName"]));
        if let Some(account) = self.0.of(namespace).and_then(|known| known.get(name).cloned()) {
            return Ok(account);
        }
        let attempts = if name == "default" { ATTEMPTS } else { 1 };
        for attempt in 0..attempts {
            if attempt > 0 {
                tokio::time::sleep(WAIT).await;
            }
            if let Some(account) = request.look_up("", "serviceaccounts", namespace, name).await? {
                return Ok(Arc::new(account));
            }
        }
        let problem = format!("serviceaccount {} not found", quote(name));
        Err(request
            .forbidden(Some(pod), format!("error looking up service account {namespace}/{name}: {problem}")))
    }
}

/// Drops the fields of an account that the cache does not need.
fn needed(mut account: Object) -> Object {
    let keys = ["metadata", "automountServiceAccountToken", "secrets", "imagePullSecrets"];
    account.retain(|key, _| keys.contains(&key.as_str()));
    let metadata = map_mut(&mut account, "metadata");
    metadata.retain(|key, _| ["name", "annotations"].contains(&key.as_str()));
    map_mut(metadata, "annotations").retain(|key, _| key == LIMITED);
    account
}

impl Plugin for ServiceAccount {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let is_made = target.is_pod() && target.operation == Operation::Create;
        let gets_more = target.is("", "pods", "ephemeralcontainers") && target.operation == Operation::Update;
        Phases { mutates: is_made, validates: is_made || gets_more }
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        let Some(pod) = object else { return PluginResult::OK };
        if present(pod, &MIRROR).is_some() {
            return PluginResult::Done(
                check_mirror(pod).map_err(|message| request.forbidden(Some(pod), message)),
            );
        }
        PluginResult::later(async move {
            if text(pod, &["spec", "serviceAccountName"]).is_empty() {
                map_mut(pod, "spec").insert("serviceAccountName".to_owned(), "default".into());
            }
            let account = self.account_of(request, pod).await?;
            complete(pod, &account);
            limit(pod, &account).map_err(|message| request.forbidden(Some(pod), message))
        })
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let Some(pod) = object else { return PluginResult::OK };
        if present(pod, &MIRROR).is_some() {
            return PluginResult::Done(
                check_mirror(pod).map_err(|message| request.forbidden(object, message)),
            );
        }
        PluginResult::later(async move {
            if text(pod, &["spec", "serviceAccountName"]).is_empty() {
                let (namespace, name) = (request.namespace(), text(pod, &["metadata", "name"]));
                let message = format!("no service account specified for pod {namespace}/{name}");
                return Err(request.forbidden(object, message));
            }
            let account = self.account_of(request, pod).await?;
            let is_ephemeral = request.subresource() == "ephemeralcontainers";
            let limited = if is_ephemeral { limit_ephemeral(pod, &account) } else { limit(pod, &account) };
            limited.map_err(|message| request.forbidden(object, message))
        })
    }
}

/// Sets service account, image pull secrets and token volume of a Pod.
fn complete(pod: &mut Object, account: &Object) {
    let flag = |of: &Object, path: &[&str]| present(of, path).and_then(Value::as_bool);
    let wanted = flag(pod, &["spec", "automountServiceAccountToken"])
        .or_else(|| flag(account, &["automountServiceAccountToken"]));
    if wanted.unwrap_or(true) {
        mount_token(pod);
    }
    let name = text(pod, &["spec", "serviceAccountName"]).to_owned();
    let spec = map_mut(pod, "spec");
    // The deprecated alias of the field.
    spec.insert("serviceAccount".to_owned(), name.into());
    let has_secrets =
        spec.get("imagePullSecrets").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let secrets: Vec<Value> = items(account, &["imagePullSecrets"])
        .iter()
        .map(|secret| json!({"name": text_in(secret, "name")}))
        .collect();
    if !has_secrets && !secrets.is_empty() {
        spec.insert("imagePullSecrets".to_owned(), secrets.into());
    }
}

fn mount_token(pod: &mut Object) {
    let known = items(pod, &["spec", "volumes"]).iter().map(|volume| text_in(volume, "name"));
    let known = known.into_iter().find(|name| name.starts_with(TOKEN_VOLUME)).map(str::to_owned);
    let random = || uuid::Uuid::new_v4().as_fields().0;
    let name = known.clone().unwrap_or_else(|| names::generated(TOKEN_VOLUME, random));
    let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH});
    let mut is_needed = false;
    for key in ["initContainers", "containers"] {
        let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(key)).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            if !items(container, &["volumeMounts"])
                .iter()
                .any(|mount| text_in(mount, "mountPath") == TOKEN_PATH)
            {
                list_mut(container, "volumeMounts").push(mount.clone());
                is_needed = true;
            }
        }
    }
    if is_needed && known.is_none() {
        list_mut(map_mut(pod, "spec"), "volumes").push(json!({"name": name, "projected": token_source()}));
    }
}

fn token_source() -> Value {
    let namespace = json!({
        "path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
    });
    json!({
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
    })
}

/// A mirror Pod must not have a service account.
fn check_mirror(pod: &Object) -> Result<(), String> {
    if !text(pod, &["spec", "serviceAccountName"]).is_empty() {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    let volumes = || items(pod, &["spec", "volumes"]).iter();
    let has_volume = volumes().any(|volume| volume.get("secret").is_some_and(Value::is_object));
    let in_containers = ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|key| items(pod, &["spec", key]))
        .any(|container| secrets_of(container).next().is_some());
    if has_volume || in_containers || !items(pod, &["spec", "imagePullSecrets"]).is_empty() {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    let mut sources =
        volumes().filter_map(|volume| volume.get("projected")?.get("sources")?.as_array()).flatten();
    if sources.any(|source| source.get("serviceAccountToken").is_some_and(Value::is_object)) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned());
    }
    Ok(())
}

/// The Secrets that the environment of a container references, with the variable or `None` for `envFrom`.
fn secrets_of(container: &Value) -> impl Iterator<Item = (Option<&str>, &str)> {
    let list = |key: &str| container.get(key).and_then(Value::as_array).into_iter().flatten();
    let one = list("env").filter_map(|variable| {
        let secret = variable.get("valueFrom")?.get("secretKeyRef")?;
        Some((Some(text_in(variable, "name")), text_in(secret, "name")))
    });
    one.chain(list("envFrom").filter_map(|from| Some((None, text_in(from.get("secretRef")?, "name")))))
}

fn is_limited(account: &Object) -> bool {
    let said = text(account, &["metadata", "annotations", LIMITED]);
    ["1", "t", "T", "true", "TRUE", "True"].contains(&said)
}

fn allowed<'a>(account: &'a Object, key: &str) -> BTreeSet<&'a str> {
    items(account, &[key]).iter().map(|secret| text_in(secret, "name")).collect()
}

fn limit_containers(pod: &Object, account: &Object, kinds: &[(&str, &str)]) -> Result<(), String> {
    let (secrets, owner) = (allowed(account, "secrets"), text(account, &["metadata", "name"]));
    for (key, word) in kinds {
        for container in items(pod, &["spec", key]) {
            let unknown = secrets_of(container).find(|(_, secret)| !secrets.contains(secret));
            if let Some((variable, secret)) = unknown {
                let by = variable.map_or_else(|| "envFrom".to_owned(), |name| format!("envVar {name}"));
                let name = text_in(container, "name");
                return Err(format!(
                    "{word} {name} with {by} referencing secret.secretName=\"{secret}\" is not allowed because service account {owner} does not reference that secret"
                ));
            }
        }
    }
    Ok(())
}

fn limit_ephemeral(pod: &Object, account: &Object) -> Result<(), String> {
    if !is_limited(account) {
        return Ok(());
    }
    limit_containers(pod, account, &[("ephemeralContainers", "ephemeral container")])
}

/// Enforces `kubernetes.io/enforce-mountable-secrets`: only listed Secrets may be used.
fn limit(pod: &Object, account: &Object) -> Result<(), String> {
    if !is_limited(account) {
        return Ok(());
    }
    let (secrets, owner) = (allowed(account, "secrets"), text(account, &["metadata", "name"]));
    let volumes = items(pod, &["spec", "volumes"]).iter().filter_map(|volume| volume.get("secret"));
    let names = volumes.map(|secret| text_in(secret, "secretName"));
    if let Some(name) = names.into_iter().find(|name| !secrets.contains(name)) {
        return Err(format!(
            "volume with secret.secretName=\"{name}\" is not allowed because service account {owner} does not reference that secret"
        ));
    }
    limit_containers(pod, account, &[("initContainers", "init container"), ("containers", "container")])?;
    let pulls = allowed(account, "imagePullSecrets");
    for (at, secret) in items(pod, &["spec", "imagePullSecrets"]).iter().enumerate() {
        let name = text_in(secret, "name");
        if !pulls.contains(name) {
            return Err(format!(
                "imagePullSecrets[{at}].name=\"{name}\" is not allowed because service account {owner} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}
