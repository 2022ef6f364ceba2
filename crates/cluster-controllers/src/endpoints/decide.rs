//! The Endpoints of a Service, computed from its Pods.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::service_endpoints::objects::{
    Address, Endpoints, HEADLESS, Metadata, Reference, Subset, SubsetPort, TRIGGER_TIME, some,
};
use crate::service_endpoints::view::{Pod, Service, Texts};

/// The label with the controller of Endpoints.
pub const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// The value of that label for this controller.
pub const CONTROLLER: &str = "endpoint-controller";
/// The annotation of truncated Endpoints.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// The maximum number of addresses.
const CAPACITY: usize = 1000;

/// A write of Endpoints.
#[derive(Debug, PartialEq)]
pub enum EndpointsStep {
    /// Create them.
    Create(Endpoints),
    /// Update them.
    Update(Endpoints),
    /// Delete those with this uid.
    Delete(Option<String>),
}

/// Decides about the Endpoints of a Service with a selector: its Pods, and the present Endpoints.
pub fn decide(
    service: &Service,
    pods: &[&Pod],
    current: Option<&Endpoints>,
    trigger: Option<Timestamp>,
) -> Option<EndpointsStep> {
    let subsets = repack(&pods.iter().flat_map(|pod| of_pod(service, pod)).collect::<Vec<_>>());
    if current.is_some_and(|current| is_up_to_date(current, service, &subsets)) {
        return None;
    }
    let mut new = current.cloned().unwrap_or_else(|| Endpoints {
        metadata: Metadata {
            name: Some(service.metadata.name.clone()),
            namespace: Some(service.metadata.namespace.clone()),
            ..Metadata::default()
        },
        subsets: Vec::new(),
    });
    new.subsets = subsets;
    new.metadata.labels = Some(labels(service));
    let is_cut = cut(&mut new.subsets);
    let mut annotations = new.metadata.annotations.take().unwrap_or_default();
    match trigger {
        Some(time) => annotations.insert(TRIGGER_TIME.to_owned(), time.to_string()),
        None => annotations.remove(TRIGGER_TIME),
    };
    match is_cut {
        true => annotations.insert(OVER_CAPACITY.to_owned(), "truncated".to_owned()),
        false => annotations.remove(OVER_CAPACITY),
    };
    new.metadata.annotations = some(annotations);
    Some(if current.is_some() { EndpointsStep::Update(new) } else { EndpointsStep::Create(new) })
}

