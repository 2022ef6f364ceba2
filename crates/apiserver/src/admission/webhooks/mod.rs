//! `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`: send AdmissionReviews to configured webhooks.
//!
//! Informers cache the configurations compiled. The webhooks of a resource are looked up in an index, not searched per
//! request.

mod audit_annotations;
mod hook;
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

use audit_annotations::AuditAnnotations;
use hook::Hook;
use review::ReviewResponse;

use super::informers::{CachedObjects, InformerCache, PluginInformer};
use super::plugins::policies::equivalents;
use super::plugins::policies::policy_request::{PolicyRequest, target};
use super::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::{Object, Registry, Served};
use crate::verbs::{metadata_mut, text};
use crate::webhook::Services;

const GROUP: &str = "admissionregistration.k8s.io";
/// Webhook configurations and policies are exempt: an unreachable webhook could not be removed otherwise.
const EXEMPT: [&str; 6] = [
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// The mutating or the validating webhooks.
pub(super) struct Webhooks {
    is_mutating: bool,
    configurations: Arc<InformerCache<Vec<Arc<Hook>>>>,
    index: RwLock<Arc<WebhookIndex>>,
}

/// A webhook whose rules match a resource.
struct MatchedWebhook {
    hook: Arc<Hook>,
    /// The type in which the webhook gets the objects.
    served: Arc<Served>,
    /// Its index in the order of execution.
    index: usize,
}

/// The webhooks by resource, for one state of configurations and resource types. Filled on demand.
#[derive(Default)]
struct WebhookIndex {
    configurations: CachedObjects<Vec<Arc<Hook>>>,
    registry: Arc<Registry>,
    found: Mutex<HashMap<RuleKey, Arc<[MatchedWebhook]>>>,
}

/// The index key: type, resource, subresource, operation.
type RuleKey = (u32, Resource, String, Operation);

/// The data of one call.
pub(super) struct WebhookCall<'a> {
    /// The type of the resource.
    served: &'a Served,
    /// The type of the object.
    shown: &'a Served,
    object: Value,
    old: Value,
}

/// The reason why a webhook did not admit a request.
enum WebhookFailure {
    /// The call failed, or the response is invalid.
    Failed(String),
    /// The webhook denied the request, or its patch cannot be applied.
    Decided(Error),
}

impl Webhooks {
    /// `users` has the operator's credentials for webhooks.
    pub fn new(is_mutating: bool, services: &Services, users: Users) -> Self {
        let plural = if is_mutating { EXEMPT[1] } else { EXEMPT[0] };
        let services = services.clone();
        let read =
            move |key: &ObjectKey, object: Object| Some(hook::read(&key.name, &object, &services, &users));
        let configurations = InformerCache::new(Resource::new(GROUP, plural), read);
        Self { is_mutating, configurations, index: RwLock::default() }
    }

    pub fn informer(&self) -> Arc<dyn PluginInformer> {
        self.configurations.clone()
    }

    /// The webhooks whose rules match a request, in their order.
    fn find(&self, request: &AdmissionAttributes<'_>) -> Option<Arc<[MatchedWebhook]>> {
        let configurations = self.configurations.of("")?;
        let registry = request.call.api.registry();
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner).clone();
        let is_current =
            Arc::ptr_eq(&index.configurations, &configurations) && Arc::ptr_eq(&index.registry, &registry);
        let index = if is_current {
            index
        } else {
            let fresh = Arc::new(WebhookIndex { configurations, registry, found: Mutex::default() });
            *self.index.write().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
            fresh
        };
        let of = &request.call.resource_type;
        let key = (of.view, of.resource.clone(), request.subresource().to_owned(), request.operation);
        let mut found = index.found.lock().unwrap_or_else(PoisonError::into_inner);
        let found = found.entry(key).or_insert_with(|| matching(&index.configurations, request).into());
        (!found.is_empty()).then(|| found.clone())
    }
}

/// Evaluates the rules of all webhooks for a resource.
fn matching(
    configurations: &CachedObjects<Vec<Arc<Hook>>>,
    request: &AdmissionAttributes<'_>,
) -> Vec<MatchedWebhook> {
    let of = &request.call.resource_type;
    let others = equivalents::equivalents(request);
    let named: Vec<MatchedResource<'_>> =
        others.iter().map(|other| equivalents::matched_resource(other)).collect();
    let target = target(request, &named);
    let hooks = configurations.values().flat_map(|hooks| hooks.iter()).enumerate();
    let found = hooks.filter_map(|(index, hook)| {
        let served = match hook.criteria.rules(&target) {
            Matched::No => return None,
            Matched::Named => of,
            Matched::Equivalent(at) => others.get(at)?,
        };
        Some(MatchedWebhook { hook: hook.clone(), served: served.clone(), index })
    });
    found.collect()
}

