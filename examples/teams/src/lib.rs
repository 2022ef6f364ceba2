//! Teams: a complete product on Orlop.
//!
//! A Team is a kind of its own. A reconciler gives each Team a Namespace of its name, which goes with it; a webhook refuses Teams that would
//! take a Namespace of the system; a route lists the Teams that the caller may see, in one line each. [`TEAMS_ROLE`] is the line of the product
//! in the table of a binary: `orlop up` runs it in the process of the server, `orlop teams --kubeconfig FILE` against any Kubernetes API.

use clap::{ArgMatches, Args, FromArgMatches};
use controller::conditions::{self, ConditionStatus};
use controller::webhook::certificates::{CaTarget, ManagedCertificate};
use controller::webhook::{AdmissionRequest, Validate, Verdict, WebhookServer};
use controller::{
    Apply, Context, Controller, ListWatch, ObjectKey, Objects, Outcome, Reconciler, ResourceKind,
    SharedInformers, owners,
};
use http::{Method, Response, StatusCode};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Client;
use kube::api::ListParams;
use mount::{Body, Call, Mount};
use role::{BoxError, Role, RoleContext, RoleDefinition};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The line of the product in the table of a binary.
pub const TEAMS_ROLE: RoleDefinition = RoleDefinition {
    name: NAME,
    about: "Give every Team a Namespace",
    flags: TeamsArgs::augment_args,
    configure: |matches: &ArgMatches| Ok(role(TeamsArgs::from_arg_matches(matches)?)),
};

const NAME: &str = "teams";
/// The Secret in `kube-system` with the certificates of the webhook server.
const SECRET: &str = "teams-webhook";
const TEAMS: ResourceKind =
    ResourceKind { group: "teams.example.com", version: "v1", kind: "Team", plural: "teams" };
const NAMESPACES: ResourceKind =
    ResourceKind { group: "", version: "v1", kind: "Namespace", plural: "namespaces" };
const WEBHOOKS: ResourceKind = ResourceKind {
    group: "admissionregistration.k8s.io",
    version: "v1",
    kind: "ValidatingWebhookConfiguration",
    plural: "validatingwebhookconfigurations",
};

/// The flags of the product.
#[derive(Args, Clone, Debug)]
pub struct TeamsArgs {
    /// Address of the webhook server, as the API server reaches it
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    teams_webhook_host: String,
}

/// The product: its CRD, its rights, its route and its start function.
fn role(args: TeamsArgs) -> Role {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let named = |mut rule: Value, name: &str| {
        rule["resourceNames"] = json!([name]);
        rule
    };
    Role::new(NAME, move |context| run(args.clone(), context))
        .crd(crd())
        .rule(rule(TEAMS.group, &["teams"], &["get", "list", "watch"]))
        .rule(rule(TEAMS.group, &["teams/status"], &["patch"]))
        .rule(rule("", &["namespaces"], &["get", "list", "watch", "create"]))
        // Of Secrets and webhook configurations only its own: the name of an object to create cannot be restricted.
        .rule(rule("", &["secrets"], &["create"]))
        .rule(named(rule("", &["secrets"], &["get", "list", "watch", "patch"]), SECRET))
        .rule(rule(WEBHOOKS.group, &[WEBHOOKS.plural], &["create"]))
        .rule(named(rule(WEBHOOKS.group, &[WEBHOOKS.plural], &["get", "list", "watch", "patch"]), NAME))
        .mount(Mount::new("/api/teams/v1", list_teams))
}

fn crd() -> Value {
    let spec = json!({"type": "object", "properties": {"lead": {"type": "string"}}});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "teams.teams.example.com"},
        "spec": {
            "group": TEAMS.group, "scope": "Cluster", "names": {"kind": TEAMS.kind, "plural": TEAMS.plural},
            "versions": [{
                "name": TEAMS.version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
                "additionalPrinterColumns": [{"name": "Lead", "type": "string", "jsonPath": ".spec.lead"}],
            }],
        },
    })
}

