//! The CA bundle in webhook configurations and CRDs.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::Client;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::managed::SharedSecret;
use crate::webhook::PatchOperation;
use crate::{
    Context, Controller, ListWatch, Objects, Outcome, Reconciler, ResourceKind, Result, SharedInformers,
};

const fn registration(kind: &'static str, plural: &'static str) -> ResourceKind {
    ResourceKind { group: "admissionregistration.k8s.io", version: "v1", kind, plural }
}

const MUTATING: ResourceKind = registration("MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
const VALIDATING: ResourceKind =
    registration("ValidatingWebhookConfiguration", "validatingwebhookconfigurations");
const CRDS: ResourceKind = ResourceKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
};

/// An object that gets the CA bundle of a webhook server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CaTarget {
    kind: TargetKind,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TargetKind {
    Mutating,
    Validating,
    Crd,
}

impl CaTarget {
    /// The MutatingWebhookConfiguration of a name.
    pub fn mutating(name: impl Into<String>) -> Self {
        Self { kind: TargetKind::Mutating, name: name.into() }
    }

    /// The ValidatingWebhookConfiguration of a name.
    pub fn validating(name: impl Into<String>) -> Self {
        Self { kind: TargetKind::Validating, name: name.into() }
    }

    /// The conversion webhook of a CRD, such as `ships.sea.example.com`.
    pub fn crd(name: impl Into<String>) -> Self {
        Self { kind: TargetKind::Crd, name: name.into() }
    }

    fn resource(&self) -> ResourceKind {
        match self.kind {
            TargetKind::Mutating => MUTATING,
            TargetKind::Validating => VALIDATING,
            TargetKind::Crd => CRDS,
        }
    }
}

impl fmt::Display for CaTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource().kind, self.name)
    }
}

/// Writes the CA bundle into its targets.
pub(super) struct CaBundle {
    client: Client,
    shared: Arc<SharedSecret>,
    names: Vec<String>,
}

impl CaBundle {
    /// A controller that also writes a target after another client has changed it.
    pub(super) fn controller(
        client: Client,
        shared: Arc<SharedSecret>,
        names: Vec<String>,
        targets: &[CaTarget],
        informers: &SharedInformers,
    ) -> Controller<Self> {
        let bundle = Self { client, shared, names };
        targets.iter().fold(Controller::new("webhook-ca-bundle", bundle), |controller, target| {
            let this = ListWatch::all(target.resource())
                .fields(format!("metadata.name={}", target.name))
                .metadata_only();
            let target = target.clone();
            controller.watch::<IgnoredAny, _>(informers, this, move |delta| {
                (!delta.is_deleted).then(|| target.clone())
            })
        })
    }

    fn objects(&self, target: &CaTarget) -> Objects {
        Objects::new(&self.client, &target.resource().resource(), None)
    }
}

/// A target, and the bundle that it has to have.
pub(super) struct Observed {
    kind: TargetKind,
    object: Value,
    bundle: String,
    names: Vec<String>,
}

impl Reconciler for CaBundle {
    type Key = CaTarget;
    type Observed = Observed;
    type Step = Vec<PatchOperation>;

    async fn observe(&self, target: &CaTarget, _: &Context<CaTarget>) -> Result<Option<Observed>> {
        // Read from the Secret: this replica may not have seen yet that another one has rotated.
        let Some(material) = self.shared.material().await? else { return Ok(None) };
        let Some(object) = self.objects(target).get(&target.name).await? else { return Ok(None) };
        let bundle = STANDARD.encode(material.bundle());
        Ok(Some(Observed { kind: target.kind, object, bundle, names: self.names.clone() }))
    }