fn labels(service: &Service) -> Texts {
    let mut labels = service.metadata.labels.clone();
    labels.remove(HEADLESS);
    if service.is_headless() {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    labels
}

fn is_up_to_date(current: &Endpoints, service: &Service, subsets: &[Subset]) -> bool {
    let own = |labels: Option<&Texts>| {
        let mut labels = labels.cloned().unwrap_or_default();
        labels.retain(|key, _| key != HEADLESS && key != MANAGED_BY);
        labels
    };
    let (now, of_service) = (current.metadata.labels.as_ref(), Some(&service.metadata.labels));
    let is_ours = now.and_then(|labels| labels.get(MANAGED_BY)).is_some_and(|name| name == CONTROLLER);
    let annotations = current.metadata.annotations.as_ref();
    is_ours
        && own(now) == own(of_service)
        && annotations.is_none_or(|annotations| !annotations.contains_key(OVER_CAPACITY))
        && count(&current.subsets) <= CAPACITY
        && without_revisions(repack(&current.subsets)) == without_revisions(subsets.to_vec())
}

fn without_revisions(mut subsets: Vec<Subset>) -> Vec<Subset> {
    for subset in &mut subsets {
        for address in subset.addresses.iter_mut().chain(&mut subset.not_ready_addresses) {
            if let Some(target) = &mut address.target_ref {
                target.resource_version = None;
            }
        }
    }
    subsets
}

/// The subsets of a Pod, one per port.
fn of_pod(service: &Service, pod: &Pod) -> Vec<Subset> {
    let publishes = service.spec.publish_not_ready_addresses;
    let counts = pod.has_address() && (publishes || !pod.is_ending());
    let is_six = service.spec.ip_families.first().is_some_and(|family| family == "IPv6");
    let Some(address) = pod.addresses().find(|address| counts && address.is_ipv6() == is_six) else {
        return Vec::new();
    };
    let address = Address {
        ip: address.to_string(),
        hostname: pod.hostname(service).map(str::to_owned),
        node_name: Some(pod.spec.node_name.clone()),
        target_ref: Some(pod.reference()),
    };
    let subset = |ports: Vec<SubsetPort>| {
        let (ready, rest) = if publishes || pod.is_ready() {
            (vec![address.clone()], Vec::new())
        } else {
            (Vec::new(), vec![address.clone()])
        };
        Subset { addresses: ready, not_ready_addresses: rest, ports }
    };
    if service.spec.ports.is_empty() && service.spec.cluster_ip == "None" {
        return vec![subset(Vec::new())];
    }
    let ports = service.spec.ports.iter().filter_map(|wanted| {
        let (name, protocol) = (wanted.name.clone(), wanted.protocol.clone());
        let port = pod.port(wanted)?;
        Some(SubsetPort { name, port, protocol, app_protocol: wanted.app_protocol.clone() })
    });
    ports.map(|port| subset(vec![port])).collect()
}

/// The identity of an address: the address, and the uid of the Pod.
type Key = (String, Option<String>);

/// Canonical subsets: each address once, with all of its ports.
pub(crate) fn repack(subsets: &[Subset]) -> Vec<Subset> {
    let mut addresses: BTreeMap<Key, &Address> = BTreeMap::new();
    // The key `None` is for addresses without ports.
    let mut by_port: BTreeMap<Option<&SubsetPort>, BTreeMap<Key, bool>> = BTreeMap::new();
    for subset in subsets {
        let ports: Vec<Option<&SubsetPort>> = match subset.ports.as_slice() {
            [] => vec![None],
            ports => ports.iter().map(Some).collect(),
        };
        let ready = subset.addresses.iter().map(|address| (address, true));
        for (address, ready) in ready.chain(subset.not_ready_addresses.iter().map(|address| (address, false)))
        {
            let uid = address.target_ref.as_ref().and_then(|target: &Reference| target.uid.clone());
            let key = (address.ip.clone(), uid);
            addresses.entry(key.clone()).or_insert(address);
            for port in &ports {
                // An address that is unready in one subset is unready in all.
                let known = by_port.entry(*port).or_default().entry(key.clone()).or_insert(ready);
                *known &= ready;
            }
        }
    }
    let mut by_addresses: BTreeMap<BTreeMap<Key, bool>, BTreeSet<&SubsetPort>> = BTreeMap::new();
    for (port, keys) in by_port {
        by_addresses.entry(keys).or_default().extend(port);
    }
    let packed = by_addresses.into_iter().map(|(keys, ports)| {
        let of = |wanted: bool| -> Vec<Address> {
            let keys = keys.iter().filter(|(_, ready)| **ready == wanted);
            keys.filter_map(|(key, _)| addresses.get(key).map(|address| (*address).clone())).collect()
        };
        let (addresses, not_ready_addresses) = (of(true), of(false));
        Subset { addresses, not_ready_addresses, ports: ports.into_iter().cloned().collect() }
    });
    packed.collect()
}

fn count(subsets: &[Subset]) -> usize {
    subsets.iter().map(|subset| subset.addresses.len() + subset.not_ready_addresses.len()).sum()
}

/// Truncates the subsets proportionally, unready addresses first. Returns whether anything was removed.
fn cut(subsets: &mut [Subset]) -> bool {
    let ready: usize = subsets.iter().map(|subset| subset.addresses.len()).sum();
    let total = count(subsets);
    if total <= CAPACITY {
        return false;
    }
    let (room, among) = if ready > CAPACITY { (CAPACITY, ready) } else { (CAPACITY - ready, total - ready) };
    let mut left = room;
    for subset in subsets {
        let list = if ready > CAPACITY {
            subset.not_ready_addresses.clear();
            &mut subset.addresses
        } else {
            &mut subset.not_ready_addresses
        };
        list.truncate((list.len() * room).div_ceil(among).min(left));
        left -= list.len();
    }
    true
}
