//! A whole program: a kind of its own, a controller, a webhook, leader election, health checks and metrics. Its controller writes a greeting into
//! the status of each Greeting.

use std::error::Error;

use controller::clusters::kubeconfig_file;
use controller::conditions::{self, ConditionStatus};
use controller::crds::CrdInstaller;
use controller::events::{Recorder, Reference};
use controller::health::{Health, HealthServer};
use controller::leader::{Leadership, Lease, Timing};
use controller::webhook::certificates::{CaTarget, ManagedCertificate};
use controller::webhook::{AdmissionRequest, Validate, Verdict, WebhookServer};
use controller::{
    Apply, Context, Controller, ListWatch, Metrics, ObjectKey, Objects, Outcome, Reconciler, ResourceKind,
    Run, SharedInformers,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Client;
use process::Shutdown;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const GREETINGS: ResourceKind =
    ResourceKind { group: "hello.example.com", version: "v1", kind: "Greeting", plural: "greetings" };
const WEBHOOKS: ResourceKind = ResourceKind {
    group: "admissionregistration.k8s.io",
    version: "v1",
    kind: "ValidatingWebhookConfiguration",
    plural: "validatingwebhookconfigurations",
};
const NAME: &str = "greeter";

/// A Greeting. Only the fields that matter here are parsed.
#[derive(Clone, Debug, Deserialize)]
struct Greeting {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

fn crd() -> Value {
    let spec = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": open}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "greetings.hello.example.com"},
        "spec": {
            "group": GREETINGS.group, "scope": "Namespaced",
            "names": {"kind": GREETINGS.kind, "plural": GREETINGS.plural},
            "versions": [{
                "name": GREETINGS.version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
            }],
        },
    })
}

/// The decision about a Greeting.
#[derive(Debug, PartialEq)]
enum Step {
    Keep,
    Greet(Vec<Condition>),
}

/// Writes a greeting into the status of each Greeting.
struct Greeter {
    client: Client,
    recorder: Recorder,
}

impl Reconciler for Greeter {
    type Key = ObjectKey;
    type Observed = Greeting;
    type Step = Step;

    async fn observe(&self, key: &ObjectKey, _: &Context<ObjectKey>) -> controller::Result<Option<Greeting>> {
        Objects::new(&self.client, &GREETINGS.resource(), key.namespace()).get(&key.name).await
    }

    fn decide(greeting: &Greeting, now: Timestamp) -> Step {
        let mut conditions = greeting.status.conditions.clone();
        let message = format!("Hello, {}", greeting.spec.name);
        let greeted = conditions::new("Greeted", ConditionStatus::True, "Named", message, now);
        if conditions::set(&mut conditions, greeted) { Step::Greet(conditions) } else { Step::Keep }
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        greeting: Greeting,
        step: Step,
        _: &Context<ObjectKey>,
    ) -> controller::Result<Outcome> {
        let Step::Greet(conditions) = step else { return Ok(Outcome::Done) };
        // A precondition: a decision about one version is not executed on another.
        let metadata = json!({"resourceVersion": greeting.metadata.resource_version});
        let patch = json!({"metadata": metadata, "status": {"conditions": conditions}});
        let objects = Objects::new(&self.client, &GREETINGS.resource(), key.namespace());
        objects.merge_patch_subresource::<IgnoredAny>("status", &key.name, &patch).await?;
        let about = Reference {
            api_version: "hello.example.com/v1",
            kind: GREETINGS.kind,
            namespace: &key.namespace,
            name: &key.name,
            uid: greeting.metadata.uid.as_deref().unwrap_or_default(),
        };
        self.recorder.normal(&about, "Greeted", &format!("greeted {}", greeting.spec.name)).await;
        Ok(Outcome::Done)
    }
}

/// Refuses a Greeting without a name.
struct NameNeeded;

impl Validate for NameNeeded {
    type Object = Greeting;

    async fn validate(&self, request: &AdmissionRequest<Greeting>) -> Verdict {
        match request.object.as_ref().is_some_and(|greeting| greeting.spec.name.is_empty()) {
            true => Verdict::invalid("spec.name: a greeting needs a name"),
            false => Verdict::allow(),
        }
    }
}

