//! `/orlop/backup`: a consistent copy of the embedded database. Needs the verb `get` on that non-resource URL.
//!
//! Keys are not included: they never leave the server's machine, see docs/backup.md.

use std::sync::Arc;

use bytes::BytesMut;
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response};
use model::error::Error;
use store::engine::Snapshot;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::sync::OwnedSemaphorePermit;

use crate::api::ApiServer;
use crate::body::{Aborted, Body};

/// The path of the endpoint.
pub(crate) const PATH: &str = "/orlop/backup";

/// Header: the last revision of the copy.
const REVISION: &str = "orlop-revision";

/// Header: the compaction revision of the copy.
const COMPACTED: &str = "orlop-compacted";

/// Header: the schema version of the copy.
const SCHEMA: &str = "orlop-schema-version";

/// Bytes per chunk.
const PIECE: usize = 256 << 10;

/// Sends a copy. One at a time: each needs as much disk as the database.
pub(super) async fn answer(api: &ApiServer, method: &str) -> Result<Response<Body>, Error> {
    if method == "head" {
        return Ok(Response::new(Body::empty()));
    }
    let turn = Arc::clone(&api.backups).try_acquire_owned().map_err(|_| Error::TooManyRequests {
        message: "another backup is running".to_owned(),
        retry_after_seconds: 10,
    })?;
    let snapshot = api.store.backup().await.map_err(|error| {
        tracing::error!(%error, "cannot copy the database for a backup");
        Error::Unavailable { message: "cannot copy the database; the server's log has the reason".to_owned() }
    })?;
    let Some(snapshot) = snapshot else {
        return Err(Error::BadRequest {
            message:
                "this server does not own its database: back up PostgreSQL with pg_dump or pg_basebackup, \
                      and an etcd of Orlop by its data directory (docs/backup.md)"
                    .to_owned(),
        });
    };
    let numbers = [
        (REVISION, snapshot.clock.current.0),
        (COMPACTED, snapshot.clock.compacted.0),
        (SCHEMA, u64::from(snapshot.schema)),
        (CONTENT_LENGTH.as_str(), snapshot.bytes),
    ];
    let mut response = Response::new(Body::stream(pieces(snapshot, turn)));
    let headers = response.headers_mut();
    for (name, number) in numbers {
        headers.insert(name, HeaderValue::from(number));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/vnd.sqlite3"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The chunks of the copy. The permit is released with the last one, or when the client is gone.
fn pieces(
    snapshot: Snapshot,
    turn: OwnedSemaphorePermit,
) -> impl futures::Stream<Item = Result<bytes::Bytes, Aborted>> + Send + 'static {
    let state = Some((File::from_std(snapshot.file), snapshot.bytes, turn));
    stream::unfold(state, |state| async move {
        let (mut file, left, turn) = state.filter(|(_, left, _)| *left > 0)?;
        let mut piece = BytesMut::with_capacity(PIECE);
        match file.read_buf(&mut piece).await {
            // The copy is shorter than announced; the client must not take this for the end.
            Ok(0) => Some((Err(Aborted), None)),
            Ok(read) => {
                let left = left.saturating_sub(read as u64);
                Some((Ok(piece.freeze()), Some((file, left, turn))))
            }
            Err(error) => {
                tracing::error!(%error, "cannot read the copy of the database for a backup");
                Some((Err(Aborted), None))
            }
        }
    })
}
