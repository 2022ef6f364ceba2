//! The status controller of ValidatingAdmissionPolicies: type-checks their expressions.
//!
//! It runs in the server, because it needs the compiled types. It writes through the API as Kubernetes' controller does, with
//! that controller's service account.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http_body_util::Full;
use kinds::policies::{Kinds, Type, TypedKind, builtin_type, checked_status, custom_type, type_check};
use model::Resource;
use model::error::Error;
use process::Shutdown;
use serde_json::{Value, json};
use store::{Event, EventKind, Stored};
use tokio::sync::Notify;

use crate::api::ApiServer;
use crate::auth::{Connection, Identity};
use crate::informer::{Index, Informer, Position};
use crate::registry::{Object, Registry, ResourceType};

/// The service account of the controller.
const ACCOUNT: &str = "system:serviceaccount:kube-system:validatingadmissionpolicy-status-controller";
/// The field manager of the status.
const MANAGER: &str = "validatingadmissionpolicy-status";
const GROUP: &str = "admissionregistration.k8s.io";
const PLURAL: &str = "validatingadmissionpolicies";
/// Delay before a retry.
const PAUSE: Duration = Duration::from_millis(500);

/// Type-checks policies after each write, until shutdown.
pub async fn check_policies(api: ApiServer, shutdown: Shutdown) {
    let queue = PolicyQueue::default();
    let informer = Informer::new(Resource::new(GROUP, PLURAL), queue.clone(), Position::default());
    let following = async { informer.start_patiently(&api.store).await.await };
    tokio::select! {
        () = shutdown.requested() => {}
        () = following => {}
        () = work(&api, &queue) => {}
    }
}

async fn work(api: &ApiServer, queue: &PolicyQueue) {
    loop {
        let (name, policy) = queue.next().await;
        if let Err(error) = check(api, &policy).await {
            tracing::warn!(policy = name, %error, "cannot write the status of a ValidatingAdmissionPolicy; retrying");
            // A newer version of the policy takes precedence.
            queue.policies().entry(name).or_insert(policy);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The policies to check, by name.
#[derive(Clone, Default)]
struct PolicyQueue(Arc<PendingPolicies>);

#[derive(Default)]
struct PendingPolicies {
    policies: Mutex<BTreeMap<String, Bytes>>,
    added: Notify,
}

impl PolicyQueue {
    fn policies(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.0.policies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn next(&self) -> (String, Bytes) {
        loop {
            let first = self.policies().pop_first();
            match first {
                Some(first) => return first,
                None => self.0.added.notified().await,
            }
        }
    }
}

impl Index for PolicyQueue {
    type Fresh = BTreeMap<String, Bytes>;

    fn gather(&self, fresh: &mut Self::Fresh, object: Stored) {
        fresh.insert(object.key.name, object.value);
    }

    fn reset(&self, fresh: Self::Fresh) {
        *self.policies() = fresh;
        self.0.added.notify_one();
    }

    fn apply(&self, events: &[Event]) {
        let mut policies = self.policies();
        for Event { kind, change, .. } in events {
            match kind {
                EventKind::Deleted => policies.remove(&change.key.name),
                _ => policies.insert(change.key.name.clone(), change.value.clone()),
            };
        }
        self.0.added.notify_one();
    }
}

/// Type-checks a policy and writes its status, unless the status is current.
async fn check(api: &ApiServer, stored: &[u8]) -> Result<(), Error> {
    let policy: Object = serde_json::from_slice(stored).unwrap_or_default();
    let part = |part: &str, field: &str| policy.get(part).and_then(|part| part.get(field));
    let number = |value: Option<&Value>| value.and_then(Value::as_i64).unwrap_or_default();
    if number(part("metadata", "generation")) <= number(part("status", "observedGeneration")) {
        return Ok(());
    }
    let status = checked_status(&policy, &type_check(&policy, &ServedTypes(&api.registry())));
    let name = part("metadata", "name").and_then(Value::as_str).unwrap_or_default();
    let applied = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "uid": part("metadata", "uid")},
        "status": status,
    });
    let path = format!("/apis/{GROUP}/v1/{PLURAL}/{name}/status?fieldManager={MANAGER}&force=true");
    let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system"].map(str::to_owned);
    let request = Request::patch(&path)
        .header(CONTENT_TYPE, "application/apply-patch+yaml")
        .header(USER_AGENT, "kube-controller-manager")
        .body(Full::new(Bytes::from(applied.to_string())))
        .map_err(|error| Error::Internal { message: format!("{path}: {error}") })?;
    let itself = Connection::InProcess(Identity::authenticated(ACCOUNT, groups));
    match api.answer(&itself, request).await.status().as_u16() {
        // A policy that was deleted or recreated needs no status of its former self.
        200 | 404 | 409 => Ok(()),
        code @ (429 | 500..) => Err(Error::Internal { message: format!("{path}: {code}") }),
        // A retry would get the same answer and delay the other policies.
        code => {
            tracing::warn!(
                policy = name,
                code,
                "cannot write the status of a ValidatingAdmissionPolicy; the write was refused"
            );
            Ok(())
        }
    }
}

/// The types of served resources.
struct ServedTypes<'a>(&'a Registry);

impl ServedTypes<'_> {
    fn type_of(of: &ResourceType) -> Option<Type> {
        match &of.custom {
            Some(view) => custom_type(view.structural(), &of.kind),
            None => builtin_type(&of.group, &of.version, &of.kind),
        }
    }
}

impl Kinds for ServedTypes<'_> {
    fn of_resource(&self, group: &str, version: &str, plural: &str) -> Option<TypedKind> {
        let served = self.0.find(group, version, plural)?;
        Some(TypedKind { kind: served.kind.clone(), object: Self::type_of(served)? })
    }

    fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<Type> {
        let found = self.0.of_version(group, version).find(|served| served.kind == kind)?;
        Self::type_of(found)
    }
}
