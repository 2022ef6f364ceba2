//! The allocator of values that one object holds exclusively: cluster IPs, node ports, the default PriorityClass. Each is a
//! key of the store that is written and deleted with its object.
//!
//! Two servers that allocate the same address write the same key, so one of them conflicts and takes another address. There
//! is no list of free addresses that a crash could corrupt.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use kinds::{Claim, Pool, Refusal};
use model::error::Error;
use model::{Attributes, Encoded, ObjectKey, Resource, Uid};
use serde_json::{Value, json};
use store::{Precondition, Stored, Write};

use super::managed_fields::FieldManager;
use super::metadata::{self, attributes, can_be_removed, time};
use super::write::now;
use super::{Call, store_error};
use crate::pages::Pages;
use crate::registry::{Object, ResourceType};

/// The group of allocation keys. No API path reaches it: groups of CRDs contain a dot.
const GROUP: &str = "claims";
const ADDRESSES: &str = "clusterips";
const PORTS: &str = "nodeports";
const DEFAULTS: &str = "defaults";

/// A requirement of a write that is no allocation, beside its namespace.
const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The IPAddress objects, which show allocations to clients.
const SHOWN: (&str, &str, &str) = ("networking.k8s.io", "v1", "ipaddresses");

fn key(claim: Claim) -> ObjectKey {
    let (plural, name) = match claim {
        Claim::ClusterIp(address) => (ADDRESSES, address.to_string()),
        Claim::NodePort(port) => (PORTS, port.to_string()),
        Claim::DefaultPriority => (DEFAULTS, "priorityclasses".to_owned()),
    };
    ObjectKey::new(&Resource::new(GROUP, plural), "", &name)
}

/// Sets allocated values. After a conflict (`contested`) all taken values are read first.
pub async fn allocate(
    call: &Call,
    object: &mut Object,
    old: Option<&Object>,
    contested: bool,
) -> Result<(), Error> {
    let strategy = &call.resource_type.strategy;
    if !strategy.allocates() || !call.path.subresource.is_empty() {
        return Ok(());
    }
    let taken =
        if contested { all_taken(call).await? } else { requested_and_taken(call, object, old).await? };
    let mut random = || uuid::Uuid::new_v4().as_fields().0;
    let outcome = strategy.allocate(object, old, &mut Pool::new(call.api.services, taken, &mut random));
    outcome.map_err(|refusal| match refusal {
        Refusal::Invalid(errors) => call.resource_type.invalid(metadata::text(object, "name"), errors),
        Refusal::Internal(message) => Error::Internal { message },
        Refusal::Forbidden(message) => Error::Forbidden {
            group: call.resource_type.group.clone(),
            resource: call.resource_type.plural.clone(),
            name: metadata::text(object, "name").to_owned(),
            message,
        },
    })
}

/// The requested values that are taken, with their owners.
async fn requested_and_taken(
    call: &Call,
    object: &Object,
    old: Option<&Object>,
) -> Result<BTreeMap<Claim, String>, Error> {
    let strategy = &call.resource_type.strategy;
    let own = old.map(|old| strategy.allocations(old)).unwrap_or_default();
    let mut taken = BTreeMap::new();
    for claim in strategy.allocations(object).difference(&own) {
        let mut found = call.api.store.get(&key(*claim), None).await.map_err(store_error)?;
        if let (Claim::ClusterIp(address), None) = (claim, &found) {
            found = call.api.store.get(&shown_key(*address), None).await.map_err(store_error)?;
        }
        if let Some(found) = found {
            taken.insert(*claim, owner_of(&found));
        }
    }
    Ok(taken)
}

async fn all_taken(call: &Call) -> Result<BTreeMap<Claim, String>, Error> {
    let address = |name: &str| name.parse().ok().map(Claim::ClusterIp);
    let port = |name: &str| name.parse().ok().map(Claim::NodePort);
    let default = |_: &str| Some(Claim::DefaultPriority);
    let mut taken = BTreeMap::new();
    for (resource, read) in [
        (Resource::new(GROUP, ADDRESSES), &address as &(dyn Fn(&str) -> Option<Claim> + Sync)),
        (Resource::new(SHOWN.0, SHOWN.2), &address),
        (Resource::new(GROUP, PORTS), &port),
        (Resource::new(GROUP, DEFAULTS), &default),
    ] {
        let mut pages = Pages::of(&call.api.store, resource);
        while let Some(page) = pages.next().await.map_err(store_error)? {
            taken.extend(page.items.iter().filter_map(|item| Some((read(&item.key.name)?, owner_of(item)))));
        }
    }
    Ok(taken)
}

/// Whether a transaction conflicted on an allocation, not on the object itself.
pub fn was_contested(error: &store::Error, own: &ObjectKey) -> bool {
    match error {
        store::Error::AlreadyExists { key }
        | store::Error::NotFound { key }
        | store::Error::Conflict { key, .. } => {
            key != own && !["namespaces", CRDS].contains(&key.resource.as_str())
        }
        _ => false,
    }
}