/// A Team. Only the fields that decisions depend on are parsed.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Team {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: TeamSpec,
    #[serde(default)]
    status: TeamStatus,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct TeamSpec {
    lead: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct TeamStatus {
    conditions: Vec<Condition>,
}

/// A Team with the Namespace of its name.
struct ObservedTeam {
    team: Team,
    namespace: Option<NamespaceView>,
}

#[derive(Clone, Deserialize)]
struct NamespaceView {
    metadata: ObjectMeta,
}

/// The decision about a Team.
#[derive(Debug, PartialEq)]
enum TeamStep {
    Keep,
    CreateNamespace,
    SetConditions(Vec<Condition>),
}

struct TeamReconciler {
    client: Client,
}

impl Reconciler for TeamReconciler {
    type Key = ObjectKey;
    type Observed = ObservedTeam;
    type Step = TeamStep;

    async fn observe(
        &self,
        key: &ObjectKey,
        _: &Context<ObjectKey>,
    ) -> controller::Result<Option<ObservedTeam>> {
        let team = Objects::new(&self.client, &TEAMS.resource(), None).get(&key.name).await?;
        let namespace = Objects::new(&self.client, &NAMESPACES.resource(), None).get(&key.name).await?;
        Ok(team.map(|team| ObservedTeam { team, namespace }))
    }

    fn decide(observed: &ObservedTeam, now: Timestamp) -> TeamStep {
        let ObservedTeam { team, namespace } = observed;
        let Some(namespace) = namespace else { return TeamStep::CreateNamespace };
        let owner = owners::controller_of(&namespace.metadata).map(|owner| &owner.uid);
        let condition = match owner == team.metadata.uid.as_ref() {
            true => conditions::new(
                "Ready",
                ConditionStatus::True,
                "NamespaceCreated",
                "the Namespace exists",
                now,
            ),
            false => conditions::new(
                "Ready",
                ConditionStatus::False,
                "NamespaceTaken",
                "the Namespace is not the Team's",
                now,
            ),
        };
        let mut conditions = team.status.conditions.clone();
        match conditions::set(&mut conditions, condition) {
            true => TeamStep::SetConditions(conditions),
            false => TeamStep::Keep,
        }
    }

    async fn execute(
        &self,
        key: &ObjectKey,
        observed: ObservedTeam,
        step: TeamStep,
        _: &Context<ObjectKey>,
    ) -> controller::Result<Outcome> {
        let team = observed.team.metadata;
        match step {
            TeamStep::Keep => {}
            TeamStep::CreateNamespace => {
                let mut metadata = ObjectMeta { name: Some(key.name.clone()), ..ObjectMeta::default() };
                owners::set_controller(&mut metadata, &TEAMS.resource(), &team)
                    .expect("a Namespace without owners takes a cluster-scoped one from the server");
                // The event of the new Namespace brings the Team back.
                let namespaces = Objects::new(&self.client, &NAMESPACES.resource(), None);
                namespaces.create::<IgnoredAny>(&json!({"metadata": metadata})).await?;
            }
            TeamStep::SetConditions(conditions) => {
                // A precondition: a decision about one version is not executed on another.
                let patch = json!({
                    "metadata": {"resourceVersion": team.resource_version}, "status": {"conditions": conditions},
                });
                let teams = Objects::new(&self.client, &TEAMS.resource(), None);
                teams.merge_patch_subresource::<IgnoredAny>("status", &key.name, &patch).await?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// Refuses Teams that would take a Namespace of the system.
struct RefuseSystemNames;

impl Validate for RefuseSystemNames {
    type Object = Team;

    async fn validate(&self, request: &AdmissionRequest<Team>) -> Verdict {
        let metadata = request.object.as_ref().map(|team| &team.metadata);
        // A name that the server generates begins with `generateName`.
        let prefix = metadata.and_then(|metadata| metadata.name.as_ref().or(metadata.generate_name.as_ref()));
        match prefix.map(String::as_str) {
            Some("default") => Verdict::forbid("default is a Namespace of the system"),
            Some(name) if name.starts_with("kube-") => {
                Verdict::forbid("kube- is the prefix of system Namespaces")
            }
            _ => Verdict::allow(),
        }
    }
}

/// Answers `GET /api/teams/v1/teams`: the Teams that the caller may list, one line each.
async fn list_teams(call: Call) -> Response<Body> {
    let answer = |status, text: String| {
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = status;
        response
    };
    if (call.request.method(), call.path()) != (&Method::GET, "/teams") {
        return answer(StatusCode::NOT_FOUND, "no such path\n".to_owned());
    }
    let caller = match call.caller {
        Ok(caller) => caller,
        Err(reason) => return answer(StatusCode::UNAUTHORIZED, format!("{reason}\n")),
    };
    let teams = Objects::new(&Client::new(caller.client, "default"), &TEAMS.resource(), None);
    match teams.pages::<Team>(ListParams::default()).all().await {
        Ok(teams) => {
            let line =
                |team: Team| format!("{} {}\n", team.metadata.name.unwrap_or_default(), team.spec.lead);
            answer(StatusCode::OK, teams.into_iter().map(line).collect())
        }
        Err(controller::Error::Api(status)) => {
            // A refusal of the API server, such as 403, keeps its code.
            let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::BAD_GATEWAY);
            answer(code, format!("{}\n", status.message))
        }
        Err(_) => answer(StatusCode::BAD_GATEWAY, "the Teams cannot be listed\n".to_owned()),
    }
}

/// Runs the reconciler and the webhook until a stop is requested.
async fn run(args: TeamsArgs, context: RoleContext) -> Result<(), BoxError> {
    let RoleContext { client, shutdown, readiness, .. } = context;
    let host = args.teams_webhook_host;
    let listener = TcpListener::bind((host.as_str(), 0)).await?;
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": WEBHOOKS.kind, "metadata": {"name": NAME},
        "webhooks": [{
            "name": "teams.teams.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": format!("https://{}/validate", listener.local_addr()?)},
            "rules": [{"apiGroups": [TEAMS.group], "apiVersions": ["v1"], "resources": ["teams"], "operations": ["CREATE"]}],
        }],
    });
    let webhooks = Objects::new(&client, &WEBHOOKS.resource(), None);
    webhooks.apply::<IgnoredAny>(NAME, &Apply::new(NAME).force(), &configuration).await?;
    let certificate = ManagedCertificate::new(client.clone(), "kube-system", SECRET, [host])
        .inject_into(CaTarget::validating(NAME));
    let served = certificate.served();
    let webhook = WebhookServer::new().validating("/validate", RefuseSystemNames).run(
        listener,
        certificate,
        shutdown.clone(),
    );
    let informers = SharedInformers::new(client.clone());
    let reconciling = Controller::new(NAME, TeamReconciler { client })
        .watch::<Team, _>(&informers, ListWatch::all(TEAMS), |delta| [delta.key.clone()])
        .watch::<NamespaceView, _>(&informers, ListWatch::all(NAMESPACES), |delta| [delta.key.clone()])
        .run(shutdown);
    let ready = async {
        served.ready().await;
        readiness.ready();
    };
    tokio::select! {
        (webhook, (), ()) = async { tokio::join!(webhook, reconciling, ready) } => Ok(webhook?),
        failure = informers.failed() => Err(failure.into()),
    }
}
