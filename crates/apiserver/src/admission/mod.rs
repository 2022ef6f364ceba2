//! Admission: plugins change or refuse a write between its decoded body and its commit.
//!
//! A write has two phases: mutating plugins change the object one after the other; after validation, validating plugins check
//! the result. The plugins of a resource type are determined once.

mod attributes;
mod chain;
pub(crate) mod informers;
mod plugins;
mod switches;
mod webhooks;

use futures::future::BoxFuture;
use model::error::Error;

pub use switches::{PLUGINS, Switches, UnknownPlugins};

pub(crate) use attributes::AdmissionAttributes;
pub(crate) use chain::{Admission, ResourcePlugins};

use crate::registry::{Object, ResourceType};

/// The operation, as rules of webhooks and policies name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// A connection to a Pod, Service or Node: exec, attach, portforward, proxy.
    Connect,
}

impl Operation {
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    /// The name in rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The resource, subresource and operation that a plugin may handle: known without a request.
#[derive(Clone, Copy)]
pub(crate) struct AdmissionTarget<'a> {
    pub resource_type: &'a ResourceType,
    /// Empty for the object itself.
    pub subresource: &'a str,
    pub operation: Operation,
}

impl AdmissionTarget<'_> {
    /// Whether this is the given resource and subresource (`""` for the object itself).
    pub fn is(&self, group: &str, plural: &str, subresource: &str) -> bool {
        let of = self.resource_type;
        of.group == group && of.plural == plural && self.subresource == subresource
    }

    /// Whether this is the Pod itself.
    pub fn is_pod(&self) -> bool {
        self.is("", "pods", "")
    }
}

/// The phases in which a plugin takes part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phases {
    pub mutates: bool,
    pub validates: bool,
}

impl Phases {
    /// The mutating phase, under a condition.
    pub fn mutating(if_so: bool) -> Self {
        Self { mutates: if_so, validates: false }
    }

    /// The validating phase, under a condition.
    pub fn validating(if_so: bool) -> Self {
        Self { mutates: false, validates: if_so }
    }

    /// Both phases, under a condition.
    pub fn both(if_so: bool) -> Self {
        Self { mutates: if_so, validates: if_so }
    }
}

/// The result of a plugin, or the future that computes it.
pub(crate) enum PluginResult<'a> {
    /// Available at once.
    Done(Result<(), Error>),
    /// Available after a read or a call.
    Later(BoxFuture<'a, Result<(), Error>>),
}

impl<'a> PluginResult<'a> {
    /// No objection.
    pub const OK: Self = Self::Done(Ok(()));

    /// A result that needs a read or a call.
    pub fn later(work: impl Future<Output = Result<(), Error>> + Send + 'a) -> Self {
        Self::Later(Box::pin(work))
    }

    /// Waits for the result.
    pub async fn decided(self) -> Result<(), Error> {
        match self {
            Self::Done(decision) => decision,
            Self::Later(work) => work.await,
        }
    }
}

/// An admission plugin.
pub(crate) trait Plugin: Send + Sync {
    /// The phases in which the plugin handles this target. Called once per resource type, not per request.
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases;

    /// Whether the plugin handles connect requests, too.
    fn connects(&self) -> bool {
        false
    }

    /// Changes or refuses the object; `None` for a deletion.
    fn admit<'a>(
        &'a self,
        _request: &'a AdmissionAttributes<'_>,
        _object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        PluginResult::OK
    }

    /// Refuses the final object; `None` for a deletion.
    fn validate<'a>(
        &'a self,
        _request: &'a AdmissionAttributes<'_>,
        _object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        PluginResult::OK
    }
}
