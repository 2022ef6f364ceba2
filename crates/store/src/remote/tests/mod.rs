//! Cases beyond the conformance suite: other servers, broken connections, lost histories, malformed bytes.

mod lost_history;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use model::Revision;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::message::{Request, read};
use super::{Connector, Remote, Shared, Stream, serve};
use crate::conformance::kit::{added, everything, next_seen, object};
use crate::engine::Engine;
use crate::{Error, Metrics, Options, Sqlite, Store};

/// A database, and the ends of connections to it: dropping one breaks that connection.
fn shared() -> (Connector, mpsc::UnboundedReceiver<tokio::sync::oneshot::Sender<()>>) {
    let shared = Arc::new(Shared::new(Arc::new(Sqlite::in_memory().unwrap())));
    let (made, connections) = mpsc::unbounded_channel();
    let serving = Mutex::new(JoinSet::new());
    let connector: Connector = Arc::new(move || {
        let (ours, theirs) = tokio::io::duplex(64);
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        serving.lock().unwrap().spawn(serve(theirs, Arc::clone(&shared), async {
            let _ = ended.await;
        }));
        let made = made.clone();
        Box::pin(async move {
            made.send(end).map_err(|_| "nobody may connect any more".to_owned())?;
            Ok(Box::new(ours) as Box<dyn Stream>)
        })
    });
    (connector, connections)
}

async fn store(connector: &Connector) -> Store {
    store_on(Arc::new(Remote::open(connector.clone()).await.unwrap())).await
}

async fn store_on(engine: Arc<Remote>) -> Store {
    let options = Options { compaction: None, ..Options::default() };
    Store::open(engine, options, &Metrics::unregistered()).await.unwrap()
}

#[tokio::test]
async fn a_commit_of_one_server_reaches_watches_of_the_other() {
    let (connector, _connections) = shared();
    let (first, second) = (store(&connector).await, store(&connector).await);
    let mut watch = second.watch(everything(), Revision::ZERO).await.unwrap();
    first.write(vec![object("ns/a").create()]).await.unwrap();
    assert_eq!(next_seen(&mut watch, 1).await, [added("a", "")]);
    second.write(vec![object("ns/b").create()]).await.unwrap();
    first.write(vec![object("ns/c").create()]).await.unwrap();
    assert_eq!(next_seen(&mut watch, 2).await, [added("b", ""), added("c", "")]);
}

#[tokio::test]
async fn a_connection_that_broke_is_made_again_and_nothing_is_missed() {
    let (connector, mut connections) = shared();
    let (watching, writing) = (store(&connector).await, store(&connector).await);
    let of_watching = connections.recv().await.unwrap();
    let mut watch = watching.watch(everything(), Revision::ZERO).await.unwrap();
    drop(of_watching);
    writing.write(vec![object("ns/a").create()]).await.unwrap();
    assert_eq!(next_seen(&mut watch, 1).await, [added("a", "")]);
    assert!(watching.get(&object("ns/a").key(), None).await.unwrap().is_some());
}

#[tokio::test]
async fn without_a_connection_calls_say_so() {
    let (connector, mut connections) = shared();
    let remote = Remote::open(connector).await.unwrap();
    let only = connections.recv().await.unwrap();
    drop((only, connections));
    let mut answer = remote.clock().await;
    while answer.is_ok() {
        tokio::task::yield_now().await;
        answer = remote.clock().await;
    }
    assert_eq!(answer, Err(Error::Unavailable { reason: "nobody may connect any more".to_owned() }));
    assert!(tokio::time::timeout(Duration::from_millis(1), remote.bell()).await.is_err());
}

#[tokio::test]
async fn a_client_of_another_protocol_is_disconnected() {
    for words in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 99]] {
        let shared = Arc::new(Shared::new(Arc::new(Sqlite::in_memory().unwrap())));
        let (mut ours, theirs) = tokio::io::duplex(64);
        let serving = serve(theirs, shared, std::future::pending());
        let (served, written) = tokio::join!(serving, ours.write_all(words));
        written.unwrap();
        assert_eq!(served.unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    }
}

proptest! {
    #[test]
    fn foreign_bytes_are_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..128)) {
        let bytes = Bytes::from(bytes);
        let _ = read::<Request>(bytes.clone());
        let _ = read::<Option<Result<crate::Page, Error>>>(bytes.clone());
        let _ = read::<Option<Result<crate::engine::Committed, Error>>>(bytes.clone());
        let _ = read::<Option<Result<crate::history::decide::ObservedHistory, Error>>>(bytes);
    }
}
