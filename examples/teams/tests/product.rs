//! The product in the process of a server.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::time::Duration;

use clap::Command;
use example_teams::TEAMS_ROLE;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use role::Role;
use serde_json::json;
use server::{Config, Identity, Server, loopback};
use tokio::time::timeout;
use tower_service::Service;

/// Far longer than any step takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

fn role() -> Role {
    let flags = (TEAMS_ROLE.flags)(Command::new("teams")).get_matches_from(["teams"]);
    (TEAMS_ROLE.configure)(&flags).unwrap()
}

async fn get(server: &Server, caller: Identity, path: &str) -> (StatusCode, String) {
    let request = Request::get(path).body(Empty::new()).unwrap();
    let response = server.service(caller).call(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

fn teams(server: &Server) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("teams.example.com", "v1", "Team");
    Api::all_with(server.client(), &ApiResource::from_gvk_with_plural(&kind, "teams"))
}

fn team(name: &str) -> DynamicObject {
    let team = json!({
        "apiVersion": "teams.example.com/v1", "kind": "Team", "metadata": {"name": name}, "spec": {"lead": "ada"},
    });
    serde_json::from_value(team).unwrap()
}

#[tokio::test]
async fn a_team_gets_a_namespace_that_goes_with_it_and_system_names_are_refused() {
    let server = Server::start(Config { roles: vec![role()], ..Config::in_memory() }).await.unwrap();
    let is_ready = async || {
        get(&server, loopback::administrator(), "/readyz?verbose").await.1.contains("[+]role/teams ok")
    };
    until("the role is ready", is_ready).await;
    let (teams, namespaces) = (teams(&server), Api::<Namespace>::all(server.client()));

    teams.create(&PostParams::default(), &team("radar")).await.unwrap();
    let is_reconciled = async || {
        let team = teams.get("radar").await.unwrap();
        team.data["status"]["conditions"][0]["status"] == "True"
    };
    until("the Team is Ready", is_reconciled).await;
    assert!(namespaces.get_opt("radar").await.unwrap().is_some());

    let mut generated = team("any");
    (generated.metadata.name, generated.metadata.generate_name) = (None, Some("kube-".to_owned()));
    for hostile in [team("kube-radar"), generated] {
        let refused = teams.create(&PostParams::default(), &hostile).await.unwrap_err();
        assert!(refused.to_string().contains("kube- is the prefix of system Namespaces"), "{refused}");
    }

    let path = "/api/teams/v1/teams";
    let listed = get(&server, loopback::administrator(), path).await;
    assert_eq!(listed, (StatusCode::OK, "radar ada\n".to_owned()));
    let stranger = Identity::authenticated("stranger", []);
    assert_eq!(get(&server, stranger, path).await.0, StatusCode::FORBIDDEN);

    teams.delete("radar", &kube::api::DeleteParams::default()).await.unwrap();
    until("the Namespace is gone", async || namespaces.get_opt("radar").await.unwrap().is_none()).await;
    server.shutdown().await.unwrap();
}
