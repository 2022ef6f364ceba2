//! A dynamic client: the objects of one resource, read and written as any type that serde can handle.

use std::marker::PhantomData;

use http::Request;
use kube::Client;
use kube::api::{ApiResource, DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::webhook::PatchOperation;
use crate::{Apply, Error, Result};

/// The number of objects on a page.
const PAGE: u32 = 500;

/// A kind and its resource, known when the program is written. [`Resolver`](crate::discovery::Resolver) finds others at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceKind {
    /// Its group; empty for the core group.
    pub group: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The kind, such as `Pod`.
    pub kind: &'static str,
    /// The resource, such as `pods`.
    pub plural: &'static str,
}

impl ResourceKind {
    /// The resource in kube's terms.
    #[must_use]
    pub fn resource(&self) -> ApiResource {
        let Self { group, version, kind, plural } = *self;
        ApiResource::from_gvk_with_plural(&kube::api::GroupVersionKind::gvk(group, version, kind), plural)
    }
}

impl From<ResourceKind> for ApiResource {
    fn from(kind: ResourceKind) -> Self {
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

/// The namespace and name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// The object of this name in this namespace.
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

/// The objects of one resource, in one namespace or in all.
#[derive(Clone)]
pub struct Objects {
    client: Client,
    requests: kube::core::Request,
}

/// One page of a list.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct Page<T> {
    /// The version of the list and the token of the next page.
    #[serde(default)]
    pub metadata: PageMetadata,
    /// The objects.
    #[serde(default = "Vec::new", deserialize_with = "null_as_empty")]
    pub items: Vec<T>,
}

/// Kubernetes writes an empty list of metadata as `null`.
fn null_as_empty<'de, D, T>(deserializer: D) -> std::result::Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The version of a list and the token of its next page.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageMetadata {
    /// The resource version that all pages show.
    pub resource_version: String,
    /// The token of the next page; empty on the last.
    #[serde(rename = "continue")]
    pub continue_token: String,
}

impl Objects {
    /// The objects of a resource in a namespace; in all of them, or of the cluster, without one.
    pub fn new(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Self {
        Self { client: client.clone(), requests: kube::core::Request::new(path(resource, namespace)) }
    }

    /// Gets an object; `None` if there is none.
    ///
    /// # Errors
    /// When the server refuses for another reason, or the object does not fit `T`.
    pub async fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        found(self.send(self.requests.get(name, &GetParams::default())?).await)
    }

    /// Gets a subresource, such as `scale`.
    ///
    /// # Errors
    /// As [`Objects::get`].
    pub async fn get_subresource<T: DeserializeOwned>(
        &self,
        subresource: &str,
        name: &str,
    ) -> Result<Option<T>> {
        found(self.send(self.requests.get_subresource(subresource, name)?).await)
    }

