//! The objects of the identity Lease controller: Lease, Endpoints, EndpointSlices.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use kinds::Ranges;
use model::Revision;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use store::Stored;
use uuid::Uuid;

use super::{ENDPOINTS, LEASES, NAMESPACES, SLICES};
use crate::bootstrap::{self, BootstrapObject};

/// The namespace of the Leases.
pub(super) const SYSTEM: &str = "kube-system";
/// The namespace of the Service `kubernetes`.
pub(super) const NAMESPACE: &str = "default";
pub(super) const SERVICE: &str = "kubernetes";
/// The only system namespace that may be deleted.
pub(super) const NODE_LEASES: &str = "kube-node-lease";
/// The label of identity Leases.
pub(super) const IDENTITY: [&str; 2] = ["apiserver.kubernetes.io/identity", "kube-apiserver"];
/// The label of the EndpointSlices of the Service.
pub(super) const OF_SERVICE: [&str; 2] = ["kubernetes.io/service-name", SERVICE];
/// The annotation with the advertised address of a server.
const ADDRESS: &str = "kubernetes.io/peer-advertise-address";
/// Lease duration in seconds, after which an expired Lease is deleted.
const DURATION: i64 = 3600;
/// The longest value of a label.
const LABEL: usize = 63;

/// The identity of this server.
#[derive(Clone, Debug)]
pub(super) struct ServerIdentity {
    /// The name of its Lease.
    pub name: String,
    /// The holder identity of this run.
    pub holder: String,
    host: String,
    /// The advertised address; `None` if it is a loopback address.
    pub address: Option<SocketAddr>,
    pub is_shared: bool,
    port: u16,
    services: Ranges,
}

impl ServerIdentity {
    pub fn new(host: &str, address: SocketAddr, is_shared: bool, services: Ranges) -> Self {
        let host = label(host);
        let name = format!("apiserver-{}", hash(&format!("{host}/kube-apiserver/{address}")));
        let holder = format!("{name}_{}", Uuid::new_v4());
        let port = address.port();
        let address = Some(address).filter(|address| !address.ip().is_loopback());
        Self { name, holder, host, address, is_shared, port, services }
    }

    /// The Service `kubernetes`, to restore it.
    pub fn service(&self) -> BootstrapObject {
        bootstrap::service(self.port, self.services)
    }

    /// The renewed Lease; `seen` is the revision to replace.
    pub fn lease(&self, clock: Timestamp, seen: Option<Revision>) -> BootstrapObject {
        // Only servers that share the database read the address.
        let advertised = self.address.filter(|_| self.is_shared);
        let annotations = advertised.map(|address| json!({ADDRESS: address.to_string()}));
        let mut metadata = json!({
            "name": self.name,
            "labels": {IDENTITY[0]: IDENTITY[1], "kubernetes.io/hostname": self.host},
        });
        if let Some(annotations) = annotations {
            metadata["annotations"] = annotations;
        }
        if let Some(seen) = seen {
            metadata["resourceVersion"] = seen.to_string().into();
        }
        let spec = json!({
            "holderIdentity": self.holder,
            "leaseDurationSeconds": DURATION,
            "renewTime": clock.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        });
        BootstrapObject {
            namespace: SYSTEM,
            ..BootstrapObject::new(LEASES, json!({"metadata": metadata, "spec": spec}))
        }
    }
}

/// The namespace `kube-node-lease`, to restore it.
pub(super) fn node_leases() -> BootstrapObject {
    BootstrapObject::new(NAMESPACES, json!({"metadata": {"name": NODE_LEASES}}))
}

/// A host name as a label value.
fn label(name: &str) -> String {
    let allowed = |character: &char| character.is_ascii_alphanumeric() || "-_.".contains(*character);
    let name: String = name.trim().chars().filter(allowed).take(LABEL).collect();
    let name = name.trim_matches(|character: char| !character.is_ascii_alphanumeric());
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// Half of a SHA-256 in base32.
fn hash(text: &str) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let full = digest(&SHA256, text.as_bytes());
    let half = full.as_ref().iter().take(16).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let digit = |bits: u128| char::from(DIGITS[usize::from((bits & 31) as u8)]);
    let all = (0..25).map(|position| digit(half >> (123 - 5 * position)));
    all.chain([digit(half << 2)]).collect()
}

/// The parsed fields of an identity Lease.
#[derive(Clone, Debug)]
pub(super) struct IdentityLease {
    pub name: String,
    pub version: Revision,
    pub holder: String,
    pub address: Option<SocketAddr>,
    pub renewed: Option<Timestamp>,
    /// The time after which it may be deleted; `None` means at once.
    pub end: Option<Timestamp>,
}

