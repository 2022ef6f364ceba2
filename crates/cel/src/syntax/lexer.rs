//! The lexer.

use super::{
    source::Issue,
    token::{Token, TokenKind},
};

/// The tokens of a source text, with an end token, and the errors.
pub(crate) fn tokens(source: &str) -> (Vec<Token>, Vec<Issue>) {
    let mut lexer = Lexer { bytes: source.as_bytes(), at: 0 };
    let (mut tokens, mut issues) = (Vec::new(), Vec::new());
    loop {
        lexer.skip_blank();
        let start = lexer.at;
        if start >= lexer.bytes.len() {
            break;
        }
        match lexer.token() {
            Ok((kind, length)) => {
                lexer.at = start + length;
                tokens.push(Token { kind, start: offset(start), end: offset(lexer.at) });
            }
            Err(failed) => {
                // Skips the text up to and including the invalid character.
                let rest = &source[start + failed..];
                lexer.at = start + failed + rest.chars().next().map_or(0, char::len_utf8);
                let read = &source[start..lexer.at];
                let message = format!("Syntax error: token recognition error at: '{}'", escaped(read));
                issues.push(Issue { position: Some(offset(start)), message });
            }
        }
    }
    let end = offset(source.len());
    tokens.push(Token { kind: TokenKind::Eof, start: end, end });
    (tokens, issues)
}

/// Escapes line breaks and tabs for messages.
fn escaped(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}

fn offset(index: usize) -> u32 {
    u32::try_from(index).expect("the length of an expression is limited")
}

struct Lexer<'s> {
    bytes: &'s [u8],
    at: usize,
}

impl Lexer<'_> {
    fn skip_blank(&mut self) {
        loop {
            match self.rest() {
                [b' ' | b'\t' | b'\r' | b'\n' | 0x0c, ..] => self.at += 1,
                [b'/', b'/', ..] => {
                    let length = self.rest().iter().position(|byte| *byte == b'\n');
                    self.at = length.map_or(self.bytes.len(), |length| self.at + length);
                }
                _ => return,
            }
        }
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// The kind and length of the next token, or the number of valid bytes before the error.
    fn token(&self) -> Result<(TokenKind, usize), usize> {
        let rest = self.rest();
        if let Some(found) = self.text() {
            return found;
        }
        if let Some(found) = number(rest) {
            return Ok(found);
        }
        if rest[0].is_ascii_alphabetic() || rest[0] == b'_' {
            let length = word_length(rest);
            return Ok((keyword(&rest[..length]), length));
        }
        if rest[0] == b'`' {
            return escaped_identifier(rest);
        }
        symbol(rest)
    }

    /// A string or bytes literal with its prefix; `None` if the prefix is an identifier.
    fn text(&self) -> Option<Result<(TokenKind, usize), usize>> {
        let rest = self.rest();
        let (is_bytes, is_raw, prefix) = match rest {
            [b'b' | b'B', b'r' | b'R', b'"' | b'\'', ..] => (true, true, 2),
            [b'b' | b'B', b'"' | b'\'', ..] => (true, false, 1),
            [b'r' | b'R', b'"' | b'\'', ..] => (false, true, 1),
            [b'"' | b'\'', ..] => (false, false, 0),
            _ => return None,
        };
        let kind = if is_bytes { TokenKind::Bytes } else { TokenKind::String };
        match string_length(&rest[prefix..], is_raw) {
            Ok(length) => Some(Ok((kind, prefix + length))),
            Err(_) if prefix > 0 => None,
            Err(good) => Some(Err(good)),
        }
    }
}

/// The length of a string literal, or the number of valid bytes.
fn string_length(text: &[u8], is_raw: bool) -> Result<usize, usize> {
    let quote = text[0];
    if text.len() >= 3 && text[1] == quote && text[2] == quote {
        // Two quotes are an empty string, unless they start a complete triple-quoted string.
        return Ok(long_string(text, quote, is_raw).unwrap_or(2));
    }
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            byte if byte == quote => return Ok(at + 1),
            b'\n' | b'\r' => return Err(at),
            b'\\' if !is_raw => at += escape_length(&text[at..]).map_err(|good| at + good)?,
            _ => at += 1,
        }
    }
    Err(at)
}

fn long_string(text: &[u8], quote: u8, is_raw: bool) -> Option<usize> {
    let mut at = 3;
    while at < text.len() {
        if text[at..].starts_with(&[quote, quote, quote]) {
            return Some(at + 3);
        }
        at += if text[at] == b'\\' && !is_raw { escape_length(&text[at..]).ok()? } else { 1 };
    }
    None
}

