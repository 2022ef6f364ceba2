//! A watch that does not end: the present objects, then every change, from the same place again when a connection is lost.
//!
//! A watch that waits holds no buffer, and the code is there once for all types: what comes is handed on as bytes.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::Client;
use kube::api::ApiResource;
use kube::core::Status;
use serde::Deserialize;

use crate::objects::{path, refusal};
use crate::{Error, Result};

/// How long to wait before trying again when a watch cannot be opened, at first and at most.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_secs(30);
/// Longer than the event of any object.
const LONGEST_LINE: usize = 64 << 20;
/// What marks the bookmark behind the last of the present objects.
const END_OF_STATE: &str = "k8s.io/initial-events-end";
const ONLY_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// What to watch.
#[derive(Clone, Debug)]
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
    fn request(&self, position: Option<&str>) -> Result<http::Request<kube::client::Body>> {
        let mut uri = path(&self.resource, self.namespace.as_deref());
        uri.push_str("?watch=true&allowWatchBookmarks=true");
        match position {
            Some(revision) => uri.extend(["&resourceVersion=", revision]),
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
#[derive(Debug)]
pub enum Event<'a> {
    /// The present objects follow; what is not among them is gone.
    Reset,
    /// An object is there, or has changed.
    Seen(ObjectKey, &'a [u8]),
    /// An object is gone; this was its last state.
    Gone(ObjectKey, &'a [u8]),
    /// All present objects have been seen.
    Synced,
    /// The server does not have the type: all that there was to say of its objects has been said.
    NotServed,
}

impl Event<'_> {
    /// The object in the bytes of an event.
    ///
    /// # Errors
    /// When it does not fit `T`.
    pub fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T> {
        Ok(serde_json::from_slice::<Envelope<T>>(line)?.object)
    }
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

#[derive(Deserialize)]
struct Envelope<T> {
    object: T,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    event: Name,
    object: HeadObject,
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Name {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

#[derive(Default, Deserialize)]
struct HeadObject {
    #[serde(default)]
    metadata: HeadMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMetadata {
    name: String,
    namespace: String,
    resource_version: String,
}

/// Follows a target for ever. It ends only by being dropped.
pub(crate) async fn follow(client: Client, target: Target, listener: &mut dyn Listener) {
    let mut watch = Watch { target: &target, position: None, listener, has_heard: false };
    let mut delay = FIRST_DELAY;
    loop {
        watch.has_heard = false;
        let ended = Box::pin(watch.pass(&client)).await;
        if watch.has_heard {
            delay = FIRST_DELAY;
        }
        match ended {
            Ok(()) if watch.has_heard => continue,
            Ok(()) => {}
            Err(error) if error.is_expired() => {
                tracing::debug!(%target, "a watch begins anew: {error}");
                watch.position = None;
            }
            Err(error) if error.is_not_found() => {
                tracing::debug!(%target, "there is no such type; trying again");
                let _ = watch.listener.hear(Event::NotServed);
                watch.position = None;
            }
            Err(error) => tracing::warn!(%target, %error, "a watch failed; trying again"),
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(LAST_DELAY);
    }
}

struct Watch<'a> {
    target: &'a Target,
    /// The revision up to which everything has been heard.
    position: Option<String>,
    listener: &'a mut dyn Listener,
    /// Whether the server has sent something since the last request.
    has_heard: bool,
}

impl Watch<'_> {
    /// One request, to its end.
    async fn pass(&mut self, client: &Client) -> Result<()> {
        let answer = client.send(self.target.request(self.position.as_deref())?).await?;
        if !answer.status().is_success() {
            return Err(refusal(answer).await);
        }
        if self.position.is_none() {
            self.listener.hear(Event::Reset)?;
        }
        let mut body = answer.into_body();
        let mut begun = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(Error::other)?.into_data() else { continue };
            self.has_heard = true;
            let mut rest = &data[..];
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                if begun.is_empty() {
                    self.line(&rest[..end])?;
                } else {
                    begun.extend_from_slice(&rest[..end]);
                    self.line(&std::mem::take(&mut begun))?;
                }
                rest = &rest[end + 1..];
            }
            if begun.len() + rest.len() > LONGEST_LINE {
                return Err(Error::other("an event of a watch is longer than any object"));
            }
            begun.extend_from_slice(rest);
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        let Head { event, object: HeadObject { metadata } } = serde_json::from_slice(line)?;
        let key = ObjectKey { namespace: metadata.namespace, name: metadata.name };
        let heard = match event {
            Name::Added | Name::Modified => self.listener.hear(Event::Seen(key, line)),
            Name::Deleted => self.listener.hear(Event::Gone(key, line)),
            Name::Bookmark if is_end_of_state(line) => self.listener.hear(Event::Synced),
            Name::Bookmark => Ok(()),
            Name::Error => {
                let status: Status = Event::read(line)?;
                return Err(Error::Refused(status.boxed()));
            }
        };
        if let Err(error) = heard {
            tracing::warn!(target = %self.target, %error, "an object cannot be read and is passed over");
        }
        // Only what follows a complete state can be continued: the state itself comes in no order of revisions.
        if self.position.is_some() || matches!(event, Name::Bookmark) {
            self.position = Some(metadata.resource_version);
        }
        Ok(())
    }
}

fn is_end_of_state(bookmark: &[u8]) -> bool {
    bookmark.windows(END_OF_STATE.len()).any(|window| window == END_OF_STATE.as_bytes())
}
