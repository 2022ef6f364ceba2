//! Discovery and the resolver with servers that answer in both forms.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use kube::api::{GroupVersionKind, GroupVersionResource};
use kube::client::Body;
use serde_json::{Value, json};
use tower_service::Service;

use super::*;

/// A server that knows Pods, two versions of Ships, and Boats after a CRD was created.
#[derive(Clone, Default)]
struct Server {
    is_legacy: bool,
    has_boats: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
}

impl Server {
    fn answer(&self, path: &str) -> Value {
        if self.is_legacy {
            return legacy(path);
        }
        let resource = |plural: &str, kind: &str| {
            json!({"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced",
                "verbs": ["get", "list"], "subresources": [{"subresource": "status"}]})
        };
        let mut ships = vec![resource("ships", "Ship")];
        if self.has_boats.load(Ordering::Relaxed) {
            ships.push(resource("boats", "Boat"));
        }
        let versions = json!([
            {"version": "v2", "resources": ships},
            {"version": "v1", "resources": [resource("ships", "Ship")], "freshness": "Stale"},
        ]);
        let items = match path {
            "/api" => json!([{"metadata": {}, "versions": [{"version": "v1", "resources": [
                {"resource": "nodes", "responseKind": {"kind": "Node"}, "scope": "Cluster", "verbs": ["get"]}]}]}]),
            _ => json!([{"metadata": {"name": "sea.example.com"}, "versions": versions}]),
        };
        json!({"kind": "APIGroupDiscoveryList", "items": items})
    }
}

fn legacy(path: &str) -> Value {
    match path {
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
        "/api/v1" => json!({"kind": "APIResourceList", "resources": [
            {"name": "nodes", "kind": "Node", "namespaced": false, "verbs": ["get"]},
            {"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["get", "list"]},
            {"name": "pods/status", "kind": "Pod", "namespaced": true, "verbs": ["get"]},
            {"name": "podsets/scale", "kind": "Scale", "namespaced": true, "verbs": ["get"]}]}),
        "/apis" => json!({"kind": "APIGroupList", "groups": [{"name": "sea.example.com",
            "versions": [{"version": "v1"}, {"version": "v2"}, {"version": "v3"}], "preferredVersion": {"version": "v2"}}]}),
        "/apis/sea.example.com/v3" => Value::Null,
        _ => json!({"kind": "APIResourceList", "resources": [
            {"name": "ships", "kind": "Ship", "namespaced": true, "verbs": ["get"]},
            {"name": "ships/scale", "kind": "Scale", "namespaced": true, "verbs": ["get"]}]}),
    }
}

impl Service<Request<Body>> for Server {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<std::result::Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let answer = self.answer(request.uri().path());
        let code = if answer.is_null() { 503 } else { 200 };
        let body = if answer.is_null() { json!({"status": "Failure", "code": 503}) } else { answer };
        ready(Ok(Response::builder().status(code).body(body.to_string().into()).unwrap()))
    }
}

fn client(server: &Server) -> Client {
    Client::new(server.clone(), "default")
}

fn shown(discovery: &Discovery) -> Vec<(String, String, bool)> {
    let resources = discovery.resources.iter();
    let shown =
        |of: &ServedResource| (of.resource.api_version.clone(), of.resource.plural.clone(), of.is_preferred);
    resources.map(shown).collect()
}

