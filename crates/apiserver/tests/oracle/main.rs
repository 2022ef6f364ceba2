//! Compares every recorded response of a real kube-apiserver with that of this server.
//!
//! `ORACLE=configmap cargo test -p apiserver --test oracle` compares only the scripts whose name contains that text.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod fuzz;
mod server;

use oracle::Replay;

use server::Server;

#[tokio::test]
async fn every_answer_is_that_of_kubernetes() {
    let filter = std::env::var("ORACLE").unwrap_or_default();
    let replay = Replay { filter: &filter, controllers: false };
    let start = async |script: &oracle::Script| Server::start(&script.setting()).await;
    let send = async |server: &Server, request: &oracle::Request| server.send(request).await;
    // Requests to a store in memory never wait: yielding lets background tasks run.
    let compared = replay.run(start, send, tokio::task::yield_now).await;
    compared.unwrap_or_else(|report| panic!("{report}"));
}
