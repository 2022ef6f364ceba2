//! ComponentStatuses for old clients. They are not stored: the components are this server and its database.

use bytes::Bytes;
use http::{Response, StatusCode};
use model::Revision;
use model::error::Error;
use serde_json::{Value, json};

use super::Call;
use super::list::ListMetadata;
use crate::body::Body;
use crate::render;

pub async fn get(call: &Call) -> Result<Response<Body>, Error> {
    let name = &call.path.name;
    let found = statuses(call).await.into_iter().find(|status| status["metadata"]["name"] == *name);
    let found = found.ok_or_else(|| Error::NotFound {
        group: String::new(),
        resource: call.resource_type.singular.clone(),
        name: name.clone(),
    })?;
    render::object(call, StatusCode::OK, &bytes(&found))
}

pub async fn list(call: &Call) -> Result<Response<Body>, Error> {
    let metadata = ListMetadata { revision: Revision::ZERO, continue_token: None, remaining: None };
    render::list(call, &metadata, statuses(call).await.iter().map(bytes).collect())
}

/// The components under Kubernetes' names: the database is called etcd.
async fn statuses(call: &Call) -> Vec<Value> {
    let database = match call.api.store.clock().await {
        Ok(_) => ("True", "ok"),
        Err(_) => ("False", "the database is unavailable"),
    };
    [
        ("scheduler", ("False", "no scheduler belongs to this server")),
        ("controller-manager", ("False", "no controller manager belongs to this server")),
        ("etcd-0", database),
    ]
    .map(|(name, (status, message))| {
        let condition = json!({"type": "Healthy", "status": status, "message": message});
        json!({"metadata": {"name": name}, "conditions": [condition]})
    })
    .into()
}

fn bytes(status: &Value) -> Bytes {
    status.to_string().into()
}
