//! The route walk: a caller without rights gets 403 on every path, and nothing changes.

use apiserver::auth::Identity;
use http::Method;

use crate::client::Client;
use crate::mounts::{self, Product};

pub const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// A user in no group, and so without the default rights.
fn nobody() -> Identity {
    Identity { name: "nobody".to_owned(), ..Identity::default() }
}

/// Every path of every type: collection, object, and subresources.
pub fn resource_paths(client: &Client) -> Vec<String> {
    let mut paths = Vec::new();
    for served in client.api.registry().types() {
        let (base, plural) = (served.base_path(), &served.plural);
        let places = match served.namespaced {
            true => vec![format!("{base}/{plural}"), format!("{base}/namespaces/default/{plural}")],
            false => vec![format!("{base}/{plural}")],
        };
        let object = places.last().map(|place| format!("{place}/default")).unwrap();
        let parts = served.subresources.iter().map(|part| format!("{object}/{}", part.name));
        paths.extend(parts.chain(["unknown".to_owned()].map(|part| format!("{object}/{part}"))));
        paths.extend(places.iter().map(|place| format!("{place}?watch=true")));
        paths.extend(places.iter().map(|place| format!("{place}?fieldSelector=metadata.name%3Ddefault")));
        paths.push(format!("{base}/watch/{plural}"));
        paths.extend(places);
        paths.push(object);
    }
    assert!(paths.len() > 500, "{}", paths.len());
    paths
}

/// Every non-resource path, listed by the server or not.
async fn plain_paths(client: &Client) -> Vec<String> {
    let root = client.get("/").await.json();
    let told = root["paths"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned());
    let untold =
        ["/", "/none", "/openapi/v2", "/openapi/v3", "/metrics", "/version", "/version/", "/healthz/ping"];
    told.chain(untold.map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_caller_without_rights_gets_403_on_every_path() {
    let admin = Client::new().await;
    let before = admin.store.clock().await.unwrap().current;
    let client = admin.as_caller(nobody());
    let mut paths = resource_paths(&admin);
    paths.extend(plain_paths(&admin).await);
    for path in &paths {
        for method in METHODS {
            let body = br#"{"metadata":{"name":"default"}}"#;
            let answer =
                client.send(method.clone(), path, &[("content-type", "application/json")], body).await;
            assert_eq!(answer.failure().1, "Forbidden", "{method} {path}");
        }
    }
    assert_eq!(admin.store.clock().await.unwrap().current, before);
}

/// Prefix, paths below it and public paths of every mount.
pub fn mounted_paths(client: &Client) -> Vec<String> {
    let mut paths = Vec::new();
    for mount in client.api.mounts() {
        let prefix = mount.prefix();
        let below =
            ["", "/", "/x", "/x/", "/x/y", "/x?watch=true", "/x?fieldSelector=metadata.name%3Ddefault"];
        paths.extend(below.map(|path| format!("{prefix}{path}")));
        for (_, path) in mount.public_paths() {
            paths.extend(["", "/", "/x", "?x=y"].map(|more| format!("{path}{more}")));
        }
    }
    assert!(paths.len() > 20, "{}", paths.len());
    paths
}

#[tokio::test]
async fn a_mount_is_refused_without_rights_but_for_the_paths_that_it_declares_public() {
    let product = Product::default();
    let admin = mounts::server(&product, |builder| builder).await;
    let client = admin.as_caller(nobody());
    let before = admin.store.clock().await.unwrap().current;
    let mut public = Vec::new();
    for path in mounted_paths(&admin) {
        for method in METHODS.into_iter().chain([Method::HEAD, Method::OPTIONS]) {
            let answer = client.send(method.clone(), &path, &[], b"{}").await;
            let served = path.split('?').next().unwrap();
            let is_public = admin.api.mounts().any(|mount| mount.is_public(&method, served));
            if is_public {
                assert_eq!(answer.code, 200, "{method} {path}");
                public.push(format!("{method} {served}"));
            } else {
                assert_eq!(
                    (answer.code, &answer.json()["title"]),
                    (403, &"Forbidden".into()),
                    "{method} {path}"
                );
            }
        }
    }
    // Each with and without a query.
    let expected = ["/api/v1/resources/openapi", "/console/openapi"]
        .map(|path| [format!("GET {path}"), format!("GET {path}")]);
    assert_eq!(public, expected.concat(), "what is public is said here, too");
    assert_eq!(product.take_calls(), public, "no handler ran for anything else");
    assert_eq!(admin.store.clock().await.unwrap().current, before);
}
