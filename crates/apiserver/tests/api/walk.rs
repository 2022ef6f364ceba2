//! No path without a decision: whoever has no rights is refused everywhere, and nothing changes.

use apiserver::auth::Identity;
use http::Method;

use crate::client::Client;

pub const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Somebody in no group at all, and so with none of the rights that everybody has.
fn nobody() -> Identity {
    Identity { name: "nobody".to_owned(), ..Identity::default() }
}

/// Every path of every type: all objects, one object, and each part of it.
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

/// Every plain path that the server tells of, and those that it does not.
async fn plain_paths(client: &Client) -> Vec<String> {
    let root = client.get("/").await.json();
    let told = root["paths"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned());
    let untold =
        ["/", "/none", "/openapi/v2", "/openapi/v3", "/metrics", "/version", "/version/", "/healthz/ping"];
    told.chain(untold.map(str::to_owned)).collect()
}

#[tokio::test]
async fn who_has_no_rights_is_refused_everywhere_and_nothing_changes() {
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