/// The place of one replica: its identity, where it listens, and how the API server finds its webhook.
pub struct Settings {
    /// The namespace of the Lease and of the Secret with the certificates.
    pub namespace: String,
    /// The identity of this replica.
    pub holder: String,
    /// The listener of the webhook server.
    pub webhook: TcpListener,
    /// The name or address of it on the certificate.
    pub webhook_name: String,
    /// `clientConfig` of the webhook: a `url`, or a `service`.
    pub client_config: Value,
    /// The listener of `/readyz` and `/metrics`.
    pub health: TcpListener,
}

/// Runs one replica until a stop is requested.
pub async fn run(client: Client, settings: Settings, shutdown: Shutdown) -> Result<(), Box<dyn Error>> {
    let Settings { namespace, holder, webhook, webhook_name, client_config, health: health_listener } =
        settings;
    CrdInstaller::new(client.clone(), NAME).revision(1).install(&[crd()]).await?;
    let rule = json!({"apiGroups": [GREETINGS.group], "apiVersions": ["v1"], "resources": [GREETINGS.plural], "operations": ["CREATE", "UPDATE"]});
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": WEBHOOKS.kind, "metadata": {"name": NAME},
        "webhooks": [{
            "name": "greetings.hello.example.com", "rules": [rule], "clientConfig": client_config,
            "admissionReviewVersions": ["v1"], "sideEffects": "None",
        }],
    });
    let webhooks = Objects::new(&client, &WEBHOOKS.resource(), None);
    webhooks.apply::<IgnoredAny>(NAME, &Apply::new(NAME).force(), &configuration).await?;

    let certificate = ManagedCertificate::new(client.clone(), &namespace, "greeter-webhook", [webhook_name])
        .inject_into(CaTarget::validating(NAME));
    let (health, leadership, mut registry) = (Health::default(), Leadership::default(), Registry::default());
    let (served, candidate, metrics) =
        (certificate.served(), leadership.clone(), Metrics::register(&mut registry));
    health.ready("webhook-certificate", move || served.check());
    health.live("leader-election", move || candidate.check());
    leadership.register(NAME, &mut registry);

    // All replicas answer the webhook; one of them greets.
    let hooks =
        WebhookServer::new().validating("/validate", NameNeeded).run(webhook, certificate, shutdown.clone());
    let (name, informers) = (NAME.to_owned(), SharedInformers::new(client.clone()));
    let lease = Lease { client: client.clone(), namespace, name, holder, timing: Timing::default() };
    let leading = leadership.lead(lease, shutdown.clone(), |term| {
        let greeter = Greeter { client: client.clone(), recorder: Recorder::new(client.clone(), NAME) };
        let greeter = Controller::new(NAME, greeter)
            .watch::<Greeting, _>(&informers, ListWatch::all(GREETINGS), |delta| [delta.key.clone()])
            .fair_by(|key| key.namespace.clone())
            .workers(2);
        metrics.show(NAME, Run::metrics(&greeter));
        greeter.run(term.stop)
    });
    let health = HealthServer::new(health).metrics(registry).run(health_listener, shutdown.clone());
    tokio::select! {
        (hooks, leading, ()) = async { tokio::join!(hooks, leading, health) } => {
            hooks?;
            Ok(leading?)
        }
        failure = informers.failed() => Err(failure.into()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let webhook = TcpListener::bind("127.0.0.1:9443").await?;
    let settings = Settings {
        namespace: "default".to_owned(),
        holder: format!("greeter-{}", std::process::id()),
        client_config: json!({"url": "https://127.0.0.1:9443/validate"}),
        webhook,
        webhook_name: "127.0.0.1".to_owned(),
        health: TcpListener::bind("127.0.0.1:9080").await?,
    };
    let (client, shutdown) = (kubeconfig_file(None, None).await?, Shutdown::new());
    let mut signals = process::shutdown::signals()?;
    let stop = async {
        signals.received().await;
        shutdown.request();
        Ok(())
    };
    tokio::try_join!(run(client, settings, shutdown.clone()), stop)?;
    Ok(())
}
