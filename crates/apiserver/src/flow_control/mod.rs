//! Flow control: the status of FlowSchemas, and the classification of requests.

mod classify;

use std::collections::BTreeSet;
use std::sync::Weak;
use std::time::Duration;

use futures::future::try_join_all;
use model::Resource;
use model::condition::set_condition;
use model::error::{Error, quote};
use serde_json::{Value, json};

use crate::api::{ApiServer, ServerState};
use crate::bootstrap;
use crate::pages::Pages;
use crate::verbs::{creation_time, store_error};

pub(crate) use classify::{Flow, FlowSchemas};

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// The field manager of the conditions, as in Kubernetes.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
/// The condition of a FlowSchema whose PriorityLevelConfiguration is missing.
const DANGLING: &str = "Dangling";
/// Delay before a retry.
const PAUSE: Duration = Duration::from_millis(500);

/// Maintains the condition Dangling of all FlowSchemas until dropped. Several servers may do so concurrently.
pub(crate) async fn run(server: Weak<ServerState>) {
    let Some([mut schemas, mut levels]) = server.upgrade().map(|state| state.flows.changes()) else { return };
    loop {
        let Some(api) = server.upgrade().map(ApiServer::of) else { return };
        let reconciled = reconcile(&api).await;
        drop(api);
        if let Err(error) = reconciled {
            tracing::warn!(%error, "cannot write the status of FlowSchemas; retrying");
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        // The channels close with the server.
        tokio::select! {
            _ = schemas.changed() => {}
            _ = levels.changed() => {}
        }
    }
}

/// Writes missing and outdated conditions.
pub(crate) async fn reconcile(api: &ApiServer) -> Result<(), Error> {
    let all = async |plural| Pages::of(&api.store, Resource::new(GROUP, plural)).all().await;
    let levels = all("prioritylevelconfigurations").await.map_err(store_error)?;
    let schemas = all("flowschemas").await.map_err(store_error)?;
    let levels: BTreeSet<String> = levels.into_iter().map(|level| level.key.name).collect();
    let now = creation_time();
    let told = schemas.iter().filter_map(|schema| {
        let object = serde_json::from_slice(&schema.value).ok()?;
        let condition = condition(&object, &levels, &now)?;
        Some(tell(api, &schema.key.name, condition))
    });
    try_join_all(told).await.map(drop)
}

/// The condition of a schema; `None` if it needs no change.
fn condition(schema: &Value, levels: &BTreeSet<String>, now: &str) -> Option<Value> {
    let level = schema["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default();
    let begin =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {}", quote(level));
    let (status, reason, message) = if levels.contains(level) {
        ("False", "Found", format!("{begin} and it exists"))
    } else {
        ("True", "NotFound", format!("{begin} but there is no such object"))
    };
    let had =
        schema["status"]["conditions"].as_array().and_then(|all| model::condition::condition(all, DANGLING));
    let mut conditions: Vec<Value> = had.cloned().into_iter().collect();
    set_condition(
        &mut conditions,
        json!({
            "type": DANGLING, "status": status, "lastTransitionTime": now, "reason": reason, "message": message,
        }),
    );
    conditions.pop().filter(|condition| had != Some(condition))
}

async fn tell(api: &ApiServer, name: &str, condition: Value) -> Result<(), Error> {
    let path = format!("/apis/{GROUP}/v1/flowschemas/{name}/status?fieldManager={MANAGER}&force=true");
    let object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "FlowSchema", "metadata": {"name": name},
        "status": {"conditions": [condition]},
    });
    match bootstrap::loopback::apply(api, &path, object.to_string()).await? {
        200 | 404 | 409 => Ok(()),
        code => Err(Error::Internal { message: format!("{path}: {code}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_without_its_level_dangles() {
        let levels = BTreeSet::from(["there".to_owned()]);
        let schema = |level: &str, conditions: Value| json!({"spec": {"priorityLevelConfiguration": {"name": level}}, "status": {"conditions": conditions}});
        let found = condition(&schema("there", json!([])), &levels, "then").expect("it has none");
        assert_eq!((&found["status"], &found["reason"]), (&json!("False"), &json!("Found")));
        assert_eq!(condition(&schema("there", json!([found])), &levels, "now"), None);
        let lost = condition(&schema("gone", json!([found])), &levels, "now").expect("it has another");
        assert_eq!((&lost["status"], &lost["lastTransitionTime"]), (&json!("True"), &json!("now")));
        let other = condition(&schema("none", json!([lost])), &levels, "later").expect("it has another");
        assert_eq!(other["lastTransitionTime"], "now", "it dangles since then");
    }
}
