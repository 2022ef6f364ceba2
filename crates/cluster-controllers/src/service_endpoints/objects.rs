//! The objects that endpoints are made into.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::{Deserialize, Serialize};

use super::view::Texts;

/// The label of a slice that names its Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label of a slice that names its controller.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The label of what belongs to a Service without an address.
pub const HEADLESS: &str = "service.kubernetes.io/headless";
/// The annotation with the time of the change that endpoints follow.
pub const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// The annotation that was written by elections of old.
pub const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// The metadata of an object, without what only its server needs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The prefix of its name, where the server generates the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_name: Option<String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Its revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// When its deletion began.
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

/// A slice of the endpoints of a Service.
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
    /// The ports that all of them have.
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
    /// Its name; empty for one that is not there yet.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// One of its labels.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// Its ports in an order that says nothing.
    pub fn sorted_ports(&self) -> Vec<Port> {
        sorted(self.ports.clone())
    }
}

/// Ports in an order that says nothing.
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
    /// How it is.
    #[serde(default)]
    pub conditions: Conditions,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<Reference>,
    /// The topology of old versions.
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

/// How an endpoint is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Conditions {
    /// It takes traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// It would take traffic, even if it is on its way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// It is on its way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminating: Option<bool>,
}

/// Topology hints of an endpoint.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hints {
    /// Those in these zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub for_zones: Vec<Named>,
    /// Those on these nodes.
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
    /// The name that it has in the Service.
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
    /// Its revision, which says nothing about what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// A part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
}

impl Reference {
    /// Whether both point to the same.
    pub fn is_same(a: Option<&Self>, b: Option<&Self>) -> bool {
        let bare = |reference: Option<&Self>| {
            reference.map(|reference| Self { resource_version: None, ..reference.clone() })
        };
        bare(a) == bare(b)
    }
}

/// The endpoints of a Service in their older form.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Endpoints {
    /// Its metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// Addresses with the ports that all of them have.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub subsets: Vec<Subset>,
}

/// Addresses with the ports that all of them have.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subset {
    /// Those that are ready.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Those that are not.
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
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<Reference>,
}

/// A port of a subset.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubsetPort {
    /// The name that it has in the Service.
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

/// The owner reference of the object that endpoints are made from, as their controller.
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

/// The prefix of a slice's name, where it leaves room for a dash.
pub fn prefix(name: &str) -> String {
    const LONGEST: usize = 253;
    if name.len() < LONGEST { format!("{name}-") } else { name.to_owned() }
}

/// Labels or annotations as they are written: nothing where there are none.
pub fn some(texts: Texts) -> Option<Texts> {
    Some(texts).filter(|texts| !texts.is_empty())
}

/// Something that has to be done with slices.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Make this one.
    Create(Slice),
    /// Bring the one of this name to this state.
    Update(Slice),
    /// Delete this one.
    Delete(Slice),
}
