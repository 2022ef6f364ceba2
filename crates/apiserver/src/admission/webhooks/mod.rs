//! `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`: others are asked what they think of a write.
//!
//! Configurations are followed from the log and compiled when they change. Which webhooks could be about a resource is looked up,
//! not searched, for each request.

mod hook;
mod notes;
mod review;
mod version;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use futures::future::join_all;
use kinds::admission::kubeconfig::Users;
use kinds::patch::json::apply_with_reason;
use kinds::policies::{Input, Matched, MatchedResource};
use model::error::{Error, quote};
use model::{ObjectKey, Resource, names};
use serde_json::Value;

use hook::Hook;
use notes::Notes;
use review::Answer;

use super::follow::{Follows, Known, Mirror};
use super::plugins::policies::asking::{Facts, target};
use super::plugins::policies::view;
use super::{Operation, Phases, Plugin, Request, Step, Target};
use crate::registry::{Object, Registry, Served};
use crate::verbs::{metadata_mut, text};
use crate::webhook::Services;

const GROUP: &str = "admissionregistration.k8s.io";
/// Nobody is asked about these: who could not be reached any more could not be removed either.
const EXEMPT: [&str; 6] = [
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// The webhooks of one of the two kinds.
pub(super) struct Webhooks {
    is_mutating: bool,
    configurations: Arc<Mirror<Vec<Arc<Hook>>>>,
    index: RwLock<Arc<Index>>,
}

/// A webhook whose rules are about a resource.
struct Found {
    hook: Arc<Hook>,
    /// The type in which it wants to see the objects.
    served: Arc<Served>,
    /// Its place among all webhooks.
    place: usize,
}

/// Which webhooks are about what, as of some configurations and some resource types. It fills as it is asked.
#[derive(Default)]
struct Index {
    configurations: Known<Vec<Arc<Hook>>>,
    registry: Arc<Registry>,
    found: Mutex<HashMap<Place, Arc<[Found]>>>,
}

/// What rules look at: a type, a part of it, an operation.
type Place = (u32, Resource, String, Operation);

/// One question to a webhook.
pub(super) struct Asked<'a> {
    /// The type of the resource.
    served: &'a Served,
    /// The type of the object.
    shown: &'a Served,
    object: Value,
    old: Value,
}

/// Why a webhook did not let a request pass.
enum Refused {
    /// It could not be asked, or its answer is none.
    Failed(String),
    /// It said no, or what it said cannot be done.
    Decided(Error),
}

impl Webhooks {
    /// With the credentials with which an operator wants webhooks to be called.
    pub fn new(is_mutating: bool, services: &Services, users: Users) -> Self {
        let plural = if is_mutating { EXEMPT[1] } else { EXEMPT[0] };
        let services = services.clone();
        let read =
            move |key: &ObjectKey, object: Object| Some(hook::read(&key.name, &object, &services, &users));
        let configurations = Mirror::new(Resource::new(GROUP, plural), read);
        Self { is_mutating, configurations, index: RwLock::default() }
    }

    pub fn followed(&self) -> Arc<dyn Follows> {
        self.configurations.clone()
    }

    /// The webhooks whose rules are about a request, in their order.
    fn find(&self, request: &Request<'_>) -> Option<Arc<[Found]>> {
        let configurations = self.configurations.of("")?;
        let registry = request.call.api.registry();
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner).clone();
        let is_current =
            Arc::ptr_eq(&index.configurations, &configurations) && Arc::ptr_eq(&index.registry, &registry);
        let index = if is_current {
            index
        } else {
            let fresh = Arc::new(Index { configurations, registry, found: Mutex::default() });
            *self.index.write().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
            fresh
        };
        let of = &request.call.resource_type;
        let place = (of.view, of.resource.clone(), request.subresource().to_owned(), request.operation);
        let mut found = index.found.lock().unwrap_or_else(PoisonError::into_inner);
        let found = found.entry(place).or_insert_with(|| matching(&index.configurations, request).into());
        (!found.is_empty()).then(|| found.clone())
    }
}

/// The webhooks whose rules are about a resource.
fn matching(configurations: &Known<Vec<Arc<Hook>>>, request: &Request<'_>) -> Vec<Found> {
    let of = &request.call.resource_type;
    let others = view::equivalents(request);
    let named: Vec<MatchedResource<'_>> = others.iter().map(|other| view::named(other)).collect();
    let target = target(request, &named);
    let hooks = configurations.values().flat_map(|hooks| hooks.iter()).enumerate();
    let found = hooks.filter_map(|(place, hook)| {
        let served = match hook.criteria.rules(&target) {
            Matched::No => return None,
            Matched::Named => of,
            Matched::Equivalent(at) => others.get(at)?,
        };
        Some(Found { hook: hook.clone(), served: served.clone(), place })
    });
    found.collect()
}

