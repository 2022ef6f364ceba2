//! Endpoints and EndpointSlices.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::{Deserialize, Serialize};

use super::view::Texts;

/// The label with the Service of a slice.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label with the controller of a slice.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The label of the endpoints of a headless Service.
pub const HEADLESS: &str = "service.kubernetes.io/headless";
/// The annotation with the time of the change that triggered the last update.
pub const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// The annotation of the former leader election.
pub const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// The metadata fields that the controllers read and write.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The prefix of a generated name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_name: Option<String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Its resource version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// The start of its deletion.
    #[serde(default, skip_serializing)]
    pub deletion_timestamp: Option<Timestamp>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Texts>,
    /// Its annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Texts>,
    /// Its owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_references: Option<Vec<OwnerReference>>,
    /// Its finalizers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizers: Option<Vec<String>>,
}

/// An EndpointSlice.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Slice {
    /// Its metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// `IPv4`, `IPv6` or `FQDN`.
    #[serde(default)]
    pub address_type: String,
    /// The endpoints.
    #[serde(default, deserialize_with = "null_is_empty", serialize_with = "empty_is_null")]
    pub endpoints: Vec<Endpoint>,
    /// The ports of all its endpoints.
    #[serde(default, deserialize_with = "null_is_empty", serialize_with = "empty_is_null")]
    pub ports: Vec<Port>,
}

fn null_is_empty<'a, T: Deserialize<'a>, D: serde::Deserializer<'a>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn empty_is_null<T: Serialize, S: serde::Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    if list.is_empty() { to.serialize_none() } else { list.serialize(to) }
}

impl Slice {
    /// Its name; empty before it is created.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// One of its labels.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// Its ports, sorted for comparison.
    pub fn sorted_ports(&self) -> Vec<Port> {
        sorted(self.ports.clone())
    }
}

/// Ports, sorted for comparison.
pub fn sorted(mut ports: Vec<Port>) -> Vec<Port> {
    ports.sort();
    ports
}

/// An endpoint of a slice.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Its addresses.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Its conditions.
    #[serde(default)]
    pub conditions: Conditions,
    /// Its host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The reference to the Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<Reference>,
    /// The topology of `v1beta1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated_topology: Option<Texts>,
    /// Its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Its zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Its topology hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Hints>,
}

/// The conditions of an endpoint.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Conditions {
    /// Whether it takes traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Whether it can take traffic, even while terminating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// Whether it is terminating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminating: Option<bool>,
}

/// Topology hints of an endpoint.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hints {
    /// The zones that should use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub for_zones: Vec<Named>,
    /// The nodes that should use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub for_nodes: Vec<Named>,
}

/// A zone or a node.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Named {
    /// Its name.
    pub name: String,
}

/// A port of endpoints.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// The name of the Service port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// For instance `TCP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The application protocol, such as `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}

/// A reference to an object.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The version of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Its resource version, which comparisons ignore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// A field of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
}

impl Reference {
    /// Whether both refer to the same object.
    pub fn is_same(a: Option<&Self>, b: Option<&Self>) -> bool {
        let bare = |reference: Option<&Self>| {
            reference.map(|reference| Self { resource_version: None, ..reference.clone() })
        };
        bare(a) == bare(b)
    }
}

/// Endpoints.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Endpoints {
    /// Its metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// Addresses with common ports.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub subsets: Vec<Subset>,
}

/// Addresses with common ports.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subset {
    /// Ready addresses.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Unready addresses.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub not_ready_addresses: Vec<Address>,
    /// The ports.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<SubsetPort>,
}

/// An address of a subset.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    /// The address.
    pub ip: String,
    /// Its host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The reference to the Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<Reference>,
}

/// A port of a subset.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubsetPort {
    /// The name of the Service port.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The number.
    #[serde(default)]
    pub port: i32,
    /// For instance `TCP`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// The application protocol, such as `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}

/// The controller owner reference to a Service or Endpoints.
pub fn owned_by(kind: &str, name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The prefix of a slice's name, with room for a dash.
pub fn prefix(name: &str) -> String {
    const LONGEST: usize = 253;
    if name.len() < LONGEST { format!("{name}-") } else { name.to_owned() }
}

/// Labels or annotations; `None` if empty.
pub fn some(texts: Texts) -> Option<Texts> {
    Some(texts).filter(|texts| !texts.is_empty())
}

/// A write of a slice.
#[derive(Debug, PartialEq)]
pub enum SliceStep {
    /// Create it.
    Create(Slice),
    /// Update the slice of this name.
    Update(Slice),
    /// Delete it.
    Delete(Slice),
}
