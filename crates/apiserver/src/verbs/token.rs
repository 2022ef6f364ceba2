//! TokenRequest: the token subresource of ServiceAccounts. TokenRequests are not stored.

use std::sync::Arc;

use http::{Response, StatusCode};
use model::error::{Error, FieldError, quote};
use model::object::text_in;
use model::{ObjectKey, Resource};
use serde_json::{Value, json};
use store::Stored;

use super::body;
use super::managed_fields::{FieldManager, set_managers};
use super::metadata::{self, set_text, time};
use super::options::WriteOptions;
use super::write::now;
use super::{Call, create, namespace, store_error};
use crate::admission::AdmissionAttributes;
use crate::auth::accounts::{Bound, Reference};
use crate::body::Body;
use crate::registry::{Object, Served};
use crate::warnings::Warnings;
use crate::{built_in, render};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
/// Default, minimum and maximum lifetime in seconds.
const LIFETIMES: [i64; 3] = [3600, 600, 1 << 32];

/// Serves a TokenRequest.
pub async fn create_token(call: Call) -> Result<Response<Body>, Error> {
    let options = WriteOptions::from_query(&call.query, "CreateOptions")?;
    let sent = call.about(Arc::new(Served::without_path(built_in::without_path(GROUP, KIND))));
    let mut request = body::decode(&sent, options.field_validation)?;
    set_default_lifetime(&mut request);
    call.trail.sent(None, || body::logged(&sent, request.clone()));
    complete(&mut request);
    let made = now();
    let tracked = FieldManager::new(&sent, time(made)).track(None, &mut request);
    create::check_place(&call, &request)?;
    check_name(&call, &request)?;
    let admitted =
        AdmissionAttributes::create(&call, &call.path.name, options.dry_run).shown_as(&sent.resource_type);
    admitted.admit_whole(&mut request).await?;
    let account = match find(&call, "serviceaccounts", call.namespace(), &call.path.name).await {
        Err(missing) => {
            namespace::check(&call, &call.path.name).await?;
            return Err(missing);
        }
        found => found?,
    };
    let given = metadata::text(&request, "uid");
    if !given.is_empty() && given != account.uid.0 {
        let message = format!(
            "the UID in the token request ({given}) does not match the UID of the service account ({})",
            account.uid.0
        );
        return Err(conflict(GROUP, KIND, &call.path.name, message));
    }
    let accounts = call.api.accounts();
    if audiences(&request).is_empty() {
        spec(&mut request)["audiences"] = json!(accounts.settings.audiences);
    }
    for (key, value) in
        [("name", call.path.name.as_str()), ("namespace", call.namespace()), ("uid", &account.uid.0)]
    {
        set_text(&mut request, key, value);
    }
    set_text(&mut request, "creationTimestamp", &time(made));
    let seconds = lifetime(&mut request, accounts.settings.longest, &call.warnings)?;
    let serviceaccount = Reference { name: call.path.name.clone(), uid: account.uid.0 };
    let namespace = call.namespace().to_owned();
    let mut bound = Bound { namespace, serviceaccount, ..Bound::default() };
    bind(&call, &request, &mut bound).await?;
    let (token, id) = accounts.issue(bound, &audiences(&request), seconds, made.as_second())?;
    call.trail.annotate("authentication.kubernetes.io/issued-credential-id", || id);
    let until = made.saturating_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(made);
    request.insert("status".to_owned(), json!({"token": token, "expirationTimestamp": time(until)}));
    set_managers(&mut request, &tracked);
    let bytes = serde_json::to_vec(&request).expect("a JSON value always encodes");
    render::object(&sent, StatusCode::CREATED, &bytes.into())
}

fn spec(request: &mut Object) -> &mut Value {
    let spec = request.entry("spec").or_insert_with(|| json!({}));
    if !spec.is_object() {
        *spec = json!({});
    }
    spec
}

/// Sets the default lifetime.
fn set_default_lifetime(request: &mut Object) {
    let spec = spec(request);
    if spec["expirationSeconds"].is_null() {
        spec["expirationSeconds"] = LIFETIMES[0].into();
    }
}

/// Sets the fields that Kubernetes shows empty.
fn complete(request: &mut Object) {
    let spec = spec(request);
    if spec["audiences"].is_null() {
        spec["audiences"] = Value::Null;
    }
    if spec["boundObjectRef"].is_null() {
        spec["boundObjectRef"] = Value::Null;
    }
    request.remove("status");
}

