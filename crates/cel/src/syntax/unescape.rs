//! Unescaping of string and bytes literals.

/// The string of a literal with its quotes and prefix; `None` for an invalid escape.
pub(super) fn string(literal: &str) -> Option<String> {
    let (text, is_raw) = inner(literal);
    if is_raw {
        return Some(text);
    }
    let mut result = String::with_capacity(text.len());
    unescape(&text, |part| {
        match part {
            Part::Plain(text) => result.push_str(text),
            Part::Byte(byte) => result.push(char::from(byte)),
            Part::Code(code) => result.push(char::from_u32(code)?),
        }
        Some(())
    })?;
    Some(result)
}

/// The bytes of a literal; Unicode escapes are invalid there.
pub(super) fn bytes(literal: &str) -> Option<Vec<u8>> {
    let (text, is_raw) = inner(&literal[1..]);
    if is_raw {
        return Some(text.into_bytes());
    }
    let mut result = Vec::with_capacity(text.len());
    unescape(&text, |part| {
        match part {
            Part::Plain(text) => result.extend_from_slice(text.as_bytes()),
            Part::Byte(byte) => result.push(byte),
            Part::Code(_) => return None,
        }
        Some(())
    })?;
    Some(result)
}

enum Part<'t> {
    Plain(&'t str),
    Byte(u8),
    Code(u32),
}

/// The text between the quotes with normalized line ends, and whether it is raw.
fn inner(literal: &str) -> (String, bool) {
    let (is_raw, quoted) = match literal.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, literal),
    };
    let is_long = quoted.len() >= 6 && (quoted.starts_with("\"\"\"") || quoted.starts_with("'''"));
    let quotes = if is_long { 3 } else { 1 };
    let text = &quoted[quotes..quoted.len() - quotes];
    (text.replace("\r\n", "\n").replace('\r', "\n"), is_raw)
}

fn unescape<'t>(text: &'t str, mut emit: impl FnMut(Part<'t>) -> Option<()>) -> Option<()> {
    let mut rest = text;
    while let Some(index) = rest.find('\\') {
        emit(Part::Plain(&rest[..index]))?;
        let escape = &rest[index + 1..];
        let kind = escape.chars().next()?;
        let code = |from: usize, count: usize, radix: u32| {
            u32::from_str_radix(escape.get(from..from + count)?, radix).ok()
        };
        let (part, length) = match kind {
            'x' | 'X' => (Part::Byte(u8::try_from(code(1, 2, 16)?).ok()?), 3),
            'u' => (Part::Code(code(1, 4, 16)?), 5),
            'U' => (Part::Code(code(1, 8, 16)?), 9),
            '0'..='3' => (Part::Byte(u8::try_from(code(0, 3, 8)?).ok()?), 3),
            _ => (Part::Byte(simple(kind)?), 1),
        };
        emit(part)?;
        rest = &escape[length..];
    }
    emit(Part::Plain(rest))
}

fn simple(kind: char) -> Option<u8> {
    Some(match kind {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '"' | '\'' | '\\' | '?' | '`' => u8::try_from(kind).ok()?,
        _ => return None,
    })
}
