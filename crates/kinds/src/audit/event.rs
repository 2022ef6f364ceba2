//! `Event` of `audit.k8s.io/v1`: a line of the audit log.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{Level, Stage};

/// The audit record of a request. Empty fields are omitted from its events.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// The audit level of the request.
    pub level: Level,
    /// The audit ID that its events share.
    pub id: String,
    /// Path and query, as received.
    pub uri: String,
    /// The verb of authorization.
    pub verb: String,
    /// The authenticated user.
    pub user: User,
    /// The impersonated user.
    pub impersonated: Option<User>,
    /// Source addresses: the client and proxies first, the peer last.
    pub sources: Vec<String>,
    /// The user agent.
    pub agent: String,
    /// The requested object; `None` for a nonresource path.
    pub object: Option<ObjectReference>,
    /// The response status: a `Status` without kind and version.
    pub status: Option<Value>,
    /// The request body.
    pub request: Option<Value>,
    /// The response body.
    pub response: Option<Value>,
    /// The time at which the request was received.
    pub received: String,
    /// The annotations of plugins and authorizers.
    pub annotations: BTreeMap<String, String>,
}

/// A user in an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct User {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The unique ID of the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups of the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The extra fields of the user.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The object of a request in an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// The plural name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The uid of the precondition.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Its group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// The version of the group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The resource version of the precondition.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// The subresource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

impl ObjectReference {
    /// Fills empty fields from the metadata of the request body.
    pub fn complete(&mut self, metadata: &Value) {
        let said = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
        for (field, key) in [
            (&mut self.namespace, "namespace"),
            (&mut self.name, "name"),
            (&mut self.uid, "uid"),
            (&mut self.resource_version, "resourceVersion"),
        ] {
            if field.is_empty() {
                *field = said(key);
            }
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: &'static str,
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'a str,
    user: &'a User,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<&'a User>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "<[_]>::is_empty")]
    source_ips: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<&'a ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_object: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_object: Option<&'a Value>,
    request_received_timestamp: &'a str,
    stage_timestamp: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

impl Event {
    /// The event at a stage as a line of the log, with its line break.
    pub fn line(&self, stage: Stage, time: &str) -> Vec<u8> {
        let line = Line {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: self.level.as_str(),
            audit_id: &self.id,
            stage: stage.as_str(),
            request_uri: &self.uri,
            verb: &self.verb,
            user: &self.user,
            impersonated_user: self.impersonated.as_ref(),
            source_ips: &self.sources,
            user_agent: &self.agent,
            object_ref: self.object.as_ref(),
            response_status: self.status.as_ref(),
            request_object: self.request.as_ref(),
            response_object: self.response.as_ref(),
            request_received_timestamp: &self.received,
            stage_timestamp: time,
            annotations: &self.annotations,
        };
        let mut bytes = serde_json::to_vec(&line).expect("texts and values are JSON");
        bytes.push(b'\n');
        bytes
    }
}

/// Removes `managedFields` from an object, from all items of a list, and from the rows of a Table.
pub fn without_managers(mut value: Value) -> Value {
    let forget = |object: &mut Value| {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    };
    forget(&mut value);
    for item in value.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        forget(item);
    }
    for row in value.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        row.get_mut("object").into_iter().for_each(forget);
    }
    value
}