/// The writes that belong to an object: allocations, releases, and objects that are deleted with it. `old` is absent for a
/// create, `new` for a deletion.
pub async fn writes(
    call: &Call,
    new: Option<&Object>,
    old: Option<&Object>,
) -> Result<Vec<Write>, store::Error> {
    let strategy = &call.resource_type.strategy;
    let of = |object: Option<&Object>| object.map(|object| strategy.allocations(object)).unwrap_or_default();
    let (has, had) = (of(new), of(old));
    let mut steps = Vec::new();
    if let Some(new) = new {
        for claim in has.difference(&had) {
            steps.extend(allocation_writes(call, *claim, new));
        }
    }
    let Some(old) = old else { return Ok(steps) };
    for claim in had.difference(&has) {
        steps.extend(release_writes(call, *claim, old).await?);
    }
    if new.is_none() {
        for (group, plural) in strategy.ends_with() {
            steps.extend(dependent_deletion(call, group, plural, metadata::text(old, "name")).await?);
        }
    }
    Ok(steps)
}

/// The name of the owner of an allocation.
fn owner_of(claimed: &Stored) -> String {
    let owner =
        read(claimed).ok().and_then(|body| body.get("owner")?.get("name")?.as_str().map(str::to_owned));
    owner.unwrap_or_default()
}

fn owner(call: &Call, object: &Object) -> Value {
    let namespace = metadata::text(object, "namespace");
    json!({"resource": call.resource_type.plural, "namespace": namespace, "name": metadata::text(object, "name")})
}

fn allocation_writes(call: &Call, claim: Claim, object: &Object) -> Vec<Write> {
    let uid = || Uid(uuid::Uuid::new_v4().to_string());
    let body = Object::from_iter([("owner".to_owned(), owner(call, object))]);
    let mut steps = vec![Write::Create {
        key: key(claim),
        uid: uid(),
        attributes: Attributes::default(),
        body: Encoded::new(&body),
    }];
    let registry = call.api.registry();
    if let (Claim::ClusterIp(address), Some(shown)) = (claim, registry.find(SHOWN.0, SHOWN.1, SHOWN.2)) {
        let uid = uid();
        let now = time(now());
        let mut object = shown_object(&uid, address, owner(call, object), &now);
        let tracked = FieldManager::by_server(&call.api, shown, "", now).track(None, &mut object);
        let attributes = attributes(shown, &object);
        let body = Encoded::managed(&object, tracked.json.as_deref());
        steps.push(Write::Create { key: shown_key(address), uid, attributes, body });
    }
    steps
}

fn shown_key(address: Ipv4Addr) -> ObjectKey {
    ObjectKey::new(&Resource::new(SHOWN.0, SHOWN.2), "", &address.to_string())
}

fn shown_object(uid: &Uid, address: Ipv4Addr, parent: Value, now: &str) -> Object {
    let labels = json!({
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    });
    let metadata = json!({
        "name": address.to_string(), "uid": uid.0, "creationTimestamp": now, "labels": labels,
    });
    Object::from_iter([("metadata".to_owned(), metadata), ("spec".to_owned(), json!({"parentRef": parent}))])
}

async fn release_writes(call: &Call, claim: Claim, object: &Object) -> Result<Vec<Write>, store::Error> {
    let mut steps = Vec::new();
    if let Some(head) = call.api.store.get(&key(claim), None).await? {
        let body = Encoded::new(&read(&head)?);
        let expect = Precondition { revision: Some(head.revision), uid: None };
        steps.push(Write::Delete { key: head.key, expect, attributes: Attributes::default(), body });
    }
    let registry = call.api.registry();
    if let (Claim::ClusterIp(address), Some(shown)) = (claim, registry.find(SHOWN.0, SHOWN.1, SHOWN.2))
        && let Some(head) = call.api.store.get(&shown_key(address), None).await?
    {
        let last = read(&head)?;
        // Another client may have replaced the IPAddress.
        if last.get("spec").and_then(|spec| spec.get("parentRef")) == Some(&owner(call, object)) {
            steps.push(removal(shown, head, &last));
        }
    }
    Ok(steps)
}

async fn dependent_deletion(
    call: &Call,
    group: &str,
    plural: &str,
    name: &str,
) -> Result<Option<Write>, store::Error> {
    let registry = call.api.registry();
    let Some(other) = registry.find(group, "v1", plural) else { return Ok(None) };
    let other_key = ObjectKey::new(&other.resource, call.namespace(), name);
    let Some(head) = call.api.store.get(&other_key, None).await? else { return Ok(None) };
    let last = read(&head)?;
    Ok(can_be_removed(other, &last).then(|| removal(other, head, &last)))
}

fn removal(resource_type: &ResourceType, head: Stored, last: &Object) -> Write {
    Write::Delete {
        key: head.key,
        expect: Precondition { revision: Some(head.revision), uid: None },
        attributes: attributes(resource_type, last),
        body: Encoded::new(last),
    }
}

fn read(head: &Stored) -> Result<Object, store::Error> {
    serde_json::from_slice(&head.value).map_err(|error| store::Error::Corrupt { reason: error.to_string() })
}
