//! Fields that become selectable after objects exist.

use futures::StreamExt;
use model::{Resource, Revision, Selector};
use serde_json::{Value, json};
use store::{Store, WatchScope};

use crate::client::{Client, version};
use crate::custom_resources::{CRDS, WIDGETS, crd, names, widget};

/// More than two pages.
const WIDGETS_MADE: usize = 1001;

/// A server with red widgets whose color is not selectable.
async fn with_many() -> Client {
    let client = Client::new().await;
    let mut plain = crd();
    plain["spec"]["versions"][0].as_object_mut().unwrap().remove("selectableFields");
    client.create(CRDS, &plain).await;
    let made = (0..WIDGETS_MADE).map(|n| {
        let client = &client;
        async move { client.create(WIDGETS, &widget(&format!("w{n:04}"), "red")).await }
    });
    futures::stream::iter(made).buffer_unordered(100).count().await;
    client
}

/// Makes the color selectable; returns the revision of the CRD.
async fn make_selectable(client: &Client) -> Revision {
    let fields = json!([{"jsonPath": ".spec.color"}]);
    let change = json!([{"op": "add", "path": "/spec/versions/0/selectableFields", "value": fields}]);
    let answer = client.json_patch(&format!("{CRDS}/widgets.example.io"), &change).await;
    assert_eq!(answer.code, 200);
    Revision(answer.version())
}

/// All objects of a resource.
fn all(resource: Resource) -> WatchScope {
    WatchScope { resource, namespace: None, name: None, selector: Selector::default() }
}

/// Waits for the next event of the index mark.
async fn next_mark(store: &Store, after: Revision) -> (Revision, Value) {
    let marks = all(Resource::new("indexing", "customresourcedefinitions"));
    let events = store.watch(marks, after).await.unwrap().next().await.unwrap();
    (events[0].change.revision, serde_json::from_slice(&events[0].change.value).unwrap())
}

async fn count_red(client: &Client) -> usize {
    names(&client.get(&format!("{WIDGETS}?fieldSelector=spec.color=red")).await.json()).len()
}

#[tokio::test]
async fn a_second_server_completes_the_index_of_the_first() {
    let client = with_many().await;
    let defined = make_selectable(&client).await;
    let (left, _) = next_mark(&client.store, defined).await;
    let (_, moved) = next_mark(&client.store, left).await;
    assert_eq!(moved["after"], json!(["default", "w0499"]));
    let store = client.store.clone();
    drop(client);
    let again = Client::on(store, |builder| builder).await;
    assert_eq!(count_red(&again).await, WIDGETS_MADE);
}

#[tokio::test]
async fn two_servers_write_each_object_once() {
    let client = with_many().await;
    let other = client.restarted().await;
    let defined = make_selectable(&client).await;
    assert_eq!(count_red(&other).await, WIDGETS_MADE);
    assert_eq!(count_red(&client).await, WIDGETS_MADE);
    let last = client.get(WIDGETS).await.json();
    let last = last["items"].as_array().unwrap().iter().map(version).max().unwrap();
    let widgets = all(Resource::new("example.io", "widgets"));
    let mut watch = client.store.watch(widgets, defined).await.unwrap();
    let mut written = Vec::new();
    while written.last() != Some(&last) {
        written.extend(watch.next().await.unwrap().iter().map(|event| event.change.revision.0));
    }
    assert_eq!(written.len(), WIDGETS_MADE);
}
