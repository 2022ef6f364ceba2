//! EndpointSlices that mirror the Endpoints of a Service without a selector.

use std::collections::BTreeMap;

use crate::endpoints::decide::repack;
use crate::endpointslice::decide::{Key, Wanted, in_place_of, says_the_same};
use crate::service_endpoints::objects::{
    Address, Conditions, Endpoint, Endpoints, LEADER, MANAGED_BY, Metadata, Port, SERVICE_NAME, Slice,
    SliceStep, SubsetPort, TRIGGER_TIME, owned_by, prefix, some, sorted,
};
use crate::service_endpoints::view::{Texts, parse_address};

/// The value of the label `managed-by` for this controller.
pub const CONTROLLER: &str = "endpointslicemirroring-controller.k8s.io";
/// The maximum number of mirrored addresses of a subset.
const FULL: usize = 1000;
/// The label of Endpoints that are not mirrored.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// The annotation of `kubectl apply`.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Decides about the mirrored slices of Endpoints; `endpoints` is `None` if there is nothing to mirror, such as without
/// a Service or with a selector.
pub fn decide(endpoints: Option<&Endpoints>, slices: &[&Slice]) -> Vec<SliceStep> {
    let has = |texts: &Option<Texts>, key: &str, value: Option<&str>| {
        let found = texts.as_ref().and_then(|texts| texts.get(key)).map(String::as_str);
        found.is_some() && (value.is_none() || found == value)
    };
    let mirrored = endpoints.filter(|endpoints| {
        let metadata = &endpoints.metadata;
        !has(&metadata.labels, SKIP, Some("true")) && !has(&metadata.annotations, LEADER, None)
    });
    let Some(endpoints) = mirrored else {
        return slices.iter().map(|slice| SliceStep::Delete((*slice).clone())).collect();
    };
    let mut existing: BTreeMap<Group, Vec<&Slice>> = BTreeMap::new();
    for slice in slices {
        let family = if slice.address_type == "IPv6" { "IPv6" } else { "IPv4" };
        existing.entry((family, slice.sorted_ports())).or_default().push(slice);
    }
    let (mut create, mut update, mut delete) = (Vec::new(), Vec::new(), Vec::new());
    for (group, (ports, wanted)) in wanted(endpoints) {
        let slices = existing.remove(&group).unwrap_or_default();
        let mut slices = slices.into_iter();
        let first = slices.next();
        delete.extend(slices);
        match first {
            Some(slice) if is_up_to_date(slice, endpoints, &wanted) => {}
            Some(slice) => update.push(in_place_of(slice, new_slice(endpoints, group.0, ports, wanted))),
            None => create.push(new_slice(endpoints, group.0, ports, wanted)),
        }
    }
    delete.extend(existing.into_values().flatten());
    reuse_slices(&mut create, &mut update, &mut delete);
    let create = create.into_iter().filter(|_| endpoints.metadata.deletion_timestamp.is_none());
    let steps = create.map(SliceStep::Create).chain(update.into_iter().map(SliceStep::Update));
    steps.chain(delete.into_iter().map(|slice| SliceStep::Delete(slice.clone()))).collect()
}

/// Address type and ports.
type Group = (&'static str, Vec<Port>);

/// The subsets to mirror, without empty ones.
fn wanted(endpoints: &Endpoints) -> BTreeMap<Group, (Vec<Port>, Wanted)> {
    let mut groups: BTreeMap<Group, (Vec<Port>, Wanted)> = BTreeMap::new();
    for subset in repack(&endpoints.subsets) {
        let ports: Vec<Port> = subset.ports.iter().map(port).collect();
        let ready = subset.addresses.iter().map(|address| (address, true));
        let all = ready.chain(subset.not_ready_addresses.iter().map(|address| (address, false)));
        for (family, endpoint) in all.filter_map(|(address, ready)| endpoint(address, ready)).take(FULL) {
            let group = groups.entry((family, sorted(ports.clone())));
            let (_, wanted) = group.or_insert_with(|| (ports.clone(), BTreeMap::new()));
            wanted.insert(Key::of(&endpoint), endpoint);
        }
    }
    groups
}

fn port(port: &SubsetPort) -> Port {
    Port {
        name: Some(port.name.clone()),
        port: Some(port.port),
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone(),
    }
}

/// An address as an endpoint, with its address type; invalid addresses are not mirrored.
fn endpoint(address: &Address, ready: bool) -> Option<(&'static str, Endpoint)> {
    let ip = parse_address(&address.ip)?;
    let endpoint = Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Conditions { ready: Some(ready), ..Conditions::default() },
        hostname: address.hostname.clone().filter(|name| !name.is_empty()),
        target_ref: address.target_ref.clone(),
        node_name: address.node_name.clone(),
        ..Endpoint::default()
    };
    Some((if ip.is_ipv6() { "IPv6" } else { "IPv4" }, endpoint))
}

/// Whether a slice is up to date.
fn is_up_to_date(slice: &Slice, endpoints: &Endpoints, wanted: &Wanted) -> bool {
    let has_all = slice.endpoints.len() == wanted.len();
    let is_wanted = |endpoint: &Endpoint| {
        wanted.get(&Key::of(endpoint)).is_some_and(|wanted| says_the_same(wanted, endpoint))
    };
    let without = |texts: &Option<Texts>, keys: [&str; 2]| {
        let mut texts = texts.clone().unwrap_or_default();
        texts.retain(|key, _| !keys.contains(&key.as_str()));
        texts
    };
    let is_of_another = slice.metadata.owner_references.iter().flatten().any(|owner| {
        owner.kind == "Endpoints"
            && Some(&owner.name) == endpoints.metadata.name.as_ref()
            && Some(&owner.uid) != endpoints.metadata.uid.as_ref()
    });
    has_all
        && slice.endpoints.iter().all(is_wanted)
        && !is_of_another
        && endpoints.metadata.labels.clone().unwrap_or_default()
            == without(&slice.metadata.labels, [MANAGED_BY, SERVICE_NAME])
        && without(&endpoints.metadata.annotations, [TRIGGER_TIME, APPLIED])
            == slice.metadata.annotations.clone().unwrap_or_default()
}

fn new_slice(endpoints: &Endpoints, family: &str, ports: Vec<Port>, wanted: Wanted) -> Slice {
    let name = endpoints.metadata.name.as_deref().unwrap_or_default();
    let mut labels = endpoints.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), name.to_owned());
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    let mut annotations = endpoints.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| key != TRIGGER_TIME && key != APPLIED);
    let metadata = Metadata {
        generate_name: Some(prefix(name)),
        namespace: endpoints.metadata.namespace.clone(),
        labels: Some(labels),
        annotations: some(annotations),
        owner_references: Some(vec![owned_by(
            "Endpoints",
            name,
            endpoints.metadata.uid.as_deref().unwrap_or_default(),
        )]),
        ..Metadata::default()
    };
    let endpoints = wanted.into_values().collect();
    Slice { metadata, address_type: family.to_owned(), endpoints, ports }
}

/// Reuses slices to delete for slices to create.
fn reuse_slices(create: &mut Vec<Slice>, update: &mut Vec<Slice>, delete: &mut Vec<&Slice>) {
    let new = std::mem::take(create);
    for slice in new {
        match delete.iter().position(|old| old.address_type == slice.address_type) {
            Some(place) => update.push(in_place_of(delete.remove(place), slice)),
            None => create.push(slice),
        }
    }
}