impl Plugin for Webhooks {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let of = target.resource_type;
        let is_exempt = of.group == GROUP && EXEMPT.contains(&of.plural.as_str());
        if self.is_mutating { Phases::mutating(!is_exempt) } else { Phases::validating(!is_exempt) }
    }

    fn connects(&self) -> bool {
        true
    }

    fn admit<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        match self.find(request) {
            Some(found) => PluginResult::later(mutate(request, found, object)),
            None => PluginResult::OK,
        }
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        match self.find(request) {
            Some(found) => PluginResult::later(validate(request, found, object)),
            None => PluginResult::OK,
        }
    }
}

/// Calls one webhook after the other; each gets the object of the one before.
async fn mutate(
    request: &AdmissionAttributes<'_>,
    found: Arc<[MatchedWebhook]>,
    mut object: Option<&mut Object>,
) -> Result<(), Error> {
    let policy_request = PolicyRequest::new(request, Vec::new());
    if request.is_again() && request.has_changed_since(object.as_deref()) {
        request.recall_all();
    }
    for MatchedWebhook { hook, served, index } in found.iter() {
        if !is_called(&policy_request, hook, served, object.as_deref()).await? {
            continue;
        }
        if request.is_again() && !request.is_recalled(&hook.id) {
            continue;
        }
        let webhook_call = ask(request, served, object.as_deref(), false).await?;
        let annotations = AuditAnnotations { request, hook, index: *index };
        match call(request, hook, &webhook_call, true).await {
            Ok(answer) => {
                let applied = match &answer.patch {
                    Some(patch) => apply(request, hook, webhook_call, patch, object.as_deref_mut()).await,
                    None => Ok(false),
                };
                annotations.mutated(applied == Ok(true));
                if let (Ok(_), Some(patch)) = (&applied, &answer.patch) {
                    annotations.patched(patch);
                }
                if applied? {
                    request.recall_all();
                    request.note_change();
                }
            }
            Err(refused) => {
                annotations.mutated(false);
                pass(hook, refused, || annotations.failed_open("mutation"))?;
            }
        }
        if hook.is_reinvoked {
            request.note_call(&hook.id);
        }
    }
    request.note_outcome(object.as_deref());
    Ok(())
}

/// Calls all webhooks concurrently.
async fn validate(
    request: &AdmissionAttributes<'_>,
    found: Arc<[MatchedWebhook]>,
    object: Option<&Object>,
) -> Result<(), Error> {
    let policy_request = PolicyRequest::new(request, Vec::new());
    let mut called = Vec::new();
    for MatchedWebhook { hook, served, index } in found.iter() {
        if is_called(&policy_request, hook, served, object).await? {
            called.push((
                AuditAnnotations { request, hook, index: *index },
                ask(request, served, object, true).await?,
            ));
        }
    }
    let answers = called.iter().map(|(annotations, webhook_call)| async move {
        match call(request, annotations.hook, webhook_call, false).await {
            Ok(_) => Ok(()),
            Err(refused) => pass(annotations.hook, refused, || annotations.failed_open("validating")),
        }
    });
    join_all(answers).await.into_iter().collect()
}

/// Evaluates the selectors and match conditions of a webhook for a request.
async fn is_called(
    policy_request: &PolicyRequest<'_, '_>,
    hook: &Hook,
    served: &Arc<Served>,
    object: Option<&Object>,
) -> Result<bool, Error> {
    let request = policy_request.request;
    if hook.criteria.selects_namespaces() && !policy_request.is_outside_namespaces() {
        let labels = namespace_labels(policy_request, object).await?;
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
    let webhook_call = ask(request, served, object, false).await?;
    let input = Input {
        object: webhook_call.object.as_object(),
        old_object: webhook_call.old.as_object(),
        request: &policy_request.request_value(served),
        namespace: None,
        params: None,
        authorizer: &policy_request.authorizer,
        resource_check: &policy_request.resource_check,
    };
    let held = hook.conditions.hold_for_webhook(&input, hook.is_optional);
    held.map_err(|message| request.forbidden(object, message))
}

/// The labels for the namespace selector. A Namespace that is written is matched by its new labels.
async fn namespace_labels<'f>(
    policy_request: &'f PolicyRequest<'_, '_>,
    object: Option<&'f Object>,
) -> Result<Option<&'f Object>, Error> {
    let request = policy_request.request;
    let is_namespace = request.call.resource_type.is_namespace() && request.subresource().is_empty();
    let namespace = match object.filter(|_| is_namespace) {
        Some(written) => written,
        None => policy_request.namespace_object().await.ok_or_else(|| Error::NotFound {
            group: String::new(),
            resource: "namespaces".to_owned(),
            name: request.namespace().to_owned(),
        })?,
    };
    Ok(namespace.get("metadata").and_then(|metadata| metadata.get("labels")).and_then(Value::as_object))
}

