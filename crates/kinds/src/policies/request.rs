//! The variable `request` of policies.

use model::Object;
use serde_json::{Map, Value, json};

/// The user of a request.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The user name.
    pub name: &'a str,
    /// The unique ID; may be empty.
    pub uid: &'a str,
    /// The groups.
    pub groups: &'a [String],
    /// The extra fields of the user, as a map of lists.
    pub extra: &'a Object,
}

/// A kind, or a resource, of an API.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    /// The group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The plural.
    pub plural: &'a str,
}

/// The attributes of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'a> {
    /// The kind of the object, in the version that the policy matches.
    pub kind: Resource<'a>,
    /// The resource, in the version that the policy matches.
    pub resource: Resource<'a>,
    /// The kind in the version of the request.
    pub requested_kind: Resource<'a>,
    /// The resource in the version of the request.
    pub requested: Resource<'a>,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The name; may be empty.
    pub name: &'a str,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
    /// The user.
    pub caller: Caller<'a>,
    /// Whether the request is a dry run.
    pub is_dry_run: bool,
    /// The options of the request, with kind and version.
    pub options: Option<&'a Value>,
}

/// The value of the variable `request`. Empty fields are omitted.
pub fn request_value(facts: &RequestFacts<'_>) -> Object {
    let kind = |of: &Resource<'_>| json!({"group": of.group, "version": of.version, "kind": of.kind});
    let resource =
        |of: &Resource<'_>| json!({"group": of.group, "version": of.version, "resource": of.plural});
    let mut user = Map::new();
    set_text(&mut user, "username", facts.caller.name);
    set_text(&mut user, "uid", facts.caller.uid);
    if !facts.caller.groups.is_empty() {
        user.insert("groups".to_owned(), facts.caller.groups.into());
    }
    if !facts.caller.extra.is_empty() {
        user.insert("extra".to_owned(), Value::Object(facts.caller.extra.clone()));
    }
    let mut request = Map::new();
    request.insert("uid".to_owned(), "".into());
    request.insert("kind".to_owned(), kind(&facts.kind));
    request.insert("resource".to_owned(), resource(&facts.resource));
    set_text(&mut request, "subResource", facts.subresource);
    request.insert("requestKind".to_owned(), kind(&facts.requested_kind));
    request.insert("requestResource".to_owned(), resource(&facts.requested));
    set_text(&mut request, "requestSubResource", facts.subresource);
    set_text(&mut request, "name", facts.name);
    set_text(&mut request, "namespace", facts.namespace);
    request.insert("operation".to_owned(), facts.operation.into());
    request.insert("userInfo".to_owned(), Value::Object(user));
    request.insert("dryRun".to_owned(), facts.is_dry_run.into());
    request.insert("options".to_owned(), facts.options.cloned().unwrap_or_default());
    request
}

fn set_text(object: &mut Object, field: &str, text: &str) {
    if !text.is_empty() {
        object.insert(field.to_owned(), text.into());
    }
}
