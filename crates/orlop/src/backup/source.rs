//! Sources of a database copy: a running server, or the file of a stopped one.

use std::{
    io::{self, Read, Write},
    path::Path,
};

use anyhow::{Context, Result, anyhow, bail};
use bytes::{Buf, Bytes};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use store::sqlite;
use tokio::sync::mpsc;

use super::{archive::Contents, progress::of_pages};

/// The path of the copy on a server.
const PATH: &str = "/orlop/backup";

/// The size limit of an error response.
const MAX_REFUSAL: usize = 64 << 10;

/// A copy in progress.
pub(crate) struct Source {
    pub(crate) contents: Contents,
    pub(crate) bytes: u64,
    pub(crate) reader: Box<dyn Read + Send>,
    /// Receives the bytes of a copy over the network, while they are read.
    pub(crate) pump: Option<Pump>,
}

/// The body of a response, and the channel to its reader.
pub(crate) struct Pump {
    body: Body,
    pieces: mpsc::Sender<io::Result<Bytes>>,
}

impl Pump {
    /// Runs until the body ends or the reader is dropped.
    pub(crate) async fn run(mut self) {
        while let Some(frame) = self.body.frame().await {
            let piece = match frame.map(|frame| frame.into_data()) {
                Ok(Ok(piece)) => Ok(piece),
                Ok(Err(_trailers)) => continue,
                Err(error) => Err(io::Error::other(error)),
            };
            if self.pieces.send(piece).await.is_err() {
                return;
            }
        }
    }
}

/// The database of a stopped server.
pub(crate) fn from_file(database: &Path) -> Result<Source> {
    let snapshot = sqlite::backup_of_file(database, of_pages())?;
    let (clock, schema) = (snapshot.clock, snapshot.schema);
    let contents = Contents { schema, revision: clock.current.0, compacted: clock.compacted.0 };
    Ok(Source { contents, bytes: snapshot.bytes, reader: Box::new(snapshot.file), pump: None })
}

/// The database of a running server, through its API.
pub(crate) async fn from_server(kubeconfig: &Path) -> Result<Source> {
    let shown = kubeconfig.display();
    let file = Kubeconfig::read_from(kubeconfig).with_context(|| format!("cannot use {shown}"))?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let config = config.with_context(|| format!("cannot use {shown}"))?;
    let address = config.cluster_url.to_string();
    let client = Client::try_from(config).with_context(|| format!("cannot use {shown}"))?;
    // The response begins when the copy is complete.
    let _ = writeln!(io::stderr(), "the server at {address} copies its database");
    let request = Request::get(PATH).body(Body::empty())?;
    let response =
        client.send(request).await.with_context(|| format!("cannot reach the server at {address}"))?;
    let (head, body) = response.into_parts();
    if head.status != StatusCode::OK {
        bail!("the server at {address} refuses the backup: {}", refusal(head.status, body).await);
    }
    let number = |name: &str| number(&head.headers, name);
    let contents = Contents {
        schema: u32::try_from(number("orlop-schema-version")?)?,
        revision: number("orlop-revision")?,
        compacted: number("orlop-compacted")?,
    };
    let bytes = number("content-length")?;
    let (pieces, received) = mpsc::channel(4);
    let reader = Box::new(Pieces { received, current: Bytes::new() });
    Ok(Source { contents, bytes, reader, pump: Some(Pump { body, pieces }) })
}

fn number(headers: &HeaderMap, name: &str) -> Result<u64> {
    let text = headers.get(name).and_then(|value| value.to_str().ok());
    text.and_then(|text| text.parse().ok()).ok_or_else(|| anyhow!("the server sent no {name}: is it Orlop?"))
}

/// The message of a Status, or the text of the response.
async fn refusal(status: StatusCode, body: Body) -> String {
    let text =
        Limited::new(body, MAX_REFUSAL).collect().await.map(|whole| whole.to_bytes()).unwrap_or_default();
    let parsed: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    parsed["message"].as_str().map_or_else(|| status.to_string(), str::to_owned)
}

/// A blocking reader of the pieces in a channel.
struct Pieces {
    received: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.received.blocking_recv() {
                None => return Ok(0),
                Some(piece) => self.current = piece?,
            }
        }
        let length = out.len().min(self.current.len());
        self.current.copy_to_slice(&mut out[..length]);
        Ok(length)
    }
}
