//! Representations of objects: tables, metadata, protobuf, indented JSON.

use http::Method;
use kinds::schema;
use serde_json::{Value, json};

use crate::client::{CONFIGMAPS, Client, version};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[tokio::test]
async fn a_table_has_a_row_per_object() {
    let client = Client::new().await;
    for name in ["a", "b"] {
        client.create(CONFIGMAPS, &json!({"metadata": {"name": name}, "data": {"x": "1"}})).await;
    }
    let table = client.send(Method::GET, CONFIGMAPS, &[("accept", TABLE)], b"").await.json();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let columns: Vec<&Value> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(columns, ["Name", "Data", "Age"]);
    let rows = table["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[1]["cells"][0], &rows[1]["cells"][1]), (2, &json!("b"), &json!(1)));
    assert_eq!(rows[0]["object"]["kind"], "PartialObjectMetadata");
    let one = format!("{CONFIGMAPS}/a?includeObject=Object");
    let one = client.send(Method::GET, &one, &[("accept", TABLE)], b"").await.json();
    assert_eq!(one["rows"][0]["object"]["data"]["x"], "1");
    assert_eq!(one["rows"][0]["object"]["kind"], "ConfigMap");
    let none = format!("{CONFIGMAPS}/a?includeObject=None");
    let none = client.send(Method::GET, &none, &[("accept", TABLE)], b"").await.json();
    assert_eq!(none["rows"][0]["object"], Value::Null);
}

#[tokio::test]
async fn a_watch_of_tables_names_the_columns_once() {
    let client = Client::new().await;
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}})).await;
    let mut watch = client.watch_as(&format!("{CONFIGMAPS}?watch=true"), TABLE).await;
    let first = watch.next().await.unwrap();
    assert_eq!(first["object"]["columnDefinitions"].as_array().unwrap().len(), 3);
    client.create(CONFIGMAPS, &json!({"metadata": {"name": "b"}})).await;
    let second = watch.next().await.unwrap();
    assert_eq!(second["object"]["columnDefinitions"], Value::Null);
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn metadata_alone_can_be_requested() {
    let client = Client::new().await;
    let made = client.create(CONFIGMAPS, &json!({"metadata": {"name": "a"}, "data": {"x": "1"}})).await;
    let accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let one = client.send(Method::GET, &format!("{CONFIGMAPS}/a"), &[("accept", accept)], b"").await.json();
    let expected = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]});
    assert_eq!(one, expected);
    let accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = client.send(Method::GET, CONFIGMAPS, &[("accept", accept)], b"").await.json();
    assert_eq!((&list["kind"], &list["items"]), (&json!("PartialObjectMetadataList"), &json!([expected])));
    let path = format!("{CONFIGMAPS}?watch=true&resourceVersion={}", version(&made) - 1);
    let event = client.watch_as(&path, accept).await.next().await.unwrap();
    assert_eq!(event["object"], expected);
}

#[tokio::test]
async fn curl_and_browsers_get_indented_json() {
    let client = Client::new().await;
    let pretty = client.get("/api/v1/namespaces/default?pretty=true").await;
    assert!(pretty.bytes.starts_with(b"{\n  "));
    let headers = [("user-agent", "curl/8.0")];
    let curl = client.send(Method::GET, "/api/v1/namespaces", &headers, b"").await;
    assert!(curl.bytes.starts_with(b"{\n  "));
    assert!(!client.get("/api/v1/namespaces").await.bytes.contains(&b'\n'));
}

#[tokio::test]
async fn protobuf_goes_in_and_out() {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let client = Client::new().await;
    let object =
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"x": "1"}});
    let body = kinds::protobuf::encode(schema::builtin(), &object).unwrap();
    let headers = [("content-type", PROTOBUF), ("accept", PROTOBUF)];
    let answer = client.send(Method::POST, CONFIGMAPS, &headers, &body).await;
    assert_eq!((answer.code, answer.headers["content-type"].to_str().unwrap()), (201, PROTOBUF));
    let made = kinds::protobuf::decode(schema::builtin(), &answer.bytes, kinds::protobuf::TypeMeta::UNKNOWN)
        .unwrap()
        .value;
    assert_eq!(made, client.get(&format!("{CONFIGMAPS}/a")).await.json());
    let list = client.send(Method::GET, CONFIGMAPS, &headers[1..], b"").await;
    let list = kinds::protobuf::decode(schema::builtin(), &list.bytes, kinds::protobuf::TypeMeta::UNKNOWN)
        .unwrap()
        .value;
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
    let garbage = client.send(Method::POST, CONFIGMAPS, &headers[..1], b"k8s\0garbage").await;
    assert_eq!(garbage.failure().0, 400);
}
