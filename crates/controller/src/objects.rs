//! The objects of one type in one place, read and written as whatever serde makes of them.

use http::Request;
use kube::Client;
use kube::api::{ApiResource, DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A type of the API, known when the program is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its group; empty for the core.
    pub group: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Its name for one object.
    pub kind: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
}

impl Kind {
    /// As the client wants it.
    #[must_use]
    pub fn resource(&self) -> ApiResource {
        let Self { group, version, kind, plural } = *self;
        ApiResource::from_gvk_with_plural(&kube::api::GroupVersionKind::gvk(group, version, kind), plural)
    }
}

impl From<Kind> for ApiResource {
    fn from(kind: Kind) -> Self {
        kind.resource()
    }
}

/// The path of a collection.
pub(crate) fn path(resource: &ApiResource, namespace: Option<&str>) -> String {
    let ApiResource { group, version, plural, .. } = resource;
    let base = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    match namespace {
        None => format!("{base}/{plural}"),
        Some(namespace) => format!("{base}/namespaces/{namespace}/{plural}"),
    }
}

/// The objects of one type, in one namespace or in all.
#[derive(Clone)]
pub struct Objects {
    client: Client,
    requests: kube::core::Request,
}

/// One page of a list.
#[derive(Debug, Deserialize)]
pub struct Page<T> {
    /// Where the page stands.
    #[serde(default)]
    pub metadata: PageMetadata,
    /// What is on it.
    #[serde(default = "Vec::new")]
    pub items: Vec<T>,
}

/// Where a page stands.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageMetadata {
    /// The revision that the whole list shows.
    pub resource_version: String,
    /// What gets the next page; empty on the last.
    #[serde(rename = "continue")]
    pub continue_token: String,
}

impl Objects {
    /// Those of a type in a namespace; in all of them, or of the cluster, without one.
    pub fn new(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Self {
        Self { client: client.clone(), requests: kube::core::Request::new(path(resource, namespace)) }
    }

    /// One of them, if it is there.
    ///
    /// # Errors
    /// When the server refuses for another reason, or the object does not fit `T`.
    pub async fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        found(self.send(self.requests.get(name, &GetParams::default())?).await)
    }

    /// A part of one of them, such as `scale`, if it is there.
    ///
    /// # Errors
    /// As [`Objects::get`].
    pub async fn get_part<T: DeserializeOwned>(&self, part: &str, name: &str) -> Result<Option<T>> {
        found(self.send(self.requests.get_subresource(part, name)?).await)
    }

    /// The metadata of one of them, if it is there.
    ///
    /// # Errors
    /// As [`Objects::get`].
    pub async fn get_metadata<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        found(self.send(self.requests.get_metadata(name, &GetParams::default())?).await)
    }

    /// One page of them.
    ///
    /// # Errors
    /// When the server refuses, or an object does not fit `T`.
    pub async fn list<T: DeserializeOwned>(&self, selection: &ListParams) -> Result<Page<T>> {
        self.send(self.requests.list(selection)?).await
    }

    /// One page of their metadata.
    ///
    /// # Errors
    /// As [`Objects::list`].
    pub async fn list_metadata<T: DeserializeOwned>(&self, selection: &ListParams) -> Result<Page<T>> {
        self.send(self.requests.list_metadata(selection)?).await
    }

    /// Makes one.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn create<T: DeserializeOwned>(&self, object: &impl Serialize) -> Result<T> {
        self.send(self.requests.create(&PostParams::default(), serde_json::to_vec(object)?)?).await
    }

    /// Puts an object in the place of the one that has its name, and its resourceVersion if it says one.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn replace<T: DeserializeOwned>(&self, name: &str, object: &impl Serialize) -> Result<T> {
        self.send(self.requests.replace(name, &PostParams::default(), serde_json::to_vec(object)?)?).await
    }

    /// As [`Objects::replace`], for a subresource such as `status`.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn replace_part<T: DeserializeOwned>(
        &self,
        part: &str,
        name: &str,
        object: &impl Serialize,
    ) -> Result<T> {
        let body = serde_json::to_vec(object)?;
        self.send(self.requests.replace_subresource(part, name, &PostParams::default(), body)?).await
    }

    /// Changes some fields of an object by a JSON merge patch.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn merge<T: DeserializeOwned>(&self, name: &str, patch: &impl Serialize) -> Result<T> {
        let patch = Patch::Merge(patch);
        self.send(self.requests.patch(name, &PatchParams::default(), &patch)?).await
    }

    /// Applies an object as a manager that takes the fields over that others have.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn apply<T: DeserializeOwned>(
        &self,
        name: &str,
        manager: &str,
        object: &impl Serialize,
    ) -> Result<T> {
        let how = PatchParams::apply(manager).force();
        self.send(self.requests.patch(name, &how, &Patch::Apply(object))?).await
    }

    /// Deletes one, or begins its deletion. False if it is gone already.
    ///
    /// # Errors
    /// When the server refuses, or a precondition does not hold.
    pub async fn delete(&self, name: &str, how: &DeleteParams) -> Result<bool> {
        Ok(found(self.call(self.requests.delete(name, how)?).await)?.is_some())
    }

    /// Deletes all of a selection, or begins their deletion.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn delete_all(&self, how: &DeleteParams, selection: &ListParams) -> Result<()> {
        self.call(self.requests.delete_collection(how, selection)?).await
    }

    async fn send<T: DeserializeOwned>(&self, request: Request<Vec<u8>>) -> Result<T> {
        Ok(self.client.request(request).await?)
    }

    /// Sends a request whose answer is of no interest, if it is no refusal.
    async fn call(&self, request: Request<Vec<u8>>) -> Result<()> {
        let answer = self.client.send(request.map(Into::into)).await?;
        if answer.status().is_success() { Ok(()) } else { Err(refusal(answer).await) }
    }
}

/// What a server says when it refuses.
pub(crate) async fn refusal(answer: http::Response<kube::client::Body>) -> Error {
    let code = answer.status().as_u16();
    let bytes = match answer.into_body().collect_bytes().await {
        Ok(bytes) => bytes,
        Err(error) => return error.into(),
    };
    let said: Option<kube::core::Status> = serde_json::from_slice(&bytes).ok();
    let text = || kube::core::Status::failure(&String::from_utf8_lossy(&bytes), "");
    Error::Refused(said.unwrap_or_else(text).with_code(code).boxed())
}

fn found<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