fn audiences(request: &Object) -> Vec<String> {
    let audiences = request.get("spec").and_then(|spec| spec.get("audiences")).cloned().unwrap_or_default();
    serde_json::from_value(audiences).unwrap_or_default()
}

/// The name in the TokenRequest must be that of the account.
fn check_name(call: &Call, request: &Object) -> Result<(), Error> {
    let (given, account) = (metadata::text(request, "name"), &call.path.name);
    if given.is_empty() || given == account {
        return Ok(());
    }
    let detail = "must match the service account name if specified";
    Err(invalid(account, FieldError::invalid("metadata.name", given, detail)))
}

fn invalid(name: &str, error: FieldError) -> Error {
    Error::Invalid {
        group: GROUP.to_owned(),
        kind: KIND.to_owned(),
        name: name.to_owned(),
        errors: vec![error],
    }
}

fn conflict(group: &str, resource: &str, name: &str, message: String) -> Error {
    let [group, resource, name] = [group, resource, name].map(str::to_owned);
    Error::Conflict { group, resource, name, message }
}

/// The lifetime of the token in seconds.
fn lifetime(request: &mut Object, longest: Option<i64>, warnings: &Warnings) -> Result<i64, Error> {
    let [usual, least, most] = LIFETIMES;
    let asked = spec(request)["expirationSeconds"].as_i64().unwrap_or(usual);
    let refused = |detail: &str| invalid("", FieldError::invalid("spec.expirationSeconds", asked, detail));
    if asked < least {
        return Err(refused("may not specify a duration less than 10 minutes"));
    }
    if asked > most {
        return Err(refused("may not specify a duration larger than 2^32 seconds"));
    }
    match longest.filter(|longest| asked > *longest) {
        Some(longest) => {
            warnings.add(format!("requested expiration of {asked} seconds shortened to {longest} seconds"));
            spec(request)["expirationSeconds"] = longest.into();
            Ok(longest)
        }
        None => Ok(asked),
    }
}

/// Resolves the bound object of the token.
async fn bind(call: &Call, request: &Object, bound: &mut Bound) -> Result<(), Error> {
    let reference = request.get("spec").and_then(|spec| spec.get("boundObjectRef"));
    let Some(reference) = reference.filter(|reference| !reference.is_null()) else { return Ok(()) };
    let text = |key: &str| text_in(reference, key);
    let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let (resource, namespace) = match kind {
        "Pod" if !version.contains('/') => ("pods", call.namespace()),
        "Secret" if !version.contains('/') => ("secrets", call.namespace()),
        "Node" if !version.contains('/') => ("nodes", ""),
        _ => {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let group = if version.is_empty() && group.is_empty() {
                "/".to_owned()
            } else {
                format!("{group}/{version}")
            };
            return Err(Error::BadRequest {
                message: format!("cannot bind token to object of type {group}, Kind={kind}"),
            });
        }
    };
    let found = find(call, resource, namespace, name).await?;
    if kind == "Pod" {
        bound.node = node_of(call, &found).await?;
    }
    let uid = text("uid");
    if !uid.is_empty() && uid != found.uid.0 {
        let message = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(conflict("", kind, name, message));
    }
    let there = Some(Reference { name: name.to_owned(), uid: found.uid.0 });
    match kind {
        "Pod" => bound.pod = there,
        "Secret" => bound.secret = there,
        _ => bound.node = there,
    }
    Ok(())
}

/// The node of a Pod that runs as this service account.
async fn node_of(call: &Call, pod: &Stored) -> Result<Option<Reference>, Error> {
    let pod: Value = serde_json::from_slice(&pod.value).unwrap_or_default();
    let account = &call.path.name;
    if pod["spec"]["serviceAccountName"].as_str().unwrap_or_default() != account {
        return Err(Error::BadRequest {
            message: format!(
                "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                quote(account)
            ),
        });
    }
    let Some(name) = pod["spec"]["nodeName"].as_str().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let key = ObjectKey::new(&Resource::new("", "nodes"), "", name);
    let node = call.api.store.get(&key, None).await.map_err(store_error)?;
    // A node that does not exist is named without a uid.
    let uid = node.map(|node| node.uid.0).unwrap_or_default();
    Ok(Some(Reference { name: name.to_owned(), uid }))
}

async fn find(call: &Call, resource: &str, namespace: &str, name: &str) -> Result<Stored, Error> {
    let key = ObjectKey::new(&Resource::new("", resource), namespace, name);
    let found = call.api.store.get(&key, None).await.map_err(store_error)?;
    found.ok_or_else(|| Error::NotFound {
        group: String::new(),
        resource: resource.to_owned(),
        name: name.to_owned(),
    })
}
