//! gzip compression of large responses, as in kube-apiserver.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{Stream, StreamExt, stream};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use http::{HeaderMap, HeaderValue, Response};

use crate::body::{Aborted, Body};

/// Smaller responses are not compressed.
const MIN_BYTES: usize = 128 * 1024;

/// Whether the client accepts gzip.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|clause| {
        let (name, quality) = clause.split_once(';').unwrap_or((clause, ""));
        let refused = quality.trim().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// Compresses a response if it is large. Reads only the beginning of a stream.
pub(crate) async fn compress(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    let (body, is_compressed) = match body {
        Body::Full(bytes) if bytes.len() >= MIN_BYTES => (once(&bytes), true),
        Body::Full(bytes) => (Body::Full(bytes), false),
        Body::Chunks(chunks) => compress_if_large(chunks).await,
        held @ Body::Held(_) => (held, false),
    };
    if is_compressed {
        head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        head.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    Response::from_parts(head, body)
}

fn once(bytes: &[u8]) -> Body {
    let mut gzip = Gzip::new();
    let mut out = gzip.push(bytes).to_vec();
    out.extend(gzip.finish());
    out.into()
}

/// Reads a stream until it is large enough, or ends.
async fn compress_if_large(
    mut chunks: impl Stream<Item = Result<Bytes, Aborted>> + Send + Unpin + 'static,
) -> (Body, bool) {
    let mut read = Vec::new();
    let mut length = 0;
    while length < MIN_BYTES {
        match chunks.next().await {
            Some(Ok(chunk)) => {
                length += chunk.len();
                read.push(Ok(chunk));
            }
            Some(Err(aborted)) => {
                read.push(Err(aborted));
                return (Body::stream(stream::iter(read)), false);
            }
            None => {
                let whole: Vec<Bytes> = read.into_iter().flatten().collect();
                return (Body::from(whole.concat()), false);
            }
        }
    }
    (compressed(stream::iter(read).chain(chunks)), true)
}

fn compressed(chunks: impl Stream<Item = Result<Bytes, Aborted>> + Send + Unpin + 'static) -> Body {
    let state = Some((chunks, Gzip::new()));
    Body::stream(stream::unfold(state, |state| async move {
        let (mut chunks, mut gzip) = state?;
        loop {
            match chunks.next().await {
                Some(Ok(chunk)) => {
                    let out = gzip.push(&chunk);
                    // The encoder buffers: not every chunk yields bytes.
                    if !out.is_empty() {
                        return Some((Ok(out), Some((chunks, gzip))));
                    }
                }
                Some(Err(aborted)) => return Some((Err(aborted), None)),
                None => return Some((Ok(gzip.finish()), None)),
            }
        }
    }))
}

struct Gzip(GzEncoder<Vec<u8>>);

impl Gzip {
    fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    fn push(&mut self, bytes: &[u8]) -> Bytes {
        self.0.write_all(bytes).expect("a vector takes all that is written to it");
        std::mem::take(self.0.get_mut()).into()
    }

    fn finish(self) -> Bytes {
        self.0.finish().expect("a vector takes all that is written to it").into()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use http_body_util::BodyExt;

    fn asks(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn accept_encoding_decides_about_gzip() {
        for value in ["gzip", "deflate, gzip;q=0.5", "GZIP", "br,gzip"] {
            assert!(is_wanted(&asks(value)), "{value}");
        }
        for value in ["", "identity", "gzip;q=0", "xgzip"] {
            assert!(!is_wanted(&asks(value)), "{value}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
    }

    async fn read(body: Body) -> (bool, Vec<u8>) {
        let response = compress(Response::new(body)).await;
        let is_compressed = response.headers().contains_key(CONTENT_ENCODING);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        if !is_compressed {
            return (false, bytes.to_vec());
        }
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
        (true, plain)
    }

    #[tokio::test]
    async fn only_long_answers_are_compressed_and_none_is_changed() {
        for length in [0, 10, MIN_BYTES - 1, MIN_BYTES, 3 * MIN_BYTES + 7] {
            let bytes: Vec<u8> = (0..length).map(|i| u8::try_from(i % 251).unwrap()).collect();
            let is_long = length >= MIN_BYTES;
            assert_eq!(read(Body::from(bytes.clone())).await, (is_long, bytes.clone()), "{length}");
            let chunks: Vec<_> = bytes.chunks(1000).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
            assert_eq!(read(Body::stream(stream::iter(chunks))).await, (is_long, bytes), "{length}");
        }
    }

    #[tokio::test]
    async fn a_broken_stream_stays_broken_when_compressed() {
        for length in [1, 200] {
            let mut chunks: Vec<_> = vec![Ok(Bytes::from(vec![b'x'; 1024])); length]
                .into_iter()
                .collect::<Vec<Result<Bytes, Aborted>>>();
            chunks.push(Err(Aborted));
            let response = compress(Response::new(Body::stream(stream::iter(chunks)))).await;
            assert!(response.into_body().collect().await.is_err());
        }
    }
}
