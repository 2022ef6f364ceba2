//! `Event` of `audit.k8s.io/v1`: a line of the log.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{Level, Stage};

/// What is known of a request. What is empty is left out of its events.
#[derive(Clone, Debug, Default)]
pub struct Event {
    /// How much of it is logged.
    pub level: Level,
    /// What its events have in common.
    pub id: String,
    /// Path and query, as they came.
    pub uri: String,
    /// What is done, in the words of authorization.
    pub verb: String,
    /// Who asked.
    pub user: User,
    /// As whom they acted.
    pub impersonated: Option<User>,
    /// Where it came from: proxies first, the last of them last.
    pub sources: Vec<String>,
    /// What the client calls itself.
    pub agent: String,
    /// What it is about, unless that is a path.
    pub object: Option<ObjectReference>,
    /// What became of it: a `Status` without kind and version.
    pub status: Option<Value>,
    /// What was sent.
    pub request: Option<Value>,
    /// What was answered.
    pub response: Option<Value>,
    /// When it came.
    pub received: String,
    /// What was noted on its way.
    pub annotations: BTreeMap<String, String>,
}

/// A user, as events have them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct User {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// What tells users of one name apart.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Their groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What else is known of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What a request is about, as events have it.
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
    /// The uid that the client named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Its group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// The version of the group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The version that the client named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// The part of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

impl ObjectReference {
    /// Takes from the metadata of an object that was sent what the path does not say.
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
    /// The line of the log at a stage, with its end.
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

/// Takes the managers of fields out of an object, out of all objects of a list, and out of the rows of a table.
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
