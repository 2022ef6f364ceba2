//! Compressed text: schemas are large, repetitive and seldom read.

use std::borrow::Cow;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// Shorter text is not compressed.
const MIN_BYTES: usize = 8 * 1024;

/// A text, compressed if it is long.
pub(super) enum Compressed {
    Plain(Box<[u8]>),
    Deflated { bytes: Box<[u8]>, length: usize },
}

impl Compressed {
    /// Compresses a text.
    pub fn new(text: &[u8]) -> Self {
        if text.len() < MIN_BYTES {
            return Self::Plain(text.into());
        }
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(text.len() / 8), Compression::fast());
        encoder.write_all(text).expect("a write to memory does not fail");
        let bytes = encoder.finish().expect("a write to memory does not fail");
        Self::Deflated { bytes: bytes.into(), length: text.len() }
    }

    /// The original text.
    pub fn text(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Plain(text) => Cow::Borrowed(text),
            Self::Deflated { bytes, length } => {
                let mut text = Vec::with_capacity(*length);
                let read = DeflateDecoder::new(&**bytes).read_to_end(&mut text);
                read.expect("what was packed here can be unpacked");
                Cow::Owned(text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Compressed, MIN_BYTES};

    #[test]
    fn compressed_text_can_be_read_again() {
        for length in [0, 1, MIN_BYTES - 1, MIN_BYTES, 1 << 20] {
            let text: Vec<u8> = b"type: object, ".iter().copied().cycle().take(length).collect();
            let packed = Compressed::new(&text);
            assert_eq!(packed.text(), text);
            if let Compressed::Deflated { bytes, .. } = packed {
                assert!(bytes.len() < length / 20, "{} of {length}", bytes.len());
            }
        }
    }
}
