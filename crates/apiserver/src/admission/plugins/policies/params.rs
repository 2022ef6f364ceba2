//! The parameters of a policy binding.

use std::sync::Arc;

use kinds::policies::{Binding, ParamRef, Params};
use model::error::Error;
use model::{ObjectKey, Selector};

use super::equivalents;
use crate::api::ApiServer;
use crate::pages::Pages;
use crate::registry::{Object, Served};
use crate::verbs::store_error;

/// The reason why a policy cannot be evaluated.
pub(super) enum Problem {
    /// The policy or its binding is misconfigured.
    Configuration(String),
    /// The server failed.
    Failure(Error),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Failure(error)
    }
}

/// The resource type of `paramKind`.
pub(super) fn kind_of(api: &ApiServer, api_version: &str, kind: &str) -> Result<Arc<Served>, String> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let registry = api.registry();
    let of_version = registry.of_version(group, version).find(|of| of.kind == kind && of.is_stored());
    let found = of_version.and_then(|of| registry.find(group, version, &of.plural));
    found.cloned().ok_or_else(|| {
        format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
    })
}

/// The parameters of a binding; a single `None` if the policy takes none.
pub(super) async fn of_binding(
    api: &ApiServer,
    kind: Option<&Served>,
    binding: &Binding,
    namespace: &str,
) -> Result<Vec<Option<Object>>, Problem> {
    let (Some(kind), Some(reference)) = (kind, &binding.params) else { return Ok(vec![None]) };
    let namespace = space(kind, reference, namespace).map_err(Problem::Configuration)?;
    let found = match &reference.of {
        Params::Named(name) => named(api, kind, &namespace, name).await?,
        Params::Selected(selector) => selected(api, kind, &namespace, selector).await?,
    };
    match reference.missing() {
        Some(problem) if found.is_empty() => Err(Problem::Configuration(problem.to_owned())),
        _ => Ok(found.into_iter().map(Some).collect()),
    }
}

/// The namespace of the parameters; empty for cluster-scoped kinds.
fn space(kind: &Served, reference: &ParamRef, namespace: &str) -> Result<String, String> {
    let wrong = match (kind.namespaced, reference.namespace.as_str()) {
        (false, "") => return Ok(String::new()),
        (false, _) => "paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
        (true, "") if namespace.is_empty() => {
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        }
        (true, "") => return Ok(namespace.to_owned()),
        (true, named) => return Ok(named.to_owned()),
    };
    Err(wrong.to_owned())
}

async fn named(api: &ApiServer, kind: &Served, namespace: &str, name: &str) -> Result<Vec<Object>, Error> {
    let key = ObjectKey::new(&kind.resource, namespace, name);
    match api.store.get(&key, None).await.map_err(store_error)? {
        Some(found) => Ok(vec![equivalents::read_stored(kind, &found).await?]),
        None => Ok(Vec::new()),
    }
}

async fn selected(
    api: &ApiServer,
    kind: &Served,
    namespace: &str,
    selector: &Selector,
) -> Result<Vec<Object>, Error> {
    let mut pages = Pages::of(&api.store, kind.resource.clone()).selected(selector.clone());
    if kind.namespaced {
        pages = pages.within(namespace);
    }
    let mut found = Vec::new();
    while let Some(page) = pages.next().await.map_err(store_error)? {
        for item in &page.items {
            found.push(equivalents::read_stored(kind, item).await?);
        }
    }
    Ok(found)
}
