//! `ResourceQuota`: limits the resources of a namespace.
//!
//! The usage of an object is added to the quota in the transaction that writes the object, so concurrent writes cannot exceed
//! it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use model::error::Error;
use model::object::present;
use model::{Encoded, ObjectKey, Resource};
use quota::{Counted, Quota, charge};
use store::{Precondition, Stored, Write};
use tokio::sync::Mutex as Turn;

use crate::admission::informers::{InformerCache, PluginInformer};
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::registry::Object;
use crate::verbs::{FieldManager, attributes, now, store_error, time};

/// Resources that are never counted; most are not stored.
const IGNORED: [(&str, &str); 3] = [("", "bindings"), ("", "componentstatuses"), ("", "events")];

pub(super) struct ResourceQuota {
    /// The names of the quotas, by namespace.
    quotas: Arc<InformerCache<()>>,
    /// Serializes writers of one namespace, which would conflict on the quota otherwise.
    turns: Mutex<HashMap<String, Weak<Turn<()>>>>,
}

impl ResourceQuota {
    pub fn new() -> Self {
        let quotas =
            InformerCache::new(Resource::new("", "resourcequotas"), |_: &ObjectKey, _: Object| Some(()));
        Self { quotas, turns: Mutex::default() }
    }

    pub fn informer(&self) -> Arc<dyn PluginInformer> {
        self.quotas.clone()
    }

    fn turn(&self, namespace: &str) -> Arc<Turn<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(namespace).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(Turn::new(()));
        turns.insert(namespace.to_owned(), Arc::downgrade(&turn));
        turn
    }
}

impl Plugin for ResourceQuota {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let of = target.resource_type;
        let is_counted =
            of.namespaced && of.is_stored() && !IGNORED.contains(&(of.group.as_str(), of.plural.as_str()));
        let is_charged = match (target.operation, target.subresource) {
            (Operation::Create, "") => true,
            (Operation::Update, "") => {
                ["pods", "services", "persistentvolumeclaims"].contains(&of.plural.as_str())
            }
            (Operation::Update, "resize") => true,
            (Operation::Update, "status") => target.is("", "persistentvolumeclaims", "status"),
            _ => false,
        };
        Phases::validating(is_counted && is_charged)
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        match (object, self.quotas.of(request.namespace())) {
            (Some(object), Some(known)) if concerns(request, object) => {
                let names: Vec<String> = known.keys().cloned().collect();
                PluginResult::later(self.check(request, object, names))
            }
            _ => PluginResult::OK,
        }
    }
}

/// An update of a Pod matters only if its scope changes, for instance by `activeDeadlineSeconds`.
fn concerns(request: &AdmissionAttributes<'_>, object: &Object) -> bool {
    let ends = |pod: &Object| present(pod, &["spec", "activeDeadlineSeconds"]).is_some();
    match request.old {
        Some(old) if request.target().is_pod() => ends(old) != ends(object),
        _ => true,
    }
}

impl ResourceQuota {
    async fn check(
        &self,
        request: &AdmissionAttributes<'_>,
        object: &Object,
        names: Vec<String>,
    ) -> Result<(), Error> {
        let turn = self.turn(request.namespace()).lock_owned().await;
        let store = &request.call.api.store;
        let mut heads = Vec::new();
        for name in &names {
            let key = ObjectKey::new(&Resource::new("", "resourcequotas"), request.namespace(), name);
            heads.extend(store.get(&key, None).await.map_err(store_error)?);
        }
        let unreadable = |_| Error::internal("cannot parse a stored ResourceQuota");
        let objects: Result<Vec<Object>, Error> =
            heads.iter().map(|head| serde_json::from_slice(&head.value).map_err(unreadable)).collect();
        let objects = objects?;
        let quotas: Vec<Quota<'_>> = objects.iter().map(Quota::read).collect();
        let of = &request.call.resource_type;
        let counted = Counted { group: &of.group, plural: &of.plural, now: now().as_second() };
        let is_status = request.subresource() == "status";
        let charged = charge(&quotas, counted, object, request.old, is_status)
            .map_err(|message| request.forbidden(Some(object), message))?;
        if charged.is_empty() || request.dry_run {
            return Ok(());
        }
        for (at, quota) in charged {
            request.write_together(update(request, &heads[at], &objects[at], quota)?);
        }
        request.hold(Box::new(turn));
        Ok(())
    }
}

fn update(
    request: &AdmissionAttributes<'_>,
    head: &Stored,
    old: &Object,
    mut quota: Object,
) -> Result<Write, Error> {
    let api = &request.call.api;
    let registry = api.registry();
    let of = registry.find("", "v1", "resourcequotas").ok_or(Error::PathNotFound)?;
    let tracked = FieldManager::by_server(api, of, "status", time(now())).track(Some(old), &mut quota);
    Ok(Write::Update {
        key: head.key.clone(),
        expect: Precondition { revision: Some(head.revision), uid: None },
        attributes: attributes(of, &quota),
        body: Encoded::managed(&quota, tracked.json.as_deref()),
    })
}
