//! The EndpointSlices of a Service, computed from its Pods.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;

use super::hints;
use crate::service_endpoints::objects::{
    Conditions, Endpoint, HEADLESS, MANAGED_BY, Metadata, Port, Reference, SERVICE_NAME, Slice, SliceStep,
    TRIGGER_TIME, owned_by, prefix, some, sorted,
};
use crate::service_endpoints::view::{Pod, Service, ServicePort, Texts};

/// The value of the label `managed-by` for this controller.
pub const CONTROLLER: &str = "endpointslice-controller.k8s.io";
/// The maximum number of endpoints of a slice.
pub const FULL: usize = 100;

/// The inputs of a decision.
pub struct SliceInputs<'a> {
    /// The Service.
    pub service: &'a Service,
    /// The Pods that it selects.
    pub pods: &'a [&'a Pod],
    /// The zones of nodes by node name; empty for nodes without one.
    pub zones: &'a BTreeMap<String, String>,
    /// The slices of this controller for the Service, without those being deleted.
    pub slices: &'a [&'a Slice],
    /// The time of the change that triggers the decision.
    pub trigger: Option<Timestamp>,
}

/// The decision: writes of slices, and the Pods that were skipped because their node is unknown.
#[derive(Debug, Default, PartialEq)]
pub struct Decision {
    /// The writes in order.
    pub steps: Vec<SliceStep>,
    /// The reasons why Pods were skipped, for an event.
    pub left_out: Vec<String>,
}

/// Changes of the slices of one address type.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) create: Vec<Slice>,
    pub(crate) update: Vec<Slice>,
    pub(crate) delete: Vec<Slice>,
}

/// Decides about the slices of a Service with a selector.
pub fn decide(known: &SliceInputs<'_>) -> Decision {
    let mut decision = Decision::default();
    let families = families(known.service);
    let strangers = known.slices.iter().filter(|slice| !families.contains(&slice.address_type.as_str()));
    let strangers: Vec<SliceStep> = strangers.map(|slice| SliceStep::Delete((*slice).clone())).collect();
    for family in families {
        let changes = of_family(known, family, &mut decision.left_out);
        decision.steps.extend(steps(known, changes));
    }
    decision.steps.extend(strangers);
    decision.left_out.sort();
    decision.left_out.dedup();
    decision
}

/// The address types of a Service.
fn families(service: &Service) -> Vec<&'static str> {
    let given = service.spec.ip_families.iter();
    let mut families: Vec<&str> =
        given.filter_map(|family| ["IPv4", "IPv6"].into_iter().find(|known| known == family)).collect();
    if families.is_empty() {
        let is_six = service.spec.cluster_ip.parse().is_ok_and(|address: IpAddr| address.is_ipv6());
        families = match is_six {
            _ if service.is_headless() => vec!["IPv4", "IPv6"],
            true => vec!["IPv6"],
            false => vec!["IPv4"],
        };
    }
    families
}

/// The identity of an endpoint: addresses, hostname, and the Pod.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Key(Vec<String>, Option<String>, Option<String>, Option<String>);

impl Key {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let mut addresses = endpoint.addresses.clone();
        addresses.sort();
        let target = endpoint.target_ref.as_ref();
        let hostname = endpoint.hostname.clone().filter(|name| !name.is_empty());
        let part = |part: fn(&Reference) -> &Option<String>| target.and_then(|target| part(target).clone());
        Self(addresses, hostname, part(|target| &target.namespace), part(|target| &target.name))
    }
}

/// The desired endpoints.
pub(crate) type Wanted = BTreeMap<Key, Endpoint>;

/// Whether two endpoints with the same key are equal.
pub(crate) fn says_the_same(a: &Endpoint, b: &Endpoint) -> bool {
    (&a.node_name, &a.zone, &a.conditions) == (&b.node_name, &b.zone, &b.conditions)
        && Reference::is_same(a.target_ref.as_ref(), b.target_ref.as_ref())
}

