//! Admission: what plugins change in a write, and what they refuse, between its decoded body and its commit.
//!
//! A write goes through two phases: first plugins change the object, each seeing what those before it did; after validation
//! plugins look at what will be written. Which plugins have something to say about a resource is decided once per resource type.

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

/// What is done with an object, as rules of webhooks and policies name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// Somebody is led to a pod, a service or a node.
    Connect,
}

impl Operation {
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    /// As rules name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// What a plugin may be asked about: all that is known before there is a request.
#[derive(Clone, Copy)]
pub(crate) struct AdmissionTarget<'a> {
    pub resource_type: &'a ResourceType,
    /// Empty for the object itself.
    pub subresource: &'a str,
    pub operation: Operation,
}

impl AdmissionTarget<'_> {
    /// Whether it is about this resource, or this part of it (`""` for the object itself).
    pub fn is(&self, group: &str, plural: &str, subresource: &str) -> bool {
        let of = self.resource_type;
        of.group == group && of.plural == plural && self.subresource == subresource
    }

    /// Whether it is about pods themselves.
    pub fn is_pod(&self) -> bool {
        self.is("", "pods", "")
    }
}

/// In which phases a plugin has something to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phases {
    pub mutates: bool,
    pub validates: bool,
}

impl Phases {
    /// Changes objects, if this holds.
    pub fn mutating(if_so: bool) -> Self {
        Self { mutates: if_so, validates: false }
    }

    /// Looks at objects, if this holds.
    pub fn validating(if_so: bool) -> Self {
        Self { mutates: false, validates: if_so }
    }

    /// Both, if this holds.
    pub fn both(if_so: bool) -> Self {
        Self { mutates: if_so, validates: if_so }
    }
}

/// A decision, or the work that leads to one.
pub(crate) enum PluginResult<'a> {
    /// Decided at once.
    Done(Result<(), Error>),
    /// Decided after something was read or asked.
    Later(BoxFuture<'a, Result<(), Error>>),
}

impl<'a> PluginResult<'a> {
    /// Nothing to say.
    pub const OK: Self = Self::Done(Ok(()));

    /// What has to wait for something.
    pub fn later(work: impl Future<Output = Result<(), Error>> + Send + 'a) -> Self {
        Self::Later(Box::pin(work))
    }

    /// The decision.
    pub async fn decided(self) -> Result<(), Error> {
        match self {
            Self::Done(decision) => decision,
            Self::Later(work) => work.await,
        }
    }
}

/// One rule of admission, with a name by which it is switched on and off.
pub(crate) trait Plugin: Send + Sync {
    /// In which phases it wants to be asked about this. Called once for each resource type, never per request.
    fn handles(&self, target: AdmissionTarget<'_>) -> Phases;

    /// Whether it is asked about connections as well, where [`Plugin::handles`] says so.
    fn connects(&self) -> bool {
        false
    }

    /// Changes the object, or refuses it. There is none where one is deleted.
    fn admit<'a>(
        &'a self,
        _request: &'a AdmissionAttributes<'_>,
        _object: Option<&'a mut Object>,
    ) -> PluginResult<'a> {
        PluginResult::OK
    }

    /// Refuses what would be written. There is no object where one is deleted.
    fn validate<'a>(
        &'a self,
        _request: &'a AdmissionAttributes<'_>,
        _object: Option<&'a Object>,
    ) -> PluginResult<'a> {
        PluginResult::OK
    }
}
