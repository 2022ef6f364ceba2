//! What can be watched, and what those hear who do.

use kube::api::ApiResource;

use crate::line::Line;
use crate::objects::path;
use crate::{Error, Result};

const ONLY_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// What to watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    resource: ApiResource,
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
    is_metadata: bool,
}

impl Target {
    /// All objects of a type.
    pub fn all(resource: impl Into<ApiResource>) -> Self {
        Self { resource: resource.into(), namespace: None, labels: None, fields: None, is_metadata: false }
    }

    /// Only those of a namespace.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only those with these labels.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Only those with these fields.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Only their metadata.
    #[must_use]
    pub fn metadata(mut self) -> Self {
        self.is_metadata = true;
        self
    }

    /// The request that continues behind a revision, or begins with the present objects.
    pub(crate) fn request(&self, position: Option<u64>) -> Result<http::Request<kube::client::Body>> {
        let mut uri = path(&self.resource, self.namespace.as_deref());
        uri.push_str("?watch=true&allowWatchBookmarks=true");
        match position {
            Some(revision) => uri.push_str(&format!("&resourceVersion={revision}")),
            None => uri.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        }
        for (name, selector) in [("&labelSelector=", &self.labels), ("&fieldSelector=", &self.fields)] {
            if let Some(selector) = selector {
                uri.push_str(name);
                uri.extend(percent_encoding::utf8_percent_encode(
                    selector,
                    percent_encoding::NON_ALPHANUMERIC,
                ));
            }
        }
        let mut request = http::Request::get(uri);
        if self.is_metadata {
            request = request.header(http::header::ACCEPT, ONLY_METADATA);
        }
        request.body(kube::client::Body::empty()).map_err(Error::other)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&path(&self.resource, self.namespace.as_deref()))
    }
}

/// Where an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its namespace; empty for an object of the cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// The object with this name in this namespace.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The namespace, if the object is in one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        (!self.namespace.is_empty()).then_some(&*self.namespace)
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace() {
            None => f.write_str(&self.name),
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// What a watch has to say.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The present objects follow; what is not among them is gone.
    Reset,
    /// An object is there, or has changed.
    Seen(&'a ObjectKey, &'a Line<'a>),
    /// An object is gone; this was its last state.
    Gone(&'a ObjectKey, &'a Line<'a>),
    /// All present objects have been seen.
    Synced,
    /// The server does not have the type: all that there was to say of its objects has been said.
    NotServed,
}

/// Who hears of it.
pub trait Listener: Send {
    /// Hears one event. What it cannot read it says, and the watch goes on.
    fn hear(&mut self, event: Event<'_>) -> Result<()>;
}

impl<L: Listener + ?Sized> Listener for Box<L> {
    fn hear(&mut self, event: Event<'_>) -> Result<()> {
        (**self).hear(event)
    }
}