fn of_family(known: &SliceInputs<'_>, family: &str, left_out: &mut Vec<String>) -> Changes {
    let existing: Vec<&Slice> =
        known.slices.iter().copied().filter(|slice| slice.address_type == family).collect();
    let (own, foreign): (Vec<&Slice>, Vec<&Slice>) =
        existing.iter().partition(|slice| is_owned(slice, known.service));
    let mut changes = Changes { delete: foreign.into_iter().cloned().collect(), ..Changes::default() };
    let mut by_ports: BTreeMap<Vec<Port>, Vec<&Slice>> = BTreeMap::new();
    for slice in own {
        by_ports.entry(slice.sorted_ports()).or_default().push(slice);
    }
    for (key, (ports, wanted)) in wanted(known, family, left_out) {
        let slices = by_ports.remove(&key).unwrap_or_default();
        let empty = empty_slice(known.service, family, ports);
        fill(known.service, &slices, wanted, &empty, &mut changes);
    }
    changes.delete.extend(by_ports.into_values().flatten().cloned());
    if existing.len() == changes.delete.len() && changes.create.is_empty() {
        // A Service without endpoints has an empty placeholder slice.
        let placeholder = empty_slice(known.service, family, Vec::new());
        match changes.delete.as_slice() {
            [only] if is_placeholder(only, &placeholder) => changes.delete.clear(),
            _ => changes.create.push(placeholder),
        }
    }
    let is_changed = |slice: &Slice| {
        changes.update.iter().chain(&changes.delete).any(|changed| changed.name() == slice.name())
    };
    let unchanged: Vec<&Slice> = existing.into_iter().filter(|slice| !is_changed(slice)).collect();
    hints::give(known.service, &unchanged, &mut changes);
    changes
}

fn is_owned(slice: &Slice, service: &Service) -> bool {
    let owners = slice.metadata.owner_references.iter().flatten();
    let mut services = owners.filter(|owner| owner.kind == "Service" && owner.api_version == "v1");
    services.any(|owner| owner.uid == service.metadata.uid)
}

fn is_placeholder(slice: &Slice, placeholder: &Slice) -> bool {
    slice.endpoints.is_empty()
        && slice.ports.is_empty()
        && slice.metadata.labels.clone().unwrap_or_default()
            == placeholder.metadata.labels.clone().unwrap_or_default()
}

/// The ports, in the order of the Service, and the endpoints of one group of slices.
type Group = (Vec<Port>, Wanted);

/// The desired endpoints by ports: Pods may have different ports for the same name.
fn wanted(known: &SliceInputs<'_>, family: &str, left_out: &mut Vec<String>) -> BTreeMap<Vec<Port>, Group> {
    let service = known.service;
    let mut groups: BTreeMap<Vec<Port>, Group> = BTreeMap::new();
    for pod in known.pods.iter().filter(|pod| pod.has_address()) {
        let ports = ports(service, pod);
        let (_, endpoints) = groups.entry(sorted(ports.clone())).or_insert_with(|| (ports, BTreeMap::new()));
        let zone = known.zones.get(&pod.spec.node_name);
        if zone.is_none() && !service.spec.publish_not_ready_addresses {
            let (namespace, name) = (&service.metadata.namespace, service.name());
            let (pod, node) = (&pod.metadata.name, &pod.spec.node_name);
            left_out
                .push(format!("skipping Pod {pod} for Service {namespace}/{name}: Node {node} Not Found"));
            continue;
        }
        let endpoint = endpoint(pod, zone.map_or("", String::as_str), service, family);
        if !endpoint.addresses.is_empty() {
            endpoints.insert(Key::of(&endpoint), endpoint);
        }
    }
    groups
}

/// The ports of a Service, resolved for a Pod.
fn ports(service: &Service, pod: &Pod) -> Vec<Port> {
    let port = |wanted: &ServicePort| {
        Some(Port {
            name: Some(wanted.name.clone()),
            port: Some(pod.port(wanted)?),
            protocol: Some(wanted.protocol.clone()),
            app_protocol: wanted.app_protocol.clone(),
        })
    };
    service.spec.ports.iter().filter_map(port).collect()
}

fn endpoint(pod: &Pod, zone: &str, service: &Service, family: &str) -> Endpoint {
    let (serving, terminating) = (pod.is_ready(), pod.is_ending());
    let ready = service.spec.publish_not_ready_addresses || serving && !terminating;
    let fitting = pod.addresses().filter(|address| address.is_ipv6() == (family == "IPv6"));
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Endpoint {
        addresses: fitting.map(|address| address.to_string()).collect(),
        conditions: Conditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) },
        hostname: pod.hostname(service).map(str::to_owned),
        target_ref: Some(pod.reference()),
        node_name: text(&pod.spec.node_name),
        zone: text(zone),
        ..Endpoint::default()
    }
}

fn empty_slice(service: &Service, family: &str, ports: Vec<Port>) -> Slice {
    let metadata = Metadata {
        generate_name: Some(prefix(service.name())),
        namespace: Some(service.metadata.namespace.clone()),
        labels: Some(labels(service)),
        owner_references: Some(vec![owned_by("Service", service.name(), &service.metadata.uid)]),
        ..Metadata::default()
    };
    Slice { metadata, address_type: family.to_owned(), endpoints: Vec::new(), ports }
}

