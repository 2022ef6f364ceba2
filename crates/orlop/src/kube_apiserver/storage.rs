//! Connections to the store: an `etcd` of this program, by its client URL.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use process::sockets;
use rustls::pki_types::ServerName;
use server::Storage;
use store::remote::{Connector, PROTOCOL, Stream};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::etcd::{PREFIX_HEADER, STORE_PATH};

/// The time limit for the text of an error response.
const ERROR_BODY: Duration = Duration::from_millis(10);

/// The time limit for connecting to one server.
const CONNECT: Duration = Duration::from_secs(5);

/// The size limit of a response head.
const MAX_HEAD: u64 = 16 << 10;

/// A store in another process.
pub(super) struct RemoteStore {
    /// Addresses of one and the same store.
    pub(super) servers: Vec<EtcdUrl>,
    /// Present if an address is secure.
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
    /// Selects one of its databases.
    pub(super) prefix: String,
}

/// `http://HOST:PORT` or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EtcdUrl {
    host: String,
    port: u16,
    pub(super) is_secure: bool,
}

/// A text that is no address of a store.
#[derive(Debug, Error)]
#[error("--etcd-servers: `{0}` is no address: give http://HOST:PORT, such as http://127.0.0.1:2379")]
pub(super) struct BadUrl(String);

impl FromStr for EtcdUrl {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        let bad = || BadUrl(text.to_owned());
        let (is_secure, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            Some(_) => return Err(bad()),
            None => (false, text),
        };
        let (host, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or_else(bad)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if host.is_empty() || (bracketed.is_none() && host.contains([':', '/', '[', ']'])) {
            return Err(bad());
        }
        let port = port.parse().map_err(|_| bad())?;
        Ok(Self { host: bracketed.unwrap_or(host).to_owned(), port, is_secure })
    }
}

impl RemoteStore {
    /// The storage of a server that waits this long for the store to appear.
    pub(super) fn storage(self, timeout: Duration) -> Storage {
        let first = self.servers.first().map(|server| format!("{}:{}", server.host, server.port));
        let address = format!("{}, which --etcd-servers names", first.unwrap_or_default());
        let remote = Arc::new(self);
        let connector: Connector = Arc::new(move || {
            let remote = Arc::clone(&remote);
            Box::pin(async move { remote.connect().await })
        });
        Storage::Remote { connector, address, timeout }
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, String> {
        let mut reason = "--etcd-servers is empty".to_owned();
        for server in &self.servers {
            match tokio::time::timeout(CONNECT, self.connect_to(server)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => reason = format!("{}:{}: {error}", server.host, server.port),
                Err(_) => reason = format!("{}:{}: it takes too long to answer", server.host, server.port),
            }
        }
        Err(reason)
    }

    async fn connect_to(&self, server: &EtcdUrl) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect((server.host.as_str(), server.port)).await?;
        stream.set_nodelay(true)?;
        sockets::detect_loss(&stream)?;
        match &self.tls {
            Some(tls) if server.is_secure => {
                let name = ServerName::try_from(server.host.clone()).map_err(io::Error::other)?;
                let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await?;
                self.upgrade(stream, server).await
            }
            _ => self.upgrade(stream, server).await,
        }
    }

    /// Upgrades the connection to the store protocol, for the database of the prefix.
    async fn upgrade(&self, mut stream: impl Stream, server: &EtcdUrl) -> io::Result<Box<dyn Stream>> {
        let request = format!(
            "GET {STORE_PATH} HTTP/1.1\r\nHost: {}:{}\r\nConnection: upgrade\r\nUpgrade: {PROTOCOL}\r\n{PREFIX_HEADER}: {}\r\n\r\n",
            server.host, server.port, self.prefix
        );
        stream.write_all(request.as_bytes()).await?;
        // The store sends nothing behind its head before the first call, so the buffer loses nothing.
        let mut head = BufReader::new((&mut stream).take(MAX_HEAD));
        let mut first = String::new();
        head.read_line(&mut first).await?;
        let mut line = String::new();
        while head.read_line(&mut line).await? > 2 {
            line.clear();
        }
        if first.split_whitespace().nth(1) != Some("101") {
            let mut body = String::new();
            let _ = tokio::time::timeout(ERROR_BODY, head.read_line(&mut body)).await;
            let status = first.trim();
            return Err(io::Error::other(format!(
                "this is no etcd of Orlop, or not of this version: {status} {}",
                body.trim()
            )));
        }
        Ok(Box::new(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_as_etcd_writes_them() {
        let read = |text: &str| text.parse::<EtcdUrl>().map(|url| (url.host, url.port, url.is_secure)).ok();
        assert_eq!(read("http://127.0.0.1:2379"), Some(("127.0.0.1".to_owned(), 2379, false)));
        assert_eq!(read("https://[::1]:1/"), Some(("::1".to_owned(), 1, true)));
        assert_eq!(read("localhost:2379"), Some(("localhost".to_owned(), 2379, false)));
        for bad in ["", "http://", "http://host", "unix://x:1", "http://a/b:1", "http://::1:1", "http://h:x"]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