impl Plugin for Webhooks {
    fn handles(&self, target: Target<'_>) -> Phases {
        let of = target.resource_type;
        let is_exempt = of.group == GROUP && EXEMPT.contains(&of.plural.as_str());
        if self.is_mutating { Phases::mutating(!is_exempt) } else { Phases::validating(!is_exempt) }
    }

    fn connects(&self) -> bool {
        true
    }

    fn admit<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a mut Object>) -> Step<'a> {
        match self.find(request) {
            Some(found) => Step::later(mutate(request, found, object)),
            None => Step::OK,
        }
    }

    fn validate<'a>(&'a self, request: &'a Request<'_>, object: Option<&'a Object>) -> Step<'a> {
        match self.find(request) {
            Some(found) => Step::later(validate(request, found, object)),
            None => Step::OK,
        }
    }
}

/// Asks one webhook after the other; each sees what those before it made of the object.
async fn mutate(
    request: &Request<'_>,
    found: Arc<[Found]>,
    mut object: Option<&mut Object>,
) -> Result<(), Error> {
    let facts = Facts::new(request, Vec::new());
    if request.is_again() && request.has_changed_since(object.as_deref()) {
        request.recall_all();
    }
    for Found { hook, served, place } in found.iter() {
        if !is_called(&facts, hook, served, object.as_deref()).await? {
            continue;
        }
        if request.is_again() && !request.is_recalled(&hook.id) {
            continue;
        }
        let asked = ask(request, served, object.as_deref(), false).await?;
        let notes = Notes { request, hook, place: *place };
        match call(request, hook, &asked, true).await {
            Ok(answer) => {
                let applied = match &answer.patch {
                    Some(patch) => apply(request, hook, asked, patch, object.as_deref_mut()).await,
                    None => Ok(false),
                };
                notes.mutated(applied == Ok(true));
                if let (Ok(_), Some(patch)) = (&applied, &answer.patch) {
                    notes.patched(patch);
                }
                if applied? {
                    request.recall_all();
                    request.note_change();
                }
            }
            Err(refused) => {
                notes.mutated(false);
                pass(hook, refused, || notes.failed_open("mutation"))?;
            }
        }
        if hook.is_reinvoked {
            request.note_call(&hook.id);
        }
    }
    request.note_outcome(object.as_deref());
    Ok(())
}

/// Asks all at once.
async fn validate(request: &Request<'_>, found: Arc<[Found]>, object: Option<&Object>) -> Result<(), Error> {
    let facts = Facts::new(request, Vec::new());
    let mut called = Vec::new();
    for Found { hook, served, place } in found.iter() {
        if is_called(&facts, hook, served, object).await? {
            called.push((Notes { request, hook, place: *place }, ask(request, served, object, true).await?));
        }
    }
    let answers = called.iter().map(|(notes, asked)| async move {
        match call(request, notes.hook, asked, false).await {
            Ok(_) => Ok(()),
            Err(refused) => pass(notes.hook, refused, || notes.failed_open("validating")),
        }
    });
    join_all(answers).await.into_iter().collect()
}

/// Whether a webhook whose rules are about the resource is about this request, too.
async fn is_called(
    facts: &Facts<'_, '_>,
    hook: &Hook,
    served: &Arc<Served>,
    object: Option<&Object>,
) -> Result<bool, Error> {
    let request = facts.request;
    if hook.criteria.selects_namespaces() && !facts.is_outside_namespaces() {
        let labels = namespace_labels(facts, object).await?;
        if !hook.criteria.selects_namespace(labels) {
            return Ok(false);
        }
    }
    if !hook.criteria.selects_object(object, request.old) {
        return Ok(false);
    }
    if hook.conditions.is_empty() {
        return Ok(true);
    }
    let asked = ask(request, served, object, false).await?;
    let input = Input {
        object: asked.object.as_object(),
        old_object: asked.old.as_object(),
        request: &facts.request_value(served),
        namespace: None,
        params: None,
        authorizer: &facts.authorizer,
        resource_check: &facts.resource_check,
    };
    let held = hook.conditions.hold_for_webhook(&input, hook.is_optional);
    held.map_err(|message| request.forbidden(object, message))
}

