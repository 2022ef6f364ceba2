//! Views of Services and Pods.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::Deserialize;

use super::objects::Reference;

/// Labels or annotations.
pub type Texts = BTreeMap<String, String>;

/// A Service.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Service {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObservedMetadata,
    /// The spec.
    #[serde(default)]
    pub spec: ServiceSpec,
}

/// The spec of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// For instance `ExternalName`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its cluster IP, or `None`.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    /// `IPv4`, `IPv6`, or both.
    pub ip_families: Vec<String>,
    /// The selector of its Pods.
    pub selector: Texts,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// Whether unready Pods are published.
    pub publish_not_ready_addresses: bool,
    /// The preferred topology of traffic.
    pub traffic_distribution: Option<String>,
}

/// A port of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Its name; may be empty.
    pub name: String,
    /// For instance `TCP`.
    pub protocol: String,
    /// The application protocol, such as `http`.
    pub app_protocol: Option<String>,
    /// The target port of the Pods.
    pub target_port: TargetPort,
}

/// A target port.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum TargetPort {
    /// A number.
    Number(i32),
    /// The name of a container port.
    Name(String),
}

impl Default for TargetPort {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl Service {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether it has a selector.
    pub fn selects(&self) -> bool {
        self.spec.kind != "ExternalName" && !self.spec.selector.is_empty()
    }

    /// Whether it is headless.
    pub fn is_headless(&self) -> bool {
        matches!(self.spec.cluster_ip.as_str(), "" | "None")
    }

    /// Whether it selects a Pod with these labels.
    pub fn fits(&self, labels: &Texts) -> bool {
        self.selects() && self.spec.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// A Pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Pod {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObservedMetadata,
    /// The spec.
    #[serde(default)]
    pub spec: PodSpec,
    /// The status.
    #[serde(default)]
    pub status: PodStatus,
}

/// The metadata fields that the controllers read.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ObservedMetadata {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// Its labels.
    pub labels: Texts,
    /// The time of its creation.
    pub creation_timestamp: Option<Timestamp>,
    /// The start of its deletion.
    pub deletion_timestamp: Option<Timestamp>,
}

/// The spec of a Pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Its node.
    pub node_name: String,
    /// Its host name.
    pub hostname: String,
    /// Its subdomain, which is the name of a headless Service.
    pub subdomain: String,
    /// Its containers.
    pub containers: Vec<Container>,
    /// Its init containers, including sidecars.
    pub init_containers: Vec<Container>,
}

/// A container of a Pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// `Always` for a sidecar.
    pub restart_policy: Option<String>,
    /// Its ports.
    pub ports: Vec<ContainerPort>,
}

/// A port of a container.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    /// Its name; may be empty.
    pub name: String,
    /// Its number.
    pub container_port: i32,
    /// For instance `TCP`.
    pub protocol: String,
}

/// The status of a Pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// For instance `Running`.
    pub phase: String,
    /// Its first address.
    #[serde(rename = "podIP")]
    pub pod_ip: String,
    /// All of its addresses.
    #[serde(rename = "podIPs")]
    pub pod_ips: Vec<PodAddress>,
    /// The conditions.
    pub conditions: Vec<PodCondition>,
}

/// An address of a Pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct PodAddress {
    /// The address.
    pub ip: String,
}

/// A condition of a Pod.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PodCondition {
    /// For instance `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The time of its last change.
    pub last_transition_time: Option<Timestamp>,
}

impl Pod {
    /// The condition `Ready`.
    pub fn readiness(&self) -> Option<&PodCondition> {
        self.status.conditions.iter().find(|condition| condition.kind == "Ready")
    }

    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        self.readiness().is_some_and(|condition| condition.status == "True")
    }

    /// Whether it is being deleted.
    pub fn is_ending(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether it has an address and has not terminated.
    pub fn has_address(&self) -> bool {
        let has_ended = matches!(self.status.phase.as_str(), "Failed" | "Succeeded");
        let has_some = !self.status.pod_ip.is_empty() || !self.status.pod_ips.is_empty();
        has_some && !has_ended
    }

    /// Its host name in a headless Service.
    pub fn hostname(&self, service: &Service) -> Option<&str> {
        let is_named = !self.spec.hostname.is_empty() && self.spec.subdomain == service.name();
        is_named.then_some(self.spec.hostname.as_str())
    }

    /// The container port of a Service port.
    pub fn port(&self, wanted: &ServicePort) -> Option<i32> {
        let name = match &wanted.target_port {
            TargetPort::Number(number) => return Some(*number),
            TargetPort::Name(name) => name,
        };
        let beside = self.spec.init_containers.iter();
        let beside = beside.filter(|container| container.restart_policy.as_deref() == Some("Always"));
        let ports = self.spec.containers.iter().chain(beside).flat_map(|container| &container.ports);
        let mut fitting = ports.filter(|port| port.name == *name && port.protocol == wanted.protocol);
        fitting.next().map(|port| port.container_port)
    }

    /// Its addresses, parsed.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.status.pod_ips.iter().filter_map(|address| parse_address(&address.ip))
    }

    /// A reference to it.
    pub fn reference(&self) -> Reference {
        Reference {
            kind: Some("Pod".to_owned()),
            namespace: Some(self.metadata.namespace.clone()),
            name: Some(self.metadata.name.clone()),
            uid: Some(self.metadata.uid.clone()),
            ..Reference::default()
        }
    }
}

/// Parses an address that may have leading zeros.
pub fn parse_address(text: &str) -> Option<IpAddr> {
    let plain = || {
        let part = |part: &str| part.parse::<u8>().ok().map(|number| number.to_string());
        text.split('.').map(part).collect::<Option<Vec<_>>>()?.join(".").parse().ok()
    };
    text.parse().ok().or_else(plain).map(|address: IpAddr| address.to_canonical())
}
