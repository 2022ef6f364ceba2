//! The loopback client: requests of the server to itself, in process, through the same pipeline as every other request.

use std::fmt::Display;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::Full;
use model::error::Error;

use crate::api::ApiServer;
use crate::auth::{Connection, Identity};
use crate::body::Body;
use crate::verbs::SERVER;

/// Sends a request with a JSON body, or a merge patch, and returns the status code of the response.
pub(crate) async fn request(api: &ApiServer, method: Method, path: &str, body: String) -> Result<u16, Error> {
    Ok(send(api, method, path, body).await?.status().as_u16())
}

/// Sends a server-side apply and returns the status code of the response.
pub(crate) async fn apply(api: &ApiServer, path: &str, body: String) -> Result<u16, Error> {
    let media_type = "application/apply-patch+yaml";
    Ok(send_as(media_type, api, Method::PATCH, path, body).await?.status().as_u16())
}

/// Sends a request with a JSON body, or a merge patch, and returns the response.
pub(super) async fn send(
    api: &ApiServer,
    method: Method,
    path: &str,
    body: String,
) -> Result<Response<Body>, Error> {
    let media_type =
        if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    send_as(media_type, api, method, path, body).await
}

async fn send_as(
    media_type: &str,
    api: &ApiServer,
    method: Method,
    path: &str,
    body: String,
) -> Result<Response<Body>, Error> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, media_type)
        .header(USER_AGENT, field_manager(path))
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| failed(path, &error))?;
    Ok(api.answer(&Connection::InProcess(Identity::server()), request).await)
}

/// The field manager of the objects that the server writes: Kubernetes has a name of its own for those of flow control.
fn field_manager(path: &str) -> &'static str {
    if path.starts_with("/apis/flowcontrol.apiserver.k8s.io/") {
        "api-priority-and-fairness-config-producer-v1"
    } else {
        SERVER
    }
}

/// The error of a loopback request that failed.
pub(super) fn failed(path: &str, reason: &dyn Display) -> Error {
    Error::Internal { message: format!("loopback request to {path} failed: {reason}") }
}
