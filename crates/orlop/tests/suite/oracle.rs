//! Controllers, compared with the recorded behaviour of Kubernetes' own.
//!
//! `ORACLE=endpoints cargo test -p orlop --test suite oracle` compares only the scripts whose name contains
//! that text.

use std::{fs, time::Duration};

use http_body_util::BodyExt;
use kube::{
    Client, Config,
    client::Body,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use oracle::{Replay, Request, Response, Script};
use tokio::time::{sleep, timeout};

use crate::server::{PATIENCE, Server};

/// Pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(50);

/// A server with its controllers, called as the administrator of the recorder.
struct Controlled {
    client: Client,
    _server: Server,
    _folder: tempfile::TempDir,
}

impl Controlled {
    async fn start(script: &Script) -> Self {
        assert!(script.serves.is_none(), "no script about controllers asks for another API yet");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tokens = folder.path().join("tokens.csv");
        fs::write(&tokens, "admin-token,admin,admin,system:masters\n").expect("the folder is ours");
        let tokens = format!("--token-auth-file={}", tokens.display());
        let server = Server::start("up", &folder.path().join("data"), &[&tokens]).await;
        let kubeconfig = Kubeconfig::read_from(&server.kubeconfig).expect("the server has written it");
        let options = KubeConfigOptions::default();
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("it names a context");
        // A refusal is an answer here, even one that invites a retry.
        config.default_retry = false;
        config.auth_info = AuthInfo { token: Some("admin-token".to_owned().into()), ..AuthInfo::default() };
        let client = Client::try_from(config).expect("its certificates can be used");
        Self { client, _server: server, _folder: folder }
    }

    async fn send(&self, request: &Request) -> Response {
        let mut wire = http::Request::builder().method(request.method).uri(&request.path);
        wire = wire.header("user-agent", "oracle");
        for (key, value) in request.headers.iter().filter(|(_, value)| !value.is_empty()) {
            wire = wire.header(key, value);
        }
        let exchange = async {
            let wire = wire.body(Body::from(request.body.clone())).expect("scripts have requests");
            let sent = self.client.send(wire).await.expect("the server answers");
            let (head, mut body) = sent.into_parts();
            let lines = request.lines.filter(|_| head.status.is_success()).unwrap_or(usize::MAX);
            let mut bytes = Vec::new();
            while bytes.iter().filter(|byte| **byte == b'\n').count() < lines {
                let Some(frame) = body.frame().await else { break };
                bytes.extend_from_slice(&frame.expect("the answer is whole").into_data().unwrap_or_default());
            }
            let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let headers = head.headers.iter().map(|(key, value)| (key.to_string(), text(value))).collect();
            Response { code: head.status.as_u16(), headers, body: bytes }
        };
        timeout(PATIENCE, exchange).await.unwrap_or_else(|_| panic!("{} hangs", request.path))
    }
}

#[tokio::test]
async fn controllers_match_the_recorded_behaviour_of_kubernetes() {
    let filter = std::env::var("ORACLE").unwrap_or_default();
    let replay = Replay { filter: &filter, controllers: true };
    let send = async |server: &Controlled, request: &Request| server.send(request).await;
    let compared = replay.run(Controlled::start, send, async || sleep(PAUSE).await).await;
    compared.unwrap_or_else(|report| panic!("{report}"));
}
