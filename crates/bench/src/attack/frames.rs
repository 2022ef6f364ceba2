//! Connections of attackers: TLS without a client certificate, and HTTP/2 frames byte by byte.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::api_level::Endpoint;

/// The first bytes of an HTTP/2 client: the preface, and empty settings.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// The types and flags of frames.
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const CONTINUATION: u8 = 9;
pub const END_HEADERS: u8 = 4;
pub const END_STREAM_AND_HEADERS: u8 = 5;

/// `GET / https a`, as compressed headers.
pub const GET: &[u8] = b"\x82\x84\x87\x41\x01a";

/// A frame of HTTP/2.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Short headers as literals that are not indexed.
pub fn headers(headers: &[(&str, &str)]) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).ok().filter(|length| *length < 127);
    let mut block = Vec::new();
    for (name, value) in headers {
        for (i, text) in [name, value].into_iter().enumerate() {
            block.extend((i == 0).then_some(0));
            block.push(length(text).expect("the headers of attacks are short"));
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A connection that speaks this protocol.
pub async fn connect(endpoint: &Endpoint, protocol: &[u8]) -> Result<TlsStream<TcpStream>> {
    ensure!(endpoint.address.starts_with("127.0.0.1:"), "only loopback is attacked");
    let stream = TcpStream::connect(&endpoint.address).await.context("no connection")?;
    stream.set_nodelay(true)?;
    let mut tls = (*endpoint.tls).clone();
    tls.alpn_protocols = vec![protocol.to_vec()];
    Ok(TlsConnector::from(Arc::new(tls)).connect(endpoint.name.clone(), stream).await?)
}

/// An HTTP/2 client.
pub async fn http2(endpoint: &Endpoint, drivers: &mut JoinSet<()>) -> Result<SendRequest<Full<Bytes>>> {
    let stream = connect(endpoint, b"h2").await?;
    let (sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    drivers.spawn(async move {
        // Requests on a broken connection fail with its error.
        let _ = driver.await;
    });
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_literals_with_their_lengths() {
        assert_eq!(headers(&[(":path", "/a"), ("b", "")]), b"\0\x05:path\x02/a\0\x01b\0");
    }

    #[test]
    fn a_frame_has_length_type_flags_and_stream_in_front() {
        assert_eq!(frame(RST_STREAM, 0, 3, &[0, 0, 0, 8]), b"\0\0\x04\x03\0\0\0\0\x03\0\0\0\x08");
    }
}
