//! The objects that an informer lists and watches, and the requests for them.

use kube::api::ApiResource;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::objects::path;
use crate::{Error, Result};

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// A selection of objects of one resource: by namespace, labels and fields, whole or as metadata.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListWatch {
    resource: ApiResource,
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
    is_metadata_only: bool,
}

/// A page of a list: the next one behind a continue token, or the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageRequest {
    /// The number of objects on a page; none for all of them.
    pub(crate) limit: Option<u32>,
    pub(crate) continue_token: Option<String>,
}

impl ListWatch {
    /// All objects of a resource.
    pub fn all(resource: impl Into<ApiResource>) -> Self {
        let resource = resource.into();
        Self { resource, namespace: None, labels: None, fields: None, is_metadata_only: false }
    }

    /// Only the objects of one namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only the objects that match a label selector.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Only the objects that match a field selector.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Only the metadata of the objects.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.is_metadata_only = true;
        self
    }

    /// A watch that continues behind a resource version, or begins with the present objects (`sendInitialEvents`).
    pub(crate) fn watch_request(&self, position: Option<u64>) -> Result<http::Request<kube::client::Body>> {
        let mut query = "watch=true&allowWatchBookmarks=true".to_owned();
        match position {
            Some(version) => query.push_str(&format!("&resourceVersion={version}")),
            None => query.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        }
        self.request(query, METADATA)
    }

    /// A page of a list. The first page shows the newest state, the others the state of the first.
    pub(crate) fn list_request(&self, page: &PageRequest) -> Result<http::Request<kube::client::Body>> {
        let mut query = String::new();
        if let Some(limit) = page.limit {
            push(&mut query, "limit", &limit.to_string());
        }
        if let Some(token) = &page.continue_token {
            push(&mut query, "continue", token);
        }
        self.request(query, METADATA_LIST)
    }

    fn request(&self, mut query: String, metadata: &str) -> Result<http::Request<kube::client::Body>> {
        for (name, selector) in [("labelSelector", &self.labels), ("fieldSelector", &self.fields)] {
            if let Some(selector) = selector {
                push(&mut query, name, selector);
            }
        }
        let path = path(&self.resource, self.namespace.as_deref());
        let mut request = http::Request::get(format!("{path}?{query}"));
        if self.is_metadata_only {
            request = request.header(http::header::ACCEPT, metadata);
        }
        request.body(kube::client::Body::empty()).map_err(Error::other)
    }
}

fn push(query: &mut String, name: &str, value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(name);
    query.push('=');
    query.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
}

impl std::fmt::Display for ListWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&path(&self.resource, self.namespace.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResourceKind;

    #[test]
    fn requests_name_the_selection_and_the_position() {
        const PODS: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Pod", plural: "pods" };
        let all = ListWatch::all(PODS);
        let some = all.clone().namespace("n").labels("a in (b,c)").fields("spec.nodeName=x").metadata_only();
        let page = PageRequest { limit: Some(500), continue_token: Some("a+b/=".to_owned()) };
        let selectors = "labelSelector=a%20in%20%28b%2Cc%29&fieldSelector=spec%2EnodeName%3Dx";
        for (request, expected) in [
            (
                all.watch_request(None),
                "/api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
            ),
            (all.watch_request(Some(7)), "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=7".to_owned()),
            (all.list_request(&PageRequest::default()), "/api/v1/pods?".to_owned()),
            (
                some.list_request(&page),
                format!("/api/v1/namespaces/n/pods?limit=500&continue=a%2Bb%2F%3D&{selectors}"),
            ),
        ] {
            assert_eq!(request.unwrap().uri(), &*expected);
        }
        let accept = |request: Result<http::Request<kube::client::Body>>| {
            request.unwrap().headers().get(http::header::ACCEPT).cloned()
        };
        assert_eq!(accept(all.watch_request(None)), None);
        assert_eq!(accept(some.watch_request(None)).unwrap(), METADATA);
        assert_eq!(accept(some.list_request(&page)).unwrap(), METADATA_LIST);
    }
}