/// The labels by which namespaces are selected. A namespace that is written has those that it shall have.
async fn namespace_labels<'f>(
    facts: &'f Facts<'_, '_>,
    object: Option<&'f Object>,
) -> Result<Option<&'f Object>, Error> {
    let request = facts.request;
    let is_namespace = request.call.resource_type.is_namespace() && request.subresource().is_empty();
    let namespace = match object.filter(|_| is_namespace) {
        Some(written) => written,
        None => facts.namespace_object().await.ok_or_else(|| Error::NotFound {
            group: String::new(),
            resource: "namespaces".to_owned(),
            name: request.namespace().to_owned(),
        })?,
    };
    Ok(namespace.get("metadata").and_then(|metadata| metadata.get("labels")).and_then(Value::as_object))
}

/// What a webhook gets to see.
async fn ask<'a>(
    request: &'a Request<'_>,
    served: &'a Served,
    object: Option<&Object>,
    is_final: bool,
) -> Result<Asked<'a>, Error> {
    // A part of an object has a type of its own, of which there is one version.
    let is_part = !std::ptr::eq(request.shown, &*request.call.resource_type);
    let shown = if is_part { request.shown } else { served };
    let mut asked = Asked { served, shown, object: Value::Null, old: Value::Null };
    if let Some(object) = object {
        let mut object = object.clone();
        version::set_revision(request, &mut object, is_final);
        if let Some(managers) = request.managers() {
            metadata_mut(&mut object).insert("managedFields".to_owned(), managers);
        }
        asked.object = Value::Object(view::shown(request.shown, shown, &object).await?);
    }
    if let Some(old) = request.whole_old().await? {
        asked.old = Value::Object(view::shown(request.shown, shown, &old).await?);
    }
    Ok(asked)
}

async fn call(
    request: &Request<'_>,
    hook: &Hook,
    asked: &Asked<'_>,
    is_mutating: bool,
) -> Result<Answer, Refused> {
    if request.dry_run && hook.has_side_effects {
        let message = format!("admission webhook {} does not support dry run", quote(&hook.name));
        return Err(Refused::Decided(Error::BadRequest { message }));
    }
    let Some(version) = hook.review else {
        let message = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        return Err(Refused::Failed(message.to_owned()));
    };
    let webhook = hook.webhook.as_ref();
    let webhook = webhook.map_err(|error| Refused::Failed(format!("could not get REST client: {error}")))?;
    let uid = uuid::Uuid::new_v4().to_string();
    let document = review::document(request, asked, version, &uid).to_string();
    let answer = webhook.post(document.into(), request.call.deadline).await;
    let answer = answer.map_err(|error| Refused::Failed(format!("failed to call webhook: {error}")))?;
    let answer = review::read(&answer, &uid, version, is_mutating).map_err(Refused::Failed)?;
    for (key, value) in &answer.annotations {
        let key = format!("{}/{key}", hook.name);
        // What is no name of an annotation is none.
        if names::qualified_name(&key).is_empty() {
            request.annotate(&key, || value.as_str().unwrap_or_default().to_owned());
        }
    }
    answer.warnings.iter().for_each(|warning| request.warn(warning));
    if answer.allowed {
        Ok(answer)
    } else {
        Err(Refused::Decided(review::denied(&hook.name, &answer.result)))
    }
}

/// A webhook that cannot be asked lets requests pass, or does not.
fn pass(hook: &Hook, refused: Refused, note: impl FnOnce()) -> Result<(), Error> {
    match refused {
        Refused::Decided(error) => Err(error),
        Refused::Failed(reason) if hook.is_optional => {
            tracing::warn!(webhook = hook.name, reason, "a webhook could not be asked; the request goes on");
            note();
            Ok(())
        }
        Refused::Failed(reason) => {
            Err(Error::internal(format!("failed calling webhook {}: {reason}", quote(&hook.name))))
        }
    }
}

/// Makes of the object what a webhook says; true if that is something else.
async fn apply(
    request: &Request<'_>,
    hook: &Hook,
    asked: Asked<'_>,
    patch: &Value,
    object: Option<&mut Object>,
) -> Result<bool, Error> {
    let Some(object) = object else {
        return Err(Error::internal(format!(
            "admission webhook {} attempted to modify the object, which is not supported for this operation",
            quote(&hook.name)
        )));
    };
    let mut patched = asked.object;
    apply_with_reason(&mut patched, patch).map_err(|failure| Error::internal(failure.to_string()))?;
    let mut taken = version::taken(request, patched, asked.shown).await?;
    request.take_managers(&mut taken);
    if text(object, "resourceVersion").is_empty() {
        metadata_mut(&mut taken).remove("resourceVersion");
    }
    let is_changed = taken != *object;
    *object = taken;
    Ok(is_changed)
}
