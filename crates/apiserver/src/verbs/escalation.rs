//! Privilege escalation check: writing a role or binding needs the rights that it grants.

use kinds::rbac::{self, GROUP, PolicyRule, RoleRef, missing, names_of_missing, not_found};
use model::error::{Error, quote};
use serde_json::{Value, json};

use super::{Call, metadata};
use crate::auth::rbac::{RbacKind, of};
use crate::auth::{AuthorizerAttributes, MASTERS};
use crate::registry::Object;
use crate::request::path::ResourcePath;

/// Refuses a role or binding that grants more rights than the caller has.
pub fn check(call: &Call, new: &Object, old: Option<&Object>) -> Result<(), Error> {
    let Some(kind) = RbacKind::of(&call.resource_type) else { return Ok(()) };
    if call.caller.is_in(MASTERS) || old.is_some_and(|old| changes_only_references(new, old)) {
        return Ok(());
    }
    if kind.is_binding() { check_binding(call, new) } else { check_role(call, new, old) }
}

/// Whether only owner references or finalizers change, which the garbage collector must be able to do.
fn changes_only_references(new: &Object, old: &Object) -> bool {
    let rest = |object: &Object| {
        let mut object = object.clone();
        for key in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
            metadata::remove(&mut object, key);
        }
        object
    };
    rest(new) == rest(old)
}

fn check_role(call: &Call, new: &Object, old: Option<&Object>) -> Result<(), Error> {
    let path = ResourcePath { version: "*".to_owned(), subresource: String::new(), ..call.path.clone() };
    if may(call, "escalate", &path) {
        return Ok(());
    }
    let rules = new.get("rules").cloned().unwrap_or_default();
    let rules: Vec<PolicyRule> = serde_json::from_value(rules).unwrap_or_default();
    confirm(call, new, &rules)?;
    if has_aggregation(new) || old.is_some_and(has_aggregation) {
        let everything = json!([
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]);
        let everything: Vec<PolicyRule> = serde_json::from_value(everything).unwrap_or_default();
        let why = "must have cluster-admin privileges to use the aggregationRule";
        confirm(call, new, &everything).map_err(|_| forbidden(call, new, why.to_owned()))?;
    }
    Ok(())
}

fn has_aggregation(role: &Object) -> bool {
    let selectors = role.get("aggregationRule").and_then(|rule| rule.get("clusterRoleSelectors"));
    selectors.and_then(Value::as_array).is_some_and(|selectors| !selectors.is_empty())
}

fn check_binding(call: &Call, new: &Object) -> Result<(), Error> {
    let reference = new.get("roleRef").cloned().unwrap_or_default();
    let group = reference.get("apiGroup").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Ok(role) = serde_json::from_value::<RoleRef>(reference) else { return Ok(()) };
    let resource = match &*role.kind {
        "ClusterRole" => Some("clusterroles"),
        "Role" => Some("roles"),
        _ => None,
    };
    let path = |resource: &str| ResourcePath {
        group,
        version: "*".to_owned(),
        resource: resource.to_owned(),
        namespace: call.namespace().to_owned(),
        name: role.name.to_string(),
        ..ResourcePath::default()
    };
    if resource.is_some_and(|resource| may(call, "bind", &path(resource))) {
        return Ok(());
    }
    if resource.is_none() {
        let message = format!("unsupported role reference kind: {}", quote(&role.kind));
        return Err(Error::Failed { message });
    }
    let found = call.api.rbac.index().role(call.namespace(), &role);
    let given = found.ok_or_else(|| Error::NotFound {
        group: GROUP.to_owned(),
        // Kubernetes names the binding here, not the role.
        resource: call.resource_type.plural.clone(),
        name: role.name.to_string(),
    })?;
    confirm(call, new, &given.rules)
}

fn may(call: &Call, verb: &str, path: &ResourcePath) -> bool {
    call.api.authorizer.decide(&call.caller, AuthorizerAttributes::Resource { verb, path }).is_allowed()
}

fn confirm(call: &Call, object: &Object, given: &[PolicyRule]) -> Result<(), Error> {
    let caller = &call.caller;
    let (held, lacking) = call.api.rbac.index().rules_of(of(caller), call.namespace());
    let missing = missing(&held, given);
    if missing.is_empty() {
        return Ok(());
    }
    let groups: Vec<String> = caller.groups.iter().map(|group| model::error::quote(group)).collect();
    let mut message = format!(
        "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        model::error::quote(&caller.name),
        groups.join(" "),
        names_of_missing(&missing),
    );
    if !lacking.is_empty() {
        message = format!("{message}; resolution errors: [{}]", not_found(&lacking, rbac::Words::Plural));
    }
    Err(forbidden(call, object, message))
}

fn forbidden(call: &Call, object: &Object, message: String) -> Error {
    Error::Forbidden {
        group: GROUP.to_owned(),
        resource: call.resource_type.plural.clone(),
        name: metadata::text(object, "name").to_owned(),
        message,
    }
}
