//! The objects that every server has before it answers its first request.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use model::error::Error;
use serde_json::json;

use crate::api::ApiServer;
use crate::auth::{Connection, Identity};

/// The namespaces that Kubernetes makes by itself.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Makes what is missing, through the same pipeline as everyone.
pub(crate) async fn create_objects(api: &ApiServer) -> Result<(), Error> {
    if !api.has_namespaces() {
        return Ok(());
    }
    for name in NAMESPACES {
        create(api, "/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
    }
    Ok(())
}

async fn create(api: &ApiServer, path: &str, object: &serde_json::Value) -> Result<(), Error> {
    let itself = Identity::authenticated("system:apiserver", ["system:masters".to_owned()]);
    let request = Request::post(path)
        .body(Full::new(Bytes::from(object.to_string())))
        .map_err(|error| Error::Internal { message: error.to_string() })?;
    let response = api.answer(&Connection::InProcess(itself), request).await;
    match response.status().as_u16() {
        201 | 409 => Ok(()),
        code => {
            Err(Error::Internal { message: format!("{path}: the first objects could not be made: {code}") })
        }
    }
}