/// The labels of a slice: those of the Service and the managed ones.
fn labels(service: &Service) -> Texts {
    let mut labels = without_own(Some(&service.metadata.labels));
    if service.is_headless() {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), service.name().to_owned());
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    labels
}

/// Labels without the managed ones.
fn without_own(labels: Option<&Texts>) -> Texts {
    let mut labels = labels.cloned().unwrap_or_default();
    labels.retain(|key, _| ![SERVICE_NAME, MANAGED_BY, HEADLESS].contains(&key.as_str()));
    labels
}

/// Reconciles the slices with one set of ports, with as few writes as possible.
fn fill(service: &Service, slices: &[&Slice], mut wanted: Wanted, empty: &Slice, changes: &mut Changes) {
    let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
    for slice in slices {
        let mut differs = false;
        let mut kept = Vec::new();
        for endpoint in &slice.endpoints {
            if let Some(found) = wanted.remove(&Key::of(endpoint)) {
                differs |= !says_the_same(endpoint, &found);
                kept.push(found);
            }
        }
        differs |= kept.len() != slice.endpoints.len();
        let labels_differ =
            without_own(slice.metadata.labels.as_ref()) != without_own(Some(&service.metadata.labels));
        if differs && kept.is_empty() {
            changes.delete.push((*slice).clone());
        } else if differs || labels_differ {
            let mut new = (*slice).clone();
            if differs {
                new.endpoints = kept;
            }
            new.metadata.labels = Some(labels(service));
            changed.push(new);
        } else {
            unchanged.push(*slice);
        }
    }
    // Slices that are written anyway take further endpoints, the fullest first.
    changed.sort_by_key(|slice| std::cmp::Reverse(slice.endpoints.len()));
    changed.iter_mut().for_each(|slice| take(slice, &mut wanted));
    changes.update.append(&mut changed);
    while !wanted.is_empty() {
        // Else one slice with room for all remaining endpoints.
        let fits = |slice: &&&Slice| wanted.len() < FULL && slice.endpoints.len() + wanted.len() <= FULL;
        let fullest = unchanged.iter().filter(fits).max_by_key(|slice| slice.endpoints.len()).copied();
        let mut slice = fullest.unwrap_or(empty).clone();
        take(&mut slice, &mut wanted);
        if slice.name().is_empty() {
            changes.create.push(slice);
        } else {
            changes.update.push(slice);
        }
    }
}

/// Moves endpoints into a slice until it is full.
fn take(slice: &mut Slice, wanted: &mut Wanted) {
    while slice.endpoints.len() < FULL {
        let Some((_, endpoint)) = wanted.pop_first() else { break };
        slice.endpoints.push(endpoint);
    }
}

/// The writes in order; a slice to delete is reused for one to create.
fn steps(known: &SliceInputs<'_>, mut changes: Changes) -> Vec<SliceStep> {
    let mut kept = Vec::new();
    for old in changes.delete {
        match changes.create.pop_if(|_| is_owned(&old, known.service)) {
            Some(new) => changes.update.push(in_place_of(&old, new)),
            None => kept.push(old),
        }
    }
    // A new slice would delay the garbage collector.
    let is_ending = known.service.metadata.deletion_timestamp.is_some();
    let create = changes.create.into_iter().filter(|_| !is_ending).map(SliceStep::Create);
    let mut steps: Vec<SliceStep> = create.chain(changes.update.into_iter().map(SliceStep::Update)).collect();
    for step in &mut steps {
        if let SliceStep::Create(slice) | SliceStep::Update(slice) = step {
            annotate(slice, known.trigger);
        }
    }
    steps.into_iter().chain(kept.into_iter().map(SliceStep::Delete)).collect()
}

/// A new slice with the name of an old one.
pub(crate) fn in_place_of(old: &Slice, mut new: Slice) -> Slice {
    new.metadata.name.clone_from(&old.metadata.name);
    new.metadata.uid.clone_from(&old.metadata.uid);
    new.metadata.resource_version.clone_from(&old.metadata.resource_version);
    new
}

fn annotate(slice: &mut Slice, trigger: Option<Timestamp>) {
    let mut annotations = slice.metadata.annotations.take().unwrap_or_default();
    match trigger {
        Some(time) => annotations.insert(TRIGGER_TIME.to_owned(), time.to_string()),
        None => annotations.remove(TRIGGER_TIME),
    };
    slice.metadata.annotations = some(annotations);
}
