//! Serves a resource type `scores` in process: creates three objects, has one refused, prints the table and
//! the gold medals.
//!
//! Run it with `cargo run --package example-scores`.

mod score;

use std::sync::Arc;

use anyhow::{Context, Result};
use apiserver::auth::Identity;
use apiserver::{ApiServer, ApiService};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use store::sqlite::Sqlite;
use store::{Metrics, Options, Store};
use tower_service::Service;

const SCORES: &str = "/apis/games.example.com/v1/namespaces/arcade/scores";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

#[tokio::main]
async fn main() -> Result<()> {
    let server = server().await?;
    for (player, points) in [("ada", 120), ("bob", 60), ("cyd", 7), ("dan", -1)] {
        let score = json!({"metadata": {"name": player}, "points": points});
        let (code, answer) = send(&server, Method::POST, SCORES, "", &score).await?;
        println!("{code} {player}: {}", answer["message"].as_str().unwrap_or("made"));
    }
    let (_, table) = send(&server, Method::GET, SCORES, TABLE, &Value::Null).await?;
    for row in table["rows"].as_array().context("a table has rows")? {
        println!("{}", row["cells"]);
    }
    let (_, gold) =
        send(&server, Method::GET, &format!("{SCORES}?fieldSelector=medal%3Dgold"), "", &Value::Null).await?;
    println!("gold: {}", gold["items"][0]["metadata"]["name"]);
    Ok(())
}

/// A server in memory that serves only scores, called as its administrator.
async fn server() -> Result<ApiService> {
    let mut metrics = prometheus_client::registry::Registry::default();
    let store_metrics = Metrics::new(&mut metrics);
    let store = Store::open(Arc::new(Sqlite::in_memory()?), Options::default(), &store_metrics).await?;
    let api = ApiServer::empty_builder(store).metrics(metrics).register(score::score_type()).build().await?;
    Ok(ApiService::new(api, Identity::authenticated("admin", ["system:masters".to_owned()])))
}

/// Sends a request and decodes the answer.
async fn send(
    server: &ApiService,
    method: Method,
    path: &str,
    accept: &str,
    body: &Value,
) -> Result<(u16, Value)> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(path).header("accept", accept);
    let request = request.body(Full::new(Bytes::from(body)))?;
    let response = server.clone().call(request).await?;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok((code, serde_json::from_slice(&bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn create(server: &ApiService, player: &str, points: i64) -> (u16, Value) {
        let score = json!({"metadata": {"name": player}, "points": points});
        send(server, Method::POST, SCORES, "", &score).await.unwrap()
    }

    #[tokio::test]
    async fn the_rules_of_the_type_hold() {
        let server = server().await.unwrap();
        let (code, made) = create(&server, "ada", 120).await;
        assert_eq!((code, &made["medal"]), (201, &json!("gold")));
        let (code, refused) = create(&server, "dan", -1).await;
        assert_eq!((code, &refused["details"]["causes"][0]["field"]), (422, &json!("points")));
    }

    #[tokio::test]
    async fn the_field_of_the_type_selects() {
        let server = server().await.unwrap();
        create(&server, "ada", 120).await;
        create(&server, "bob", 60).await;
        let path = format!("{SCORES}?fieldSelector=medal%3Dsilver");
        let (_, list) = send(&server, Method::GET, &path, "", &Value::Null).await.unwrap();
        assert_eq!(list["items"].as_array().unwrap().len(), 1);
        assert_eq!(list["items"][0]["metadata"]["name"], "bob");
    }

    #[tokio::test]
    async fn the_table_of_the_type_is_printed() {
        let server = server().await.unwrap();
        create(&server, "ada", 120).await;
        let (_, table) = send(&server, Method::GET, SCORES, TABLE, &Value::Null).await.unwrap();
        assert_eq!(table["rows"][0]["cells"], json!(["ada", 120, "gold"]));
    }

    #[tokio::test]
    async fn verbs_that_the_type_lacks_are_refused_and_not_discovered() {
        let server = server().await.unwrap();
        create(&server, "ada", 120).await;
        for (method, path) in [
            (Method::DELETE, format!("{SCORES}/ada")),
            (Method::PUT, format!("{SCORES}/ada")),
            (Method::DELETE, SCORES.to_owned()),
        ] {
            let (code, _) = send(&server, method, &path, "", &json!({})).await.unwrap();
            assert_eq!(code, 405, "{path}");
        }
        let (_, list) =
            send(&server, Method::GET, "/apis/games.example.com/v1", "", &Value::Null).await.unwrap();
        assert_eq!(list["resources"][0]["verbs"], json!(["create", "get", "list", "watch"]));
    }
}