#[tokio::test]
async fn a_server_with_aggregated_discovery_is_asked_twice() {
    let server = Server::default();
    let discovery = Discovery::fetch(&client(&server)).await.unwrap();
    let of =
        |version: &str, plural: &str, is_preferred| (version.to_owned(), plural.to_owned(), is_preferred);
    let expected = [
        of("v1", "nodes", true),
        of("sea.example.com/v2", "ships", true),
        of("sea.example.com/v1", "ships", false),
    ];
    assert_eq!(shown(&discovery), expected);
    let ship = discovery.kind("sea.example.com/v2", "Ship").unwrap();
    assert!(ship.has_status && !ship.has_scale && ship.is_namespaced && ship.supports(&["list"]));
    assert_eq!(discovery.failures.keys().collect::<Vec<_>>(), ["sea.example.com/v1"]);
    assert_eq!(server.requests.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_server_without_aggregated_discovery_is_asked_for_each_version() {
    let server = Server { is_legacy: true, ..Server::default() };
    let discovery = Discovery::fetch(&client(&server)).await.unwrap();
    let of =
        |version: &str, plural: &str, is_preferred| (version.to_owned(), plural.to_owned(), is_preferred);
    assert_eq!(
        shown(&discovery),
        [
            of("v1", "nodes", true),
            of("v1", "pods", true),
            of("sea.example.com/v2", "ships", true),
            of("sea.example.com/v1", "ships", false)
        ]
    );
    let pod = discovery.kind("v1", "Pod").unwrap();
    assert!(pod.has_status && !pod.has_scale && pod.is_namespaced);
    let ship = discovery.kind("sea.example.com/v1", "Ship").unwrap();
    assert!(ship.has_scale && !ship.has_status);
    assert_eq!(discovery.failures.keys().collect::<Vec<_>>(), ["sea.example.com/v3"]);
}

#[tokio::test]
async fn the_resolver_asks_once_and_again_when_a_kind_is_missing() {
    let server = Server::default();
    let resolver = Resolver::new(client(&server));
    let kind = |version: &str, kind: &str| GroupVersionKind::gvk("sea.example.com", version, kind);
    for (version, expected) in [("v1", "v1"), ("v2", "v2"), ("", "v2")] {
        assert_eq!(resolver.kind(&kind(version, "Ship")).await.unwrap().resource.version, expected);
    }
    let ships = GroupVersionResource::gvr("sea.example.com", "v1", "ships");
    assert_eq!(resolver.resource(&ships).await.unwrap().resource.kind, "Ship");
    assert_eq!(server.requests.load(Ordering::Relaxed), 2, "one discovery");

    let error = resolver.kind(&kind("v2", "Boat")).await.unwrap_err();
    assert!(matches!(error, Error::NoKindMatch { .. }), "{error:?}");
    assert_eq!(error.to_string(), "no matches for kind \"Boat\" in version \"sea.example.com/v2\"");
    assert_eq!(server.requests.load(Ordering::Relaxed), 4, "asked again for a kind that is missing");

    server.has_boats.store(true, Ordering::Relaxed);
    let boat = kind("v2", "Boat");
    let (one, two) = tokio::join!(resolver.kind(&boat), resolver.kind(&boat));
    assert_eq!(
        (one.unwrap().resource.plural, two.unwrap().resource.plural),
        ("boats".to_owned(), "boats".to_owned())
    );
    assert_eq!(
        server.requests.load(Ordering::Relaxed),
        6,
        "those who miss it at the same time share an answer"
    );
    resolver.invalidate();
    resolver.kind(&boat).await.unwrap();
    assert_eq!(server.requests.load(Ordering::Relaxed), 8);
}

#[tokio::test]
async fn a_manifest_leads_to_its_objects() {
    let resolver = Resolver::new(client(&Server::default()));
    let ship = |namespace: Value| json!({"apiVersion": "sea.example.com/v1", "kind": "Ship", "metadata": {"namespace": namespace}});
    assert!(resolver.objects_of(&ship(json!("harbour"))).await.is_ok());
    assert!(resolver.objects_of(&json!({"apiVersion": "v1", "kind": "Node"})).await.is_ok());
    for (manifest, expected) in [
        (ship(Value::Null), "a manifest of the namespaced kind Ship needs a namespace"),
        (json!({"kind": "Ship"}), "a manifest needs apiVersion and kind"),
    ] {
        assert_eq!(resolver.objects_of(&manifest).await.err().unwrap().to_string(), expected);
    }
}