/// The length of an escape sequence, or the number of valid bytes.
fn escape_length(text: &[u8]) -> Result<usize, usize> {
    let digits = |from: usize, count: usize, is_digit: fn(&u8) -> bool| {
        let good = text[from.min(text.len())..].iter().take(count).take_while(|byte| is_digit(byte)).count();
        if good == count { Ok(from + count) } else { Err(from + good) }
    };
    match text.get(1) {
        Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => Ok(2),
        Some(b'x' | b'X') => digits(2, 2, u8::is_ascii_hexdigit),
        Some(b'u') => digits(2, 4, u8::is_ascii_hexdigit),
        Some(b'U') => digits(2, 8, u8::is_ascii_hexdigit),
        Some(b'0'..=b'3') => digits(2, 2, |byte| (b'0'..=b'7').contains(byte)),
        _ => Err(1),
    }
}

fn word_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
}

fn keyword(word: &[u8]) -> TokenKind {
    match word {
        b"in" => TokenKind::In,
        b"true" => TokenKind::True,
        b"false" => TokenKind::False,
        b"null" => TokenKind::Null,
        _ => TokenKind::Identifier,
    }
}

fn escaped_identifier(text: &[u8]) -> Result<(TokenKind, usize), usize> {
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-/ ".contains(byte);
    let inner = text[1..].iter().take_while(|byte| is_inner(byte)).count();
    match text.get(inner + 1) {
        Some(b'`') if inner > 0 => Ok((TokenKind::EscapedIdentifier, inner + 2)),
        _ => Err(inner + 1),
    }
}

fn number(text: &[u8]) -> Option<(TokenKind, usize)> {
    let digits = |from: usize| text[from.min(text.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
    let unsigned = |length: usize| match text.get(length) {
        Some(b'u' | b'U') => (TokenKind::Uint, length + 1),
        _ => (TokenKind::Int, length),
    };
    if text.starts_with(b"0x") {
        let hex = text[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if hex > 0 {
            return Some(unsigned(hex + 2));
        }
    }
    let whole = digits(0);
    let fraction = if text.get(whole) == Some(&b'.') { digits(whole + 1) } else { 0 };
    if whole == 0 && fraction == 0 {
        return None;
    }
    let mantissa = if fraction > 0 { whole + 1 + fraction } else { whole };
    let exponent = match (text.get(mantissa), text.get(mantissa + 1)) {
        (Some(b'e' | b'E'), Some(b'+' | b'-')) => (2, digits(mantissa + 2)),
        (Some(b'e' | b'E'), _) => (1, digits(mantissa + 1)),
        _ => (0, 0),
    };
    match (exponent, fraction) {
        ((sign, count @ 1..), _) => Some((TokenKind::Float, mantissa + sign + count)),
        (_, 1..) => Some((TokenKind::Float, mantissa)),
        _ => Some(unsigned(whole)),
    }
}

fn symbol(text: &[u8]) -> Result<(TokenKind, usize), usize> {
    Ok(match text {
        [b'=', b'=', ..] => (TokenKind::Equals, 2),
        [b'!', b'=', ..] => (TokenKind::NotEquals, 2),
        [b'<', b'=', ..] => (TokenKind::LessEquals, 2),
        [b'>', b'=', ..] => (TokenKind::GreaterEquals, 2),
        [b'&', b'&', ..] => (TokenKind::And, 2),
        [b'|', b'|', ..] => (TokenKind::Or, 2),
        [b'=' | b'&' | b'|', ..] => return Err(1),
        [b'<', ..] => (TokenKind::Less, 1),
        [b'>', ..] => (TokenKind::Greater, 1),
        [b'[', ..] => (TokenKind::OpenBracket, 1),
        [b']', ..] => (TokenKind::CloseBracket, 1),
        [b'{', ..] => (TokenKind::OpenBrace, 1),
        [b'}', ..] => (TokenKind::CloseBrace, 1),
        [b'(', ..] => (TokenKind::OpenParen, 1),
        [b')', ..] => (TokenKind::CloseParen, 1),
        [b'.', ..] => (TokenKind::Dot, 1),
        [b',', ..] => (TokenKind::Comma, 1),
        [b'-', ..] => (TokenKind::Minus, 1),
        [b'!', ..] => (TokenKind::Exclamation, 1),
        [b'?', ..] => (TokenKind::Question, 1),
        [b':', ..] => (TokenKind::Colon, 1),
        [b'+', ..] => (TokenKind::Plus, 1),
        [b'*', ..] => (TokenKind::Star, 1),
        [b'/', ..] => (TokenKind::Slash, 1),
        [b'%', ..] => (TokenKind::Percent, 1),
        _ => return Err(0),
    })
}