/// Converts the objects to the version that a webhook gets.
async fn ask<'a>(
    request: &'a AdmissionAttributes<'_>,
    served: &'a Served,
    object: Option<&Object>,
    is_final: bool,
) -> Result<WebhookCall<'a>, Error> {
    // A subresource object has one type in every version of its parent.
    let is_part = !std::ptr::eq(request.shown, &*request.call.resource_type);
    let shown = if is_part { request.shown } else { served };
    let mut webhook_call = WebhookCall { served, shown, object: Value::Null, old: Value::Null };
    if let Some(object) = object {
        let mut object = object.clone();
        version::set_revision(request, &mut object, is_final);
        if let Some(managers) = request.managers() {
            metadata_mut(&mut object).insert("managedFields".to_owned(), managers);
        }
        webhook_call.object = Value::Object(equivalents::to_equivalent(request.shown, shown, &object).await?);
    }
    if let Some(old) = request.whole_old().await? {
        webhook_call.old = Value::Object(equivalents::to_equivalent(request.shown, shown, &old).await?);
    }
    Ok(webhook_call)
}

async fn call(
    request: &AdmissionAttributes<'_>,
    hook: &Hook,
    webhook_call: &WebhookCall<'_>,
    is_mutating: bool,
) -> Result<ReviewResponse, WebhookFailure> {
    if request.dry_run && hook.has_side_effects {
        let message = format!("admission webhook {} does not support dry run", quote(&hook.name));
        return Err(WebhookFailure::Decided(Error::BadRequest { message }));
    }
    let Some(version) = hook.review else {
        let message = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
        return Err(WebhookFailure::Failed(message.to_owned()));
    };
    let webhook = hook.webhook.as_ref();
    let webhook =
        webhook.map_err(|error| WebhookFailure::Failed(format!("could not get REST client: {error}")))?;
    let uid = uuid::Uuid::new_v4().to_string();
    let document = review::document(request, webhook_call, version, &uid).to_string();
    let answer = webhook.post(document.into(), request.call.deadline).await;
    let answer =
        answer.map_err(|error| WebhookFailure::Failed(format!("failed to call webhook: {error}")))?;
    let answer = review::read(&answer, &uid, version, is_mutating).map_err(WebhookFailure::Failed)?;
    for (key, value) in &answer.annotations {
        let key = format!("{}/{key}", hook.name);
        // Kubernetes drops annotations whose keys are invalid.
        if names::qualified_name(&key).is_empty() {
            request.annotate(&key, || value.as_str().unwrap_or_default().to_owned());
        }
    }
    answer.warnings.iter().for_each(|warning| request.warn(warning));
    if answer.allowed {
        Ok(answer)
    } else {
        Err(WebhookFailure::Decided(review::denied(&hook.name, &answer.result)))
    }
}

/// Applies the failure policy.
fn pass(hook: &Hook, refused: WebhookFailure, note: impl FnOnce()) -> Result<(), Error> {
    match refused {
        WebhookFailure::Decided(error) => Err(error),
        WebhookFailure::Failed(reason) if hook.is_optional => {
            tracing::warn!(
                webhook = hook.name,
                reason,
                "cannot call an admission webhook; admitting the request by its failure policy"
            );
            note();
            Ok(())
        }
        WebhookFailure::Failed(reason) => {
            Err(Error::internal(format!("failed calling webhook {}: {reason}", quote(&hook.name))))
        }
    }
}

/// Applies the patch of a webhook; true if the object changed.
async fn apply(
    request: &AdmissionAttributes<'_>,
    hook: &Hook,
    webhook_call: WebhookCall<'_>,
    patch: &Value,
    object: Option<&mut Object>,
) -> Result<bool, Error> {
    let Some(object) = object else {
        return Err(Error::internal(format!(
            "admission webhook {} attempted to modify the object, which is not supported for this operation",
            quote(&hook.name)
        )));
    };
    let mut patched = webhook_call.object;
    apply_with_reason(&mut patched, patch).map_err(|failure| Error::internal(failure.to_string()))?;
    let mut taken = version::taken(request, patched, webhook_call.shown).await?;
    request.take_managers(&mut taken);
    if text(object, "resourceVersion").is_empty() {
        metadata_mut(&mut taken).remove("resourceVersion");
    }
    let is_changed = taken != *object;
    *object = taken;
    Ok(is_changed)
}
