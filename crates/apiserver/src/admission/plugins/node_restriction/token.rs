//! TokenRequests of nodes on behalf of Pods.

use model::error::{Error, quote};
use model::object::{items, text, text_in};
use serde_json::Value;

use super::not_found;
use crate::admission::AdmissionAttributes;
use crate::auth::AuthorizerAttributes;
use crate::registry::Object;
use crate::request::path::ResourcePath;

/// A node may request tokens only for Pods that are bound to it.
pub async fn check(
    request: &AdmissionAttributes<'_>,
    node: &str,
    object: Option<&Object>,
) -> Result<(), Error> {
    let refuse = |message: String| request.forbidden(object, message);
    let Some(asked) = object else { return Ok(()) };
    let bound = |key: &str| text(asked, &["spec", "boundObjectRef", key]);
    if bound("apiVersion") != "v1" || bound("kind") != "Pod" || bound("name").is_empty() {
        return Err(refuse("node requested token not bound to a pod".to_owned()));
    }
    if bound("uid").is_empty() {
        return Err(refuse("node requested token with a pod binding without a uid".to_owned()));
    }
    let found = request.look_up("", "pods", request.namespace(), bound("name")).await?;
    let pod = found.ok_or_else(|| not_found("pods", bound("name")))?;
    if text(&pod, &["metadata", "uid"]) != bound("uid") {
        return Err(refuse(format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            bound("uid")
        )));
    }
    if text(&pod, &["spec", "nodeName"]) != node {
        return Err(refuse("node requested token bound to a pod scheduled on a different node".to_owned()));
    }
    let audiences: Vec<&str> =
        items(asked, &["spec", "audiences"]).iter().filter_map(Value::as_str).collect();
    let audience = match audiences.as_slice() {
        [] => "",
        [only] => only,
        _ => return Err(refuse("node may only request 0 or 1 audiences".to_owned())),
    };
    if has_audience(request, &pod, audience).await.map_err(refuse)? || may_ask(request, audience) {
        return Ok(());
    }
    let user = &request.call.caller.name;
    Err(refuse(format!(
        "audience {} not found in pod spec volume, {user} is not authorized to request tokens for this audience",
        quote(audience)
    )))
}

/// Whether the node may request tokens of this audience without a Pod.
fn may_ask(request: &AdmissionAttributes<'_>, audience: &str) -> bool {
    let path = ResourcePath {
        version: "v1".to_owned(),
        namespace: request.namespace().to_owned(),
        resource: audience.to_owned(),
        name: request.name.to_owned(),
        ..ResourcePath::default()
    };
    let attributes =
        AuthorizerAttributes::Resource { verb: "request-serviceaccounts-token-audience", path: &path };
    request.call.api.authorizer.decide(&request.call.caller, attributes).is_allowed()
}

/// Whether a volume of the Pod uses a token of this audience.
async fn has_audience(
    request: &AdmissionAttributes<'_>,
    pod: &Object,
    audience: &str,
) -> Result<bool, String> {
    let mut problems = Vec::new();
    for volume in items(pod, &["spec", "volumes"]) {
        let mut sources = volume["projected"]["sources"].as_array().into_iter().flatten();
        let is_wanted = |source: &Value| {
            source["serviceAccountToken"].is_object()
                && text_in(&source["serviceAccountToken"], "audience") == audience
        };
        if sources.any(is_wanted) {
            return Ok(true);
        }
        match driver_wants(request, pod, volume, audience).await {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(problem) => problems.push(problem.to_string()),
        }
    }
    match problems.as_slice() {
        [] => Ok(false),
        [only] => Err(format!("error validating audience {}: {only}", quote(audience))),
        several => Err(format!("error validating audience {}: [{}]", quote(audience), several.join(", "))),
    }
}

/// Whether the CSI driver of a volume uses a token of this audience.
async fn driver_wants(
    request: &AdmissionAttributes<'_>,
    pod: &Object,
    volume: &Value,
    audience: &str,
) -> Result<bool, Error> {
    let claim = if volume["ephemeral"].is_object() {
        format!("{}-{}", text(pod, &["metadata", "name"]), text_in(volume, "name"))
    } else {
        text_in(&volume["persistentVolumeClaim"], "claimName").to_owned()
    };
    let mut driver = text_in(&volume["csi"], "driver").to_owned();
    if !claim.is_empty() {
        let found = request.look_up("", "persistentvolumeclaims", request.namespace(), &claim).await?;
        let found = found.ok_or_else(|| not_found("persistentvolumeclaim", &claim))?;
        let name = text(&found, &["spec", "volumeName"]);
        let found = request.look_up("", "persistentvolumes", "", name).await?;
        let found = found.ok_or_else(|| not_found("persistentvolume", name))?;
        driver = text(&found, &["spec", "csi", "driver"]).to_owned();
    }
    if driver.is_empty() {
        return Ok(false);
    }
    let found = request.look_up("storage.k8s.io", "csidrivers", "", &driver).await?;
    let found = found.ok_or_else(|| Error::NotFound {
        group: "storage.k8s.io".to_owned(),
        resource: "csidriver".to_owned(),
        name: driver,
    })?;
    Ok(items(&found, &["spec", "tokenRequests"]).iter().any(|asked| text_in(asked, "audience") == audience))
}
