//! Eviction: a deletion of a Pod that respects PodDisruptionBudgets. Evictions are not stored.
//!
//! The budget is decremented in the transaction that begins the deletion.

use std::sync::Arc;

use http::Response;
use kinds::{evict, note_eviction};
use model::Encoded;
use model::error::Error;
use serde_json::{Value, json};
use store::{Precondition, Stored, Write};

use super::body;
use super::delete::{self, Deletion};
use super::managed_fields::FieldManager;
use super::metadata::{self, attributes, time};
use super::options::{DeleteOptions, WriteOptions};
use super::write::{ATTEMPTS, modified, now};
use super::{Call, create, store_error};
use crate::admission::AdmissionAttributes;
use crate::body::Body;
use crate::built_in;
use crate::pages::Pages;
use crate::registry::{Object, Served};
use crate::render;

/// Serves an Eviction sent to a Pod.
pub async fn create_eviction(call: Call) -> Result<Response<Body>, Error> {
    let options = WriteOptions::from_query(&call.query, "CreateOptions")?;
    let sent = call.about(Arc::new(Served::without_path(built_in::without_path("policy", "Eviction"))));
    let mut eviction = body::decode(&sent, options.field_validation)?;
    create::check_place(&call, &eviction)?;
    if metadata::text(&eviction, "name") != call.path.name {
        return Err(Error::bad_request("name in URL does not match name in Eviction object"));
    }
    let request =
        AdmissionAttributes::create(&call, &call.path.name, options.dry_run).shown_as(&sent.resource_type);
    request.admit_whole(&mut eviction).await?;
    let options = delete_options(&call, &eviction)?;
    evict_pod(&call, &options).await?;
    render::done(&sent)
}

/// The delete options; dryRun may be in them or in the query.
fn delete_options(call: &Call, eviction: &Object) -> Result<DeleteOptions, Error> {
    let mut options = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    let asked: Vec<&str> = call.query.all("dryRun").collect();
    let given: Vec<&str> =
        options["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !asked.is_empty() && !given.is_empty() && asked != given {
        let (asked, given) = (asked.join(" "), given.join(" "));
        let message = format!("Non-matching dry-run options in request and content: [{asked}] and [{given}]");
        return Err(Error::Failed { message });
    }
    if !asked.is_empty() {
        options["dryRun"] = json!(asked);
    }
    DeleteOptions::from_value(options)
}

/// Begins the deletion of the Pod; retries conflicts.
async fn evict_pod(call: &Call, options: &DeleteOptions) -> Result<(), Error> {
    let key = call.key();
    for _ in 0..ATTEMPTS {
        let head = call.api.store.get(&key, None).await.map_err(store_error)?;
        let head = head.ok_or_else(|| call.resource_type.not_found(&key.name))?;
        delete::check_preconditions(&call.resource_type, &head, options)?;
        let mut pod = call.resource_type.read(&head).await?;
        let now = time(now());
        let beside = count(call, &pod, &now).await?;
        note_eviction(&mut pod, &now);
        let ending = Deletion::of(&call.resource_type, pod, options).await?;
        if delete::attempt(call, &head, ending, options, beside).await?.is_some() {
            return Ok(());
        }
    }
    Err(modified(call))
}

/// The write that decrements the budget, if one applies.
async fn count(call: &Call, pod: &Object, now: &str) -> Result<Option<Write>, Error> {
    let registry = call.api.registry();
    let Some(of) = registry.find("policy", "v1", "poddisruptionbudgets") else { return Ok(None) };
    let heads = budgets(call, of).await?;
    let mut objects = Vec::with_capacity(heads.len());
    for head in &heads {
        objects.push(of.read(head).await?);
    }
    let Some(mut budget) = evict(pod, &objects, now)? else { return Ok(None) };
    let found = heads.into_iter().zip(&objects);
    let found = found.into_iter().find(|(head, _)| head.key.name == metadata::text(&budget, "name"));
    Ok(found.map(|(head, old)| {
        let writing = FieldManager::by_server(&call.api, of, "status", now.to_owned());
        let tracked = writing.track(Some(old), &mut budget);
        Write::Update {
            key: head.key,
            expect: Precondition { revision: Some(head.revision), uid: None },
            attributes: attributes(of, &budget),
            body: Encoded::managed(&budget, tracked.json.as_deref()),
        }
    }))
}

async fn budgets(call: &Call, of: &Served) -> Result<Vec<Stored>, Error> {
    let pages = Pages::of(&call.api.store, of.resource.clone()).within(call.namespace());
    pages.all().await.map_err(store_error)
}