    fn decide(observed: &Observed, _: Timestamp) -> Vec<PatchOperation> {
        let Observed { kind, object, bundle, names } = observed;
        match kind {
            TargetKind::Mutating | TargetKind::Validating => {
                let webhooks = object["webhooks"].as_array().into_iter().flatten().enumerate();
                let patch = webhooks.flat_map(|(index, webhook)| {
                    let operation = operation(
                        &webhook["clientConfig"],
                        &format!("/webhooks/{index}/clientConfig"),
                        bundle,
                        names,
                    );
                    // A concurrent change of the list may have moved the webhook to another index.
                    let test = PatchOperation::Test {
                        path: format!("/webhooks/{index}/name"),
                        value: webhook["name"].clone(),
                    };
                    operation.into_iter().flat_map(move |operation| [test.clone(), operation])
                });
                patch.collect()
            }
            TargetKind::Crd => {
                let path = "/spec/conversion/webhook/clientConfig";
                let config = object.pointer(path).unwrap_or(&Value::Null);
                operation(config, path, bundle, names).into_iter().collect()
            }
        }
    }

    async fn execute(
        &self,
        target: &CaTarget,
        _: Observed,
        patch: Vec<PatchOperation>,
        _: &Context<CaTarget>,
    ) -> Result<Outcome> {
        if !patch.is_empty() {
            self.objects(target).json_patch::<IgnoredAny>(&target.name, &patch).await?;
            tracing::info!(%target, "wrote the CA bundle");
        }
        Ok(Outcome::Done)
    }
}

/// The operation that gives a `clientConfig` the bundle, if it calls one of these names and has another one.
fn operation(config: &Value, path: &str, bundle: &str, names: &[String]) -> Option<PatchOperation> {
    let calls = host(config)?;
    let is_ours = names.contains(&calls);
    // `add` also replaces a field.
    (is_ours && config["caBundle"] != bundle)
        .then(|| PatchOperation::Add { path: format!("{path}/caBundle"), value: bundle.into() })
}

/// The name that the API server verifies when it calls a webhook.
fn host(config: &Value) -> Option<String> {
    if let Some(url) = config["url"].as_str() {
        let host = url.parse::<http::Uri>().ok()?.host()?.to_owned();
        return Some(host.trim_matches(['[', ']']).to_owned());
    }
    let service = &config["service"];
    Some(format!("{}.{}.svc", service["name"].as_str()?, service["namespace"].as_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patch(kind: TargetKind, object: Value) -> Value {
        let names = vec!["hook.space.svc".to_owned(), "127.0.0.1".to_owned()];
        let observed = Observed { kind, object, bundle: "QQ==".to_owned(), names };
        serde_json::to_value(CaBundle::decide(&observed, Timestamp::UNIX_EPOCH)).unwrap()
    }

    #[test]
    fn only_the_bundles_of_webhooks_that_call_the_server_are_written() {
        let service =
            |name: &str| json!({"service": {"namespace": "space", "name": name}, "caBundle": "old"});
        let right = json!({"url": "https://127.0.0.1:9443/x", "caBundle": "QQ=="});
        let without = json!({"url": "https://127.0.0.1:9443/x"});
        let webhooks = [("a", service("other")), ("b", service("hook")), ("c", right), ("d", without)];
        let webhooks = webhooks.map(|(name, config)| json!({"name": name, "clientConfig": config}));
        let add = |index: u32, name: &str| {
            [
                json!({"op": "test", "path": format!("/webhooks/{index}/name"), "value": name}),
                json!({"op": "add", "path": format!("/webhooks/{index}/clientConfig/caBundle"), "value": "QQ=="}),
            ]
        };
        let expected = [add(1, "b"), add(3, "d")].concat();
        assert_eq!(patch(TargetKind::Validating, json!({"webhooks": webhooks})), json!(expected));
        assert_eq!(patch(TargetKind::Mutating, json!({})), json!([]));
    }

    #[test]
    fn a_crd_gets_the_bundle_of_its_conversion_webhook() {
        let crd = |config: Value| json!({"spec": {"conversion": {"webhook": {"clientConfig": config}}}});
        let config = json!({"service": {"namespace": "space", "name": "hook"}});
        let path = "/spec/conversion/webhook/clientConfig/caBundle";
        let expected = json!([{"op": "add", "path": path, "value": "QQ=="}]);
        assert_eq!(patch(TargetKind::Crd, crd(config)), expected);
        assert_eq!(patch(TargetKind::Crd, json!({"spec": {"conversion": {"strategy": "None"}}})), json!([]));
    }
}