    /// Gets the metadata of an object.
    ///
    /// # Errors
    /// As [`Objects::get`].
    pub async fn get_metadata<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        found(self.send(self.requests.get_metadata(name, &GetParams::default())?).await)
    }

    /// Lists one page.
    ///
    /// # Errors
    /// When the server refuses, or an object does not fit `T`.
    pub async fn list<T: DeserializeOwned>(&self, selection: &ListParams) -> Result<Page<T>> {
        self.send(self.requests.list(selection)?).await
    }

    /// Lists one page of metadata.
    ///
    /// # Errors
    /// As [`Objects::list`].
    pub async fn list_metadata<T: DeserializeOwned>(&self, selection: &ListParams) -> Result<Page<T>> {
        self.send(self.requests.list_metadata(selection)?).await
    }

    /// Lists all pages of a selection, one after the other.
    #[must_use]
    pub fn pages<T: DeserializeOwned>(&self, selection: ListParams) -> Pages<'_, T> {
        Pages { objects: self, next: Some(selection.limit(PAGE)), is_metadata: false, item: PhantomData }
    }

    /// Lists all pages of metadata, one after the other.
    #[must_use]
    pub fn metadata_pages<T: DeserializeOwned>(&self, selection: ListParams) -> Pages<'_, T> {
        Pages { is_metadata: true, ..self.pages(selection) }
    }

    /// Creates an object.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn create<T: DeserializeOwned>(&self, object: &impl Serialize) -> Result<T> {
        self.send(self.requests.create(&PostParams::default(), serde_json::to_vec(object)?)?).await
    }

    /// Updates the object of a name; if the new one has a `resourceVersion`, only that version of it.
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
    pub async fn replace_subresource<T: DeserializeOwned>(
        &self,
        subresource: &str,
        name: &str,
        object: &impl Serialize,
    ) -> Result<T> {
        let body = serde_json::to_vec(object)?;
        self.send(self.requests.replace_subresource(subresource, name, &PostParams::default(), body)?).await
    }

    /// Changes an object by a JSON merge patch; a `resourceVersion` or `uid` in it is a precondition.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn merge_patch<T: DeserializeOwned>(&self, name: &str, patch: &impl Serialize) -> Result<T> {
        let patch = Patch::Merge(patch);
        self.send(self.requests.patch(name, &PatchParams::default(), &patch)?).await
    }

    /// As [`Objects::merge_patch`], for a subresource such as `status`.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn merge_patch_subresource<T: DeserializeOwned>(
        &self,
        subresource: &str,
        name: &str,
        patch: &impl Serialize,
    ) -> Result<T> {
        let (how, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.send(self.requests.patch_subresource(subresource, name, &how, &patch)?).await
    }

    /// Changes an object by a JSON patch; its `test` operations are preconditions.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn json_patch<T: DeserializeOwned>(&self, name: &str, patch: &[PatchOperation]) -> Result<T> {
        let request = Request::patch(format!("{}/{name}", self.requests.url_path))
            .header(http::header::CONTENT_TYPE, "application/json-patch+json")
            .body(serde_json::to_vec(patch)?);
        self.send(request.map_err(Error::other)?).await
    }

    /// Server-side apply.
    ///
    /// # Errors
    /// [`Error::ApplyConflict`] when other managers own some of the fields and the apply is not forced; when the server refuses.
    pub async fn apply<T: DeserializeOwned>(
        &self,
        name: &str,
        how: &Apply<'_>,
        object: &impl Serialize,
    ) -> Result<T> {
        let request = self.requests.patch(name, &how.params(), &Patch::Apply(object))?;
        self.send(request).await.map_err(Error::into_apply_conflict)
    }

    /// As [`Objects::apply`], for a subresource such as `status`.
    ///
    /// # Errors
    /// As [`Objects::apply`].
    pub async fn apply_subresource<T: DeserializeOwned>(
        &self,
        subresource: &str,
        name: &str,
        how: &Apply<'_>,
        object: &impl Serialize,
    ) -> Result<T> {
        let patch = Patch::Apply(object);
        let request = self.requests.patch_subresource(subresource, name, &how.params(), &patch)?;
        self.send(request).await.map_err(Error::into_apply_conflict)
    }

    /// Deletes an object, or begins its deletion. False if there is none.
    ///
    /// # Errors
    /// When the server refuses, or a precondition does not hold.
    pub async fn delete(&self, name: &str, how: &DeleteParams) -> Result<bool> {
        Ok(found(self.call(self.requests.delete(name, how)?).await)?.is_some())
    }

    /// Deletes all objects of a selection, or begins their deletion.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn delete_collection(&self, how: &DeleteParams, selection: &ListParams) -> Result<()> {
        self.call(self.requests.delete_collection(how, selection)?).await
    }

    async fn send<T: DeserializeOwned>(&self, request: Request<Vec<u8>>) -> Result<T> {
        Ok(self.client.request(request).await?)
    }

    /// Sends a request whose answer matters only if it is an error.
    async fn call(&self, request: Request<Vec<u8>>) -> Result<()> {
        let answer = self.client.send(request.map(Into::into)).await?;
        if answer.status().is_success() { Ok(()) } else { Err(api_error(answer).await) }
    }
}

/// The pages of a list, which all show the resource version of the first.
pub struct Pages<'a, T> {
    objects: &'a Objects,
    /// The request for the next page.
    next: Option<ListParams>,
    is_metadata: bool,
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Pages<'_, T> {
    /// The objects of the next page; `None` behind the last.
    ///
    /// # Errors
    /// When the server refuses. A list that takes longer than the server keeps its version ends with [`Error::is_expired`]: the caller
    /// has to begin anew, because what it made of earlier pages no longer fits to later ones.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>> {
        let Some(mut selection) = self.next.take() else { return Ok(None) };
        let page = match self.is_metadata {
            true => self.objects.list_metadata(&selection).await?,
            false => self.objects.list(&selection).await?,
        };
        let Page { metadata: PageMetadata { continue_token, .. }, items } = page;
        if !continue_token.is_empty() {
            selection.continue_token = Some(continue_token);
            self.next = Some(selection);
        }
        Ok(Some(items))
    }

    /// The objects of all pages.
    ///
    /// # Errors
    /// As [`Pages::next`].
    pub async fn all(mut self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while let Some(page) = self.next().await? {
            all.extend(page);
        }
        Ok(all)
    }
}

/// The error of an answer without success.
pub(crate) async fn api_error(answer: http::Response<kube::client::Body>) -> Error {
    let code = answer.status().as_u16();
    let bytes = match answer.into_body().collect_bytes().await {
        Ok(bytes) => bytes,
        Err(error) => return error.into(),
    };
    let status: Option<kube::core::Status> = serde_json::from_slice(&bytes).ok();
    let text = || kube::core::Status::failure(&String::from_utf8_lossy(&bytes), "");
    Error::Api(status.unwrap_or_else(text).with_code(code).boxed())
}

fn found<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_items_is_empty() {
        for text in [r#"{"metadata":{"resourceVersion":"7"},"items":null}"#, r#"{"items":[]}"#, "{}"] {
            let page: Page<u32> = serde_json::from_str(text).unwrap();
            assert!(page.items.is_empty(), "{text}");
        }
        assert_eq!(serde_json::from_str::<Page<u32>>(r#"{"items":[1]}"#).unwrap().items, [1]);
    }
}