impl IdentityLease {
    pub fn read(stored: &Stored) -> Option<Self> {
        let lease: Value = serde_json::from_slice(&stored.value).ok()?;
        let spec = &lease["spec"];
        let renewed: Option<Timestamp> = spec["renewTime"].as_str().and_then(|time| time.parse().ok());
        let seconds = spec["leaseDurationSeconds"].as_i64();
        let end = renewed.zip(seconds).map(|(renewed, seconds)| {
            renewed.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
        });
        Some(Self {
            name: stored.key.name.clone(),
            version: stored.revision,
            holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            address: lease["metadata"]["annotations"][ADDRESS].as_str().and_then(|text| text.parse().ok()),
            renewed,
            end,
        })
    }
}

fn ports(port: u16) -> Value {
    json!([{"name": "https", "port": port, "protocol": "TCP"}])
}

/// The Endpoints of these servers.
pub(super) fn endpoints(servers: &BTreeSet<SocketAddr>) -> BootstrapObject {
    let mut by_port: BTreeMap<u16, BTreeSet<IpAddr>> = BTreeMap::new();
    for server in servers {
        by_port.entry(server.port()).or_default().insert(server.ip());
    }
    let subset = |(port, ips): (u16, BTreeSet<IpAddr>)| {
        let addresses: Vec<Value> = ips.iter().map(|ip| json!({"ip": ip.to_string()})).collect();
        json!({"addresses": addresses, "ports": ports(port)})
    };
    let object = json!({
        "metadata": {"name": SERVICE, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": by_port.into_iter().map(subset).collect::<Vec<_>>(),
    });
    BootstrapObject::enforced(ENDPOINTS, NAMESPACE, object)
}

/// The EndpointSlices of these servers: one per address family and port.
pub(super) fn slices(servers: &BTreeSet<SocketAddr>) -> Vec<BootstrapObject> {
    let mut groups: BTreeMap<(bool, u16), BTreeSet<IpAddr>> = BTreeMap::new();
    for server in servers {
        groups.entry((server.is_ipv6(), server.port())).or_default().insert(server.ip());
    }
    let slice = |(position, ((is_six, port), ips)): (usize, ((bool, u16), BTreeSet<IpAddr>))| {
        let family = if is_six { "IPv6" } else { "IPv4" };
        let name = if position == 0 {
            SERVICE.to_owned()
        } else {
            format!("{SERVICE}-{}-{port}", family.to_ascii_lowercase())
        };
        let endpoint = |ip: &IpAddr| json!({"addresses": [ip.to_string()], "conditions": {"ready": true}});
        let object = json!({
            "metadata": {"name": name, "labels": {OF_SERVICE[0]: OF_SERVICE[1]}},
            "addressType": family,
            "endpoints": ips.iter().map(endpoint).collect::<Vec<_>>(),
            "ports": ports(port),
        });
        BootstrapObject::enforced(SLICES, NAMESPACE, object)
    };
    groups.into_iter().enumerate().map(slice).collect()
}

/// Whether an EndpointSlice belongs to this controller.
pub(super) fn is_ours(slice: &str) -> bool {
    let rest = slice.strip_prefix(SERVICE);
    rest.is_some_and(|rest| {
        let port = rest.strip_prefix("-ipv4-").or_else(|| rest.strip_prefix("-ipv6-"));
        rest.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_name_is_stable_across_restarts_and_unique_per_server() {
        let name = |address: &str| {
            ServerIdentity::new("here", address.parse().unwrap(), true, Ranges::default()).name
        };
        assert_eq!(name("192.0.2.1:6443"), name("192.0.2.1:6443"));
        assert_ne!(name("192.0.2.1:6443"), name("192.0.2.1:6444"));
        assert_eq!(hash("").len(), 26);
        assert_eq!(hash(""), "4oymiquy7qobjgx36tejs35zeq");
    }

    #[test]
    fn a_host_name_becomes_a_label_value() {
        for (name, expected) in
            [("node-1\n", "node-1"), ("", "localhost"), ("-a b.", "ab"), (&"x".repeat(70), &"x".repeat(63))]
        {
            assert_eq!(label(name), expected);
        }
    }

    #[test]
    fn servers_with_other_ports_have_subsets_and_slices_of_their_own() {
        let servers = ["192.0.2.2:1", "192.0.2.1:1", "192.0.2.1:2", "[2001:db8::1]:1"];
        let servers = servers.map(|it| it.parse().unwrap()).into();
        let named = endpoints(&servers).object;
        let ips = |subset: usize| &named["subsets"][subset]["addresses"];
        assert_eq!(*ips(0), json!([{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}, {"ip": "2001:db8::1"}]));
        assert_eq!(*ips(1), json!([{"ip": "192.0.2.1"}]));
        let slices = slices(&servers);
        let names: Vec<&str> = slices.iter().map(BootstrapObject::name).collect();
        assert_eq!(names, ["kubernetes", "kubernetes-ipv4-2", "kubernetes-ipv6-1"]);
        assert!(names.into_iter().all(is_ours));
        assert!(!is_ours("kubernetes-x7k2p") && !is_ours("kubernetes-ipv4-http"));
    }
}
