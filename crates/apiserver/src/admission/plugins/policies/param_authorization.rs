//! Authorization of policy parameters: writing a policy or binding needs read access to its parameters, because expressions
//! can disclose them.

use model::error::{Error, FieldError};
use model::object::text_in;
use serde_json::Value;

use super::{GROUP, params};
use crate::admission::{AdmissionAttributes, AdmissionTarget, Operation, Phases, Plugin, PluginResult};
use crate::auth::AuthorizerAttributes;
use crate::registry::Object;
use crate::request::path::ResourcePath;

/// Always enabled: it checks permissions, not objects.
pub(in super::super) struct ParamAuthorization;

const POLICIES: [&str; 2] = ["validatingadmissionpolicies", "mutatingadmissionpolicies"];
const BINDINGS: [&str; 2] = ["validatingadmissionpolicybindings", "mutatingadmissionpolicybindings"];

impl Plugin for ParamAuthorization {
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases {
        let of = target.resource_type;
        let is_about = |plurals: &[&str]| of.group == GROUP && plurals.contains(&of.plural.as_str());
        let is_whole = target.subresource.is_empty() && target.operation != Operation::Delete;
        Phases::validating(is_whole && (is_about(&POLICIES) || is_about(&BINDINGS)))
    }

    fn validate<'a>(
        &'a self,
        request: &'a AdmissionAttributes<'_>,
        object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        let Some(object) = object else { return PluginResult::OK };
        let is_policy = POLICIES.contains(&request.call.resource_type.plural.as_str());
        let field = if is_policy { "paramKind" } else { "paramRef" };
        let Some(given) = spec(object, field) else { return PluginResult::OK };
        let is_same = |old: &Object| {
            spec(old, field) == Some(given) && spec(old, "policyName") == spec(object, "policyName")
        };
        if request.old.is_some_and(is_same) || request.call.caller.is_in("system:masters") {
            return PluginResult::OK;
        }
        PluginResult::later(async move {
            let refused = match is_policy {
                true => of_policy(request, given),
                false => of_binding(request, object, given).await?,
            };
            let Some(problem) = refused else { return Ok(()) };
            let error = FieldError::forbidden(format!("spec.{field}"), problem);
            Err(request.call.resource_type.invalid(request.name, vec![error]))
        })
    }
}

fn spec<'a>(object: &'a Object, field: &str) -> Option<&'a Value> {
    object.get("spec")?.get(field).filter(|value| !value.is_null())
}

/// The refusal if the caller may not read all objects of the parameter kind.
fn of_policy(request: &AdmissionAttributes<'_>, kind: &Value) -> Option<String> {
    let (api_version, kind) = (text_in(kind, "apiVersion"), text_in(kind, "kind"));
    let path = ResourcePath {
        name: "*".to_owned(),
        namespace: "*".to_owned(),
        ..path(request, api_version, kind).0
    };
    (!is_allowed(request, "get", &path)).then(|| {
        format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={kind}, \
             apiVersion={api_version})",
            user(request)
        )
    })
}

/// The refusal if the caller may not read the parameters of a binding.
async fn of_binding(
    request: &AdmissionAttributes<'_>,
    binding: &Object,
    reference: &Value,
) -> Result<Option<String>, Error> {
    let name = spec(binding, "policyName").and_then(Value::as_str).unwrap_or_default();
    let plural = if request.call.resource_type.plural == BINDINGS[0] { POLICIES[0] } else { POLICIES[1] };
    let policy = request.look_up(GROUP, plural, "", name).await?;
    let kind = policy.as_ref().and_then(|policy| spec(policy, "paramKind"));
    let anything = || {
        (ResourcePath { group: "*".to_owned(), resource: "*".to_owned(), ..ResourcePath::default() }, true)
    };
    let (path, is_known) =
        kind.map_or_else(anything, |kind| path(request, text_in(kind, "apiVersion"), text_in(kind, "kind")));
    let path = ResourcePath {
        name: text_in(reference, "name").to_owned(),
        namespace: text_in(reference, "namespace").to_owned(),
        ..path
    };
    let verb = if path.name.is_empty() { "list" } else { "get" };
    if is_allowed(request, verb, &path) {
        return Ok(None);
    }
    let user = user(request);
    let all =
        format!("user {user} does not have \"{verb}\" permission for all groups, versions and resources");
    Ok(Some(match (&policy, is_known) {
        (None, _) => {
            format!("unable to get policy {name} to determine minimum required permissions and {all}")
        }
        (_, false) => {
            format!("unable to resolve paramKind to determine minimum required permissions and {all}")
        }
        _ => format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef"),
    }))
}

/// The resource of a kind, and whether it exists; if not, all resources of its group.
fn path(request: &AdmissionAttributes<'_>, api_version: &str, kind: &str) -> (ResourcePath, bool) {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let found = params::kind_of(&request.call.api, api_version, kind);
    let path = ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: found.as_ref().map_or("*", |of| &of.plural).to_owned(),
        ..ResourcePath::default()
    };
    (path, found.is_ok())
}

fn is_allowed(request: &AdmissionAttributes<'_>, verb: &str, path: &ResourcePath) -> bool {
    let (api, caller) = (&request.call.api, &request.call.caller);
    api.authorizer.decide(caller, AuthorizerAttributes::Resource { verb, path }).is_allowed()
}

/// The caller in the format of this message in Kubernetes.
fn user(request: &AdmissionAttributes<'_>) -> String {
    let caller = &request.call.caller;
    format!("&{{{} {} [{}] map[]}}", caller.name, caller.uid, caller.groups.join(" "))
}
