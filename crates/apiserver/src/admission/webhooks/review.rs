//! AdmissionReviews: requests and responses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::error::{Error, quote};
use model::object::text_in;
use serde_json::{Map, Value, json};

use super::WebhookCall;
use crate::admission::AdmissionAttributes;
use crate::registry::Served;

/// The AdmissionReview for a webhook.
pub(super) fn document(
    request: &AdmissionAttributes<'_>,
    webhook_call: &WebhookCall<'_>,
    version: &str,
    uid: &str,
) -> Value {
    let kind = |of: &Served| json!({"group": of.group, "version": of.version, "kind": of.kind});
    let resource = |of: &Served| json!({"group": of.group, "version": of.version, "resource": of.plural});
    let requested = &request.call.resource_type;
    let mut body = json!({
        "uid": uid,
        "kind": kind(webhook_call.shown),
        "resource": resource(webhook_call.served),
        "requestKind": kind(request.shown),
        "requestResource": resource(requested),
        "operation": request.operation.as_str(),
        "userInfo": user(request),
        "object": webhook_call.object,
        "oldObject": webhook_call.old,
        "dryRun": request.dry_run,
        "options": request.options(),
    });
    // A generated name is known by the second round.
    let given = webhook_call.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
    let texts = [
        ("subResource", request.subresource()),
        ("requestSubResource", request.subresource()),
        ("name", if request.name.is_empty() { given } else { request.name }),
        ("namespace", request.namespace()),
    ];
    for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        body[key] = text.into();
    }
    json!({"kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": body})
}

fn user(request: &AdmissionAttributes<'_>) -> Value {
    let caller = &request.call.caller;
    let mut user = Map::from_iter([("username".to_owned(), Value::from(caller.name.as_str()))]);
    if !caller.uid.is_empty() {
        user.insert("uid".to_owned(), caller.uid.as_str().into());
    }
    if !caller.groups.is_empty() {
        user.insert("groups".to_owned(), caller.groups.clone().into());
    }
    Value::Object(user)
}

/// The response of a webhook.
pub(super) struct ReviewResponse {
    pub allowed: bool,
    pub patch: Option<Value>,
    pub result: Value,
    pub warnings: Vec<String>,
    pub annotations: Map<String, Value>,
}

/// Parses an AdmissionReview response.
///
/// # Errors
/// Kubernetes' message for an invalid response.
pub(super) fn read(
    bytes: &[u8],
    uid: &str,
    version: &str,
    is_mutating: bool,
) -> Result<ReviewResponse, String> {
    let invalid = |problem: &str| format!("received invalid webhook response: {problem}");
    let unreadable = |error: String| {
        format!("failed to call webhook: couldn't get version/kind; json parse error: {error}")
    };
    let review = model::json::parse(bytes).map_err(|error| unreadable(error.to_string()))?.value;
    let text = |value: &Value, key: &str| text_in(value, key).to_owned();
    let response = review.get("response").filter(|response| response.is_object());
    let response = response.ok_or_else(|| invalid("webhook response was absent"))?;
    if version == "v1" {
        let given = text(response, "uid");
        if given != uid {
            return Err(invalid(&format!("expected response.uid={}, got {}", quote(uid), quote(&given))));
        }
        let (kind, api_version) = (text(&review, "kind"), text(&review, "apiVersion"));
        if (kind.as_str(), api_version.as_str()) != ("AdmissionReview", "admission.k8s.io/v1") {
            let slash = if api_version.contains('/') { "" } else { "/" };
            return Err(invalid(&format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {slash}{api_version}, Kind={kind}"
            )));
        }
    }
    let patch = patch(response, version, is_mutating)?;
    let texts = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
    Ok(ReviewResponse {
        allowed: response.get("allowed").and_then(Value::as_bool).unwrap_or(false),
        patch,
        result: response.get("status").cloned().unwrap_or_default(),
        warnings: texts.filter_map(Value::as_str).map(str::to_owned).collect(),
        annotations: response.get("auditAnnotations").and_then(Value::as_object).cloned().unwrap_or_default(),
    })
}

fn patch(response: &Value, version: &str, is_mutating: bool) -> Result<Option<Value>, String> {
    let invalid = |problem: &str| Err(format!("received invalid webhook response: {problem}"));
    let patch = response.get("patch").and_then(Value::as_str).unwrap_or("");
    let kind = response.get("patchType").and_then(Value::as_str);
    if version == "v1" {
        match (is_mutating, patch.is_empty(), kind) {
            (true, false, None) => {
                return invalid("webhook returned response.patch but not response.patchType");
            }
            (true, true, Some(_)) => {
                return invalid("webhook returned response.patchType but not response.patch");
            }
            (true, _, Some("")) => return invalid("webhook returned invalid response.patchType of \"\""),
            (false, false, _) => return invalid("validating webhook may not return response.patch"),
            (false, _, Some(_)) => return invalid("validating webhook may not return response.patchType"),
            _ => {}
        }
    }
    if !is_mutating || patch.is_empty() {
        return Ok(None);
    }
    if let Some(kind) = kind.filter(|kind| *kind != "JSONPatch" && version == "v1") {
        return Err(format!("unsupported patch type {}", quote(kind)));
    }
    let undecodable = |error: String| format!("received undecodable patch in webhook response: {error}");
    let bytes = STANDARD.decode(patch).map_err(|error| undecodable(error.to_string()))?;
    let patch = model::json::parse(&bytes).map_err(|error| undecodable(error.to_string()))?.value;
    Ok(Some(patch).filter(|patch| patch.as_array().is_none_or(|steps| !steps.is_empty())))
}

/// The error of a denial.
pub(super) fn denied(name: &str, result: &Value) -> Error {
    let text = |key: &str| text_in(result, key);
    let by = format!("admission webhook {} denied the request", quote(name));
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = result.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    Error::Decided {
        code: code.filter(|code| (400..600).contains(code)).unwrap_or(400),
        reason: text("reason").to_owned(),
        message,
        details: result.get("details").filter(|details| details.is_object()).cloned(),
    }
}
