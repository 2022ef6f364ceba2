//! managedFields of the objects that a request writes.

use std::sync::Arc;

use http::header::USER_AGENT;
use kinds::apply::{self, Applied, Tracked, Version, Versions, WriteContext, manager_name};
use model::error::Error;
use serde_json::Value;

use super::Call;
use super::metadata;
use crate::api::ApiServer;
use crate::registry::{Object, Registry, Served};

/// The field manager of the server's own writes.
pub const SERVER: &str = "kube-apiserver";

/// The served versions of a type.
struct ServedVersions {
    registry: Arc<Registry>,
    own: Arc<Served>,
    own_version: String,
}

impl ServedVersions {
    fn new(registry: Arc<Registry>, own: Arc<Served>) -> Self {
        Self { registry, own_version: own.api_version(), own }
    }
}

impl Versions for ServedVersions {
    fn version(&self, api_version: &str) -> Option<Version<'_>> {
        if let Some(view) = &self.own.custom {
            return view.versions.find(api_version).map(|version| version.as_applied());
        }
        let found = if api_version == self.own_version {
            &self.own
        } else {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            // Like Kubernetes, does not convert between groups.
            self.registry.find(group, version, &self.own.plural).filter(|_| group == self.own.group)?
        };
        let strategy = &found.strategy;
        Some(Version {
            types: strategy.field_ownership(),
            empty: strategy.empty(),
            conversion: found.conversion(),
        })
    }

    fn must_be_known(&self) -> bool {
        self.own.custom.is_some()
    }
}

/// The field manager of a request.
pub struct FieldManager {
    views: ServedVersions,
    subresource: String,
    manager: String,
    now: String,
}

impl FieldManager {
    pub fn new(call: &Call, now: String) -> Self {
        let agent = call.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or("");
        let views = ServedVersions::new(call.api.registry(), Arc::clone(&call.resource_type));
        let manager = manager_name(call.query.text("fieldManager"), agent);
        Self { views, subresource: call.path.subresource.clone(), manager, now }
    }

    /// The field manager of the server itself.
    pub fn by_server(api: &ApiServer, of: &Arc<Served>, subresource: &str, now: String) -> Self {
        let views = ServedVersions::new(api.registry(), Arc::clone(of));
        Self { views, subresource: subresource.to_owned(), manager: SERVER.to_owned(), now }
    }

    fn scope(&self) -> WriteContext<'_> {
        WriteContext {
            versions: &self.views,
            api_version: &self.views.own_version,
            subresource: &self.subresource,
            reset: self.views.own.strategy.reset(&self.subresource),
            manager: &self.manager,
            now: &self.now,
        }
    }

    /// Updates managedFields for a write without apply. Removes the managedFields that the client sent.
    pub fn track(&self, live: Option<&Object>, new: &mut Object) -> Tracked {
        let tracked = match self.views.own.strategy.seen(new) {
            Some(seen) => apply::track(&self.scope(), live, &seen),
            None => apply::track(&self.scope(), live, new),
        };
        metadata::remove(new, "managedFields");
        tracked
    }

    /// Applies a configuration to the stored object.
    pub fn apply(&self, live: Option<&Object>, config: &Object, force: bool) -> Result<Applied, Error> {
        Ok(apply::apply(&self.scope(), live, config, force)?)
    }
}

/// Sets managedFields in an object that is not stored.
pub fn set_managers(object: &mut Object, tracked: &Tracked) {
    let managers = tracked.json.as_deref().and_then(|json| serde_json::from_str(json).ok());
    let metadata = metadata::metadata_mut(object);
    metadata.extend(managers.map(|managers: Value| ("managedFields".to_owned(), managers)));
}
