//! Reads that must not parse stored objects: their values are invalid JSON.

use http::Method;
use model::{Attributes, Encoded, ObjectKey, Resource};
use serde_json::json;
use store::{Precondition, Write};

use crate::client::{CONFIGMAPS, Client};
use crate::custom_resources::{CRDS, WIDGETS, crd, widget};

const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// A value in the text of an object, and its replacement.
#[derive(Clone, Copy)]
struct Corruption<'a> {
    value: &'a str,
    replacement: &'a str,
}

/// Corrupts an object in the store, and returns its revisions before and after.
async fn corrupt(client: &Client, key: &ObjectKey, corruption: Corruption<'_>) -> [u64; 2] {
    let Corruption { value, replacement } = corruption;
    let stored = client.store.get(key, None).await.unwrap().unwrap();
    let text = String::from_utf8(stored.value.to_vec()).unwrap();
    assert!(text.contains(value), "{text}");
    let text = text.replace(value, replacement);
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_err());
    let mark = format!("\"resourceVersion\":\"{}\"", stored.revision);
    let (before, after) = text.split_once(&mark).unwrap();
    let (before, after) = (format!("{before}\"resourceVersion\":\""), format!("\"{after}"));
    let body = Encoded::from_around(before.into_bytes(), after.into_bytes());
    let (expect, attributes) = (Precondition::default(), Attributes::default());
    let write = Write::Update { key: key.clone(), expect, attributes, body };
    [stored.revision.0, client.store.write(vec![write]).await.unwrap()[0].revision.0]
}

async fn text(client: &Client, path: &str, accept: &str) -> String {
    let answer = client.send(Method::GET, path, &[("accept", accept)], b"").await;
    let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
    assert_eq!(answer.code, 200, "{path}: {text}");
    text
}

/// Corrupts an object and reads it in every way that need not parse it.
async fn corrupt_and_read(
    client: &Client,
    collection: &str,
    key: &ObjectKey,
    corruption: Corruption<'_>,
    forms: &[&str],
) {
    let path = format!("{collection}/{}", key.name);
    let mut expected = Vec::new();
    for form in forms {
        expected.push(text(client, &path, form).await);
    }
    let revisions = corrupt(client, key, corruption).await;
    let [old, new] = revisions.map(|revision| format!("\"resourceVersion\":\"{revision}\""));
    for (form, expected) in forms.iter().zip(expected) {
        let expected = expected.replace(&old, &new).replace(corruption.value, corruption.replacement);
        assert_eq!(text(client, &path, form).await, expected);
        let from = format!("{collection}?watch=true&resourceVersion={}", revisions[1] - 1);
        let event = client.watch_as(&from, form).await.line().await.unwrap();
        let event = String::from_utf8(event).unwrap();
        assert_eq!(event, format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", expected.trim_end()));
        let of_list = if *form == METADATA { METADATA_LIST } else { form };
        let list = text(client, collection, of_list).await;
        // The item has the text of the object from here on.
        let part = &expected[expected.find("\"metadata\":").unwrap()..];
        assert!(list.contains(part.trim_end()), "{list}");
    }
}

#[tokio::test]
async fn reads_of_whole_objects_and_of_their_metadata_never_parse_them() {
    let client = Client::new().await;
    let map = json!({"metadata": {"name": "a"}, "data": {"x": "unparsed"}});
    client.create(CONFIGMAPS, &map).await;
    client.create(CRDS, &crd()).await;
    client.create(WIDGETS, &widget("w", "unparsed")).await;
    for (collection, group, plural, name) in
        [(CONFIGMAPS, "", "configmaps", "a"), (WIDGETS, "example.io", "widgets", "w")]
    {
        let key = ObjectKey::new(&Resource::new(group, plural), "default", name);
        // Metadata is cut out by the positions of values; a number that no parser accepts is one.
        let number = Corruption { value: r#":"unparsed""#, replacement: ":1e999999" };
        corrupt_and_read(&client, collection, &key, number, &["application/json", METADATA]).await;
        let nonsense = Corruption { value: ":1e999999", replacement: ":<<not JSON>>" };
        corrupt_and_read(&client, collection, &key, nonsense, &["application/json"]).await;
    }
}
