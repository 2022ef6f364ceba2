//! PEM (RFC 7468): blocks of base64 between two lines of dashes.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use thiserror::Error;

/// The label of a certificate.
pub const CERTIFICATE: &str = "CERTIFICATE";

const BEGIN: &[u8] = b"-----BEGIN ";
const DASHES: &[u8] = b"-----";
/// Characters per line of an encoded block.
const LINE: usize = 64;

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The text between the dashes of its first line.
    pub label: &'a str,
    /// Whether headers stand in front of the base64, as in encrypted keys of old.
    pub has_headers: bool,
    /// The decoded bytes.
    pub contents: Vec<u8>,
}

/// A block that begins and has no end, or no base64 inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a PEM block has no valid base64 or no matching END line")]
pub struct Malformed;

/// A text that is not exactly one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotSingle {
    /// The first block is missing, malformed or of another type.
    #[error("no PEM block of the expected type")]
    Missing,
    /// There is more than the block and white space.
    #[error("there is more than one PEM block without headers and white space around it")]
    Surrounded,
}

/// All blocks of a text in their order. Text between blocks is skipped. A malformed block is an error, and reading goes on behind
/// its first line.
pub fn blocks(text: &[u8]) -> impl Iterator<Item = Result<Block<'_>, Malformed>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let found = next_block(rest)?;
        rest = found.behind;
        Some(found.block)
    })
}

/// The bytes of a text that is exactly one block of this type: nothing but white space around it, no headers in it.
///
/// # Errors
/// When the text is anything else.
pub fn single(text: &[u8], label: &str) -> Result<Vec<u8>, NotSingle> {
    let Found { before, block, behind } = next_block(text).ok_or(NotSingle::Missing)?;
    let block = block.ok().filter(|block| block.label == label).ok_or(NotSingle::Missing)?;
    let is_blank = |text: &[u8]| text.iter().all(u8::is_ascii_whitespace);
    if block.has_headers || !is_blank(before) || !is_blank(behind) {
        return Err(NotSingle::Surrounded);
    }
    Ok(block.contents)
}

/// Writes a block.
#[must_use]
pub fn encode(label: &str, contents: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    let encoded = STANDARD.encode(contents);
    let mut rest = &*encoded;
    while !rest.is_empty() {
        let (line, behind) = rest.split_at(rest.len().min(LINE));
        text.push_str(line);
        text.push('\n');
        rest = behind;
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}

/// A block with the text on both sides of it.
struct Found<'a> {
    before: &'a [u8],
    block: Result<Block<'a>, Malformed>,
    behind: &'a [u8],
}

fn next_block(text: &[u8]) -> Option<Found<'_>> {
    let mut rest = text;
    loop {
        let before = &text[..text.len() - rest.len()];
        let (line, behind) = split_line(rest)?;
        rest = behind;
        let Some(label) = label_of(line) else { continue };
        return Some(match read_block(label, behind) {
            Some((block, behind)) => Found { before, block: Ok(block), behind },
            None => Found { before, block: Err(Malformed), behind },
        });
    }
}

/// The label of a line that begins a block: the dashes are the first characters of the line, and the last.
fn label_of(line: &[u8]) -> Option<&str> {
    std::str::from_utf8(line.strip_prefix(BEGIN)?.strip_suffix(DASHES)?).ok()
}

/// Reads a block from behind its first line; `None` where it is malformed.
fn read_block<'a>(label: &'a str, inside: &'a [u8]) -> Option<(Block<'a>, &'a [u8])> {
    let end = format!("-----END {label}-----");
    let (mut has_headers, mut encoded, mut rest) = (false, Vec::new(), inside);
    loop {
        let (line, behind) = split_line(rest)?;
        rest = behind;
        if line == end.as_bytes() {
            let contents = STANDARD.decode(encoded).ok()?;
            return Some((Block { label, has_headers, contents }, rest));
        }
        // Headers stand in front of the base64, which has no colon.
        if encoded.is_empty() && line.contains(&b':') {
            has_headers = true;
        } else {
            encoded.extend(line.iter().filter(|byte| !matches!(byte, b' ' | b'\t')));
        }
    }
}

/// The first line without the white space at its end, and what is behind it; `None` at the end of the text.
fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.is_empty() {
        return None;
    }
    let end = text.iter().position(|byte| *byte == b'\n');
    let (line, rest) = end.map_or((text, &[][..]), |end| (&text[..end], &text[end + 1..]));
    let length =
        line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).map_or(0, |last| last + 1);
    Some((&line[..length], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<Result<(String, Vec<u8>), Malformed>> {
        blocks(text.as_bytes())
            .map(|block| block.map(|block| (block.label.to_owned(), block.contents)))
            .collect()
    }

    #[test]
    fn blocks_are_read_in_order_and_text_between_them_is_skipped() {
        let (one, two) = (encode("ONE", &[1; 100]), encode("TWO", b""));
        let text = format!("# a comment\n{one}between\r\n{two}x{one}");
        assert_eq!(labels(&text), [Ok(("ONE".to_owned(), vec![1; 100])), Ok(("TWO".to_owned(), vec![]))]);
        assert_eq!(labels(&one.replace('\n', " \t\r\n")), [Ok(("ONE".to_owned(), vec![1; 100]))]);
        assert!(one.lines().all(|line| line.len() <= LINE));
    }

    #[test]
    fn a_malformed_block_is_an_error_and_the_next_one_is_read() {
        let good = encode("GOOD", b"good");
        for bad in [
            "-----BEGIN BAD-----\n",
            "-----BEGIN BAD-----\nAAA\n-----END BAD-----\n",
            "-----BEGIN BAD-----\nAA*A\n-----END BAD-----\n",
            "-----BEGIN BAD-----\nAAAA\n-----END GOOD-----\n",
            "-----BEGIN BAD-----\nAAAA -----END BAD-----\n",
        ] {
            let found = labels(&format!("{bad}{good}"));
            assert_eq!(found, [Err(Malformed), Ok(("GOOD".to_owned(), b"good".to_vec()))], "{bad}");
        }
    }

    #[test]
    fn headers_are_noticed_and_are_no_content() {
        let text = b"-----BEGIN A-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END A-----\n";
        let block = blocks(text).next().unwrap().unwrap();
        assert_eq!((block.has_headers, &block.contents[..]), (true, &[0, 0, 0][..]));
        assert_eq!(single(text, "A"), Err(NotSingle::Surrounded));
    }

    #[test]
    fn a_single_block_has_nothing_but_white_space_around_it() {
        let (good, other) = (encode("A", b"good"), encode("B", b"other"));
        for text in [
            good.clone(),
            format!("\n \r\n{good}\t\n"),
            good.replace('\n', "\r\n"),
            good.trim_end().to_owned(),
        ] {
            assert_eq!(single(text.as_bytes(), "A"), Ok(b"good".to_vec()), "{text}");
        }
        for (text, problem) in [
            (String::new(), NotSingle::Missing),
            (format!("x{good}"), NotSingle::Missing),
            (format!(" {good}"), NotSingle::Missing),
            (other.clone(), NotSingle::Missing),
            (format!("{other}{good}"), NotSingle::Missing),
            (format!("x{other}{good}"), NotSingle::Surrounded),
            (format!("x\n{good}"), NotSingle::Surrounded),
            (format!("{good}x"), NotSingle::Surrounded),
            (format!("{good}{good}"), NotSingle::Surrounded),
        ] {
            assert_eq!(single(text.as_bytes(), "A"), Err(problem), "{text}");
        }
    }
}
