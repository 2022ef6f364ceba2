//! PEM (RFC 7468): base64 blocks between BEGIN and END lines.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use thiserror::Error;

/// The label of a certificate.
pub const CERTIFICATE: &str = "CERTIFICATE";

const BEGIN: &[u8] = b"-----BEGIN ";
const DASHES: &[u8] = b"-----";
/// Characters per line of an encoded block.
const LINE: usize = 64;

/// One PEM block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The text between the dashes of its first line.
    pub label: &'a str,
    /// Whether headers precede the base64, as in encrypted keys of the old format.
    pub has_headers: bool,
    /// The decoded bytes.
    pub contents: Vec<u8>,
}

/// A block without a matching END line or without valid base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a PEM block has no valid base64 or no matching END line")]
pub struct Malformed;

/// The reason why a text is not exactly one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotSingle {
    /// There is no block, or the first one is malformed or has another label.
    #[error("no PEM block of the expected type")]
    Missing,
    /// There is something other than white space around the block, or it has headers.
    #[error("there is more than one PEM block without headers and white space around it")]
    Surrounded,
}

/// All blocks of a text in order. Text between blocks is skipped. After a malformed block the search
/// continues behind its BEGIN line.
pub fn blocks(text: &[u8]) -> impl Iterator<Item = Result<Block<'_>, Malformed>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let found = next_block(rest)?;
        rest = found.behind;
        Some(found.block)
    })
}

/// Decodes a text that is exactly one block with this label: surrounded only by white space, without headers.
///
/// # Errors
/// When the text is anything else.
pub fn single(text: &[u8], label: &str) -> Result<Vec<u8>, NotSingle> {
    let LocatedBlock { before, block, behind } = next_block(text).ok_or(NotSingle::Missing)?;
    let block = block.ok().filter(|block| block.label == label).ok_or(NotSingle::Missing)?;
    let is_blank = |text: &[u8]| text.iter().all(u8::is_ascii_whitespace);
    if block.has_headers || !is_blank(before) || !is_blank(behind) {
        return Err(NotSingle::Surrounded);
    }
    Ok(block.contents)
}

/// Encodes a block.
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

/// A block with the text before and behind it.
struct LocatedBlock<'a> {
    before: &'a [u8],
    block: Result<Block<'a>, Malformed>,
    behind: &'a [u8],
}

fn next_block(text: &[u8]) -> Option<LocatedBlock<'_>> {
    let mut rest = text;
    loop {
        let before = &text[..text.len() - rest.len()];
        let (line, behind) = split_line(rest)?;
        rest = behind;
        let Some(label) = label_of(line) else { continue };
        return Some(match read_block(label, behind) {
            Some((block, behind)) => LocatedBlock { before, block: Ok(block), behind },
            None => LocatedBlock { before, block: Err(Malformed), behind },
        });
    }
}

/// The label of a BEGIN line: the dashes are the first and the last characters of the line.
fn label_of(line: &[u8]) -> Option<&str> {
    std::str::from_utf8(line.strip_prefix(BEGIN)?.strip_suffix(DASHES)?).ok()
}

/// Decodes a block from behind its BEGIN line; `None` if it is malformed.
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
        // A header line has a colon, base64 has none.
        if encoded.is_empty() && line.contains(&b':') {
            has_headers = true;
        } else {
            encoded.extend(line.iter().filter(|byte| !matches!(byte, b' ' | b'\t')));
        }
    }
}

/// Splits off the first line, without white space at its end; `None` at the end of the text.
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
