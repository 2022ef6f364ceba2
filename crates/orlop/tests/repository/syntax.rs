//! A scanner for Rust sources: code without its comments and literals, function parameters, log messages.

/// Code with the contents of comments, strings and characters replaced by spaces, byte for byte as long as the
/// source. The quotes of strings stay.
pub fn code(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'\'' => char_end(bytes, at),
            b'r' | b'b' | b'c' if !at.checked_sub(1).is_some_and(|before| is_word(bytes[before])) => {
                raw_string_end(bytes, at).unwrap_or(at)
            }
            _ => at,
        };
        if end == at {
            at += 1;
            continue;
        }
        let is_string = bytes[at] == b'"';
        for byte in &mut code[at..end] {
            if *byte != b'\n' && !(is_string && *byte == b'"') {
                *byte = b' ';
            }
        }
        if is_string {
            code[at + 1..end - 1].iter_mut().filter(|byte| **byte == b'"').for_each(|byte| *byte = b' ');
        }
        at = end;
    }
    String::from_utf8(code).expect("whole characters are replaced")
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// The end of a character literal; a lifetime ends where it begins.
fn char_end(bytes: &[u8], start: usize) -> usize {
    if bytes.get(start + 1) == Some(&b'\\') {
        let rest = bytes.get(start + 3..).unwrap_or_default();
        return rest.iter().position(|byte| *byte == b'\'').map_or(start, |length| start + 4 + length);
    }
    let text = std::str::from_utf8(&bytes[start + 1..(start + 5).min(bytes.len())]);
    let text = text.unwrap_or_else(|error| {
        std::str::from_utf8(&bytes[start + 1..start + 1 + error.valid_up_to()]).unwrap_or_default()
    });
    let length = text.chars().next().map_or(0, char::len_utf8);
    let is_literal = length > 0 && bytes.get(start + 1 + length) == Some(&b'\'');
    if is_literal { start + 2 + length } else { start }
}

fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while matches!(bytes.get(at), Some(b'b' | b'c')) {
        at += 1;
    }
    if bytes.get(at) != Some(&b'r') {
        return None;
    }
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let opening = at + 1 + hashes;
    if bytes.get(opening) != Some(&b'"') {
        return None;
    }
    let closing: Vec<u8> = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let length = bytes[opening + 1..].windows(closing.len()).position(|window| window == closing)?;
    Some(opening + 1 + length + closing.len())
}

/// The ranges between the commas of a list in brackets, `start` being the place behind its opening bracket.
fn arguments(code: &str, start: usize) -> Vec<std::ops::Range<usize>> {
    let bytes = code.as_bytes();
    let (mut depth, mut from) = (0, start);
    let mut ranges = Vec::new();
    for at in start..bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b'>' if matches!(bytes[at - 1], b'-' | b'=') => {}
            b')' | b']' | b'}' | b'>' if depth > 0 => depth -= 1,
            b',' if depth == 0 => {
                ranges.push(from..at);
                from = at + 1;
            }
            b')' | b']' | b'}' if depth == 0 => {
                ranges.push(from..at);
                break;
            }
            _ => {}
        }
    }
    ranges.retain(|range| !code[range.clone()].trim().is_empty());
    ranges
}

/// A function with its parameters, each as it stands in the signature.
pub struct Function<'a> {
    pub name: &'a str,
    pub parameters: Vec<&'a str>,
}

/// The functions of a source whose comments and literals are blank.
pub fn functions(code: &str) -> Vec<Function<'_>> {
    let mut functions = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if at > 0 && is_word(code.as_bytes()[at - 1]) {
            continue;
        }
        let rest = &code[at + 3..];
        let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
        let name = &rest[..length];
        let Some(open) = parameters_start(code, at + 3 + length).filter(|_| length > 0) else { continue };
        let parameters = arguments(code, open).into_iter().map(|range| code[range].trim()).collect();
        functions.push(Function { name, parameters });
    }
    functions
}

/// The place behind the bracket that opens the parameters, behind a function's name and its generics.
fn parameters_start(code: &str, start: usize) -> Option<usize> {
    let bytes = code.as_bytes();
    let mut depth = 0;
    for at in start..bytes.len() {
        match bytes[at] {
            b'<' => depth += 1,
            b'>' if bytes[at - 1] != b'-' => depth -= 1,
            b'(' if depth == 0 => return Some(at + 1),
            byte if depth == 0 && !byte.is_ascii_whitespace() => return None,
            _ => {}
        }
    }
    None
}

/// Whether the type of a parameter is a tuple or a reference to one.
pub fn is_tuple(parameter: &str) -> bool {
    let Some(kind) = type_of(parameter) else { return false };
    let mut kind = kind.trim_start();
    while let Some(rest) = kind.strip_prefix('&') {
        kind = rest.trim_start();
        if let Some(lifetime) = kind.strip_prefix('\'') {
            kind = lifetime.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').trim_start();
        }
        kind = kind.strip_prefix("mut ").unwrap_or(kind).trim_start();
    }
    kind.starts_with('(') && arguments(kind, 1).len() > 1
}

/// The type behind the colon of a parameter.
fn type_of(parameter: &str) -> Option<&str> {
    let bytes = parameter.as_bytes();
    let colon = (0..bytes.len()).find(|at| {
        let is_path = bytes.get(at + 1) == Some(&b':') || (*at > 0 && bytes[at - 1] == b':');
        bytes[*at] == b':' && !is_path
    });
    colon.map(|at| &parameter[at + 1..])
}

/// The messages of log macros in a source; empty where a macro has only fields.
pub fn log_messages<'a>(source: &'a str, code: &str) -> Vec<&'a str> {
    let mut messages = Vec::new();
    for name in ["trace!(", "debug!(", "info!(", "warn!(", "error!("] {
        for (at, _) in code.match_indices(name) {
            if at > 0 && is_word(code.as_bytes()[at - 1]) {
                continue;
            }
            let message = arguments(code, at + name.len()).into_iter().find_map(|range| {
                let start =
                    range.start + (code[range.clone()].len() - code[range.clone()].trim_start().len());
                let length = code[start..].strip_prefix('"')?.find('"')?;
                Some(&source[start + 1..start + 1 + length])
            });
            messages.push(message.unwrap_or_default());
        }
    }
    messages
}

#[test]
fn comments_and_literals_are_blank() {
    for (source, blank) in [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ d */ e", "a                   e"),
        (r#"f("a\"(b", 'c', '\'', 'x)"#, "f(\"     \",    ,     , 'x)"),
        ("r#\"a\" \"#; b\"c\"", "        ; b\" \""),
        ("'ä' 'a", "     'a"),
    ] {
        assert_eq!(code(source), blank, "{source}");
    }
}

#[test]
fn tuple_parameters_are_recognised() {
    let source = "fn plain(a: u8, b: &[(u8, u8)], c: impl Fn(u8, u8) -> u8) {}\n\
        fn unit(a: (), b: &(dyn Send + Sync), at: a::B<(u8, u8)>) {}\n\
        fn generic<F: Fn(u8) -> u8>(\n    &self,\n    (a, b): (u8, Vec<u8>),\n) {}\n\
        fn reference<'a>(a: &'a mut (u8, u8)) {}\n let x = |a: (u8, u8)| a; type F = fn(u8);";
    let code = code(source);
    let found: Vec<(&str, usize)> = functions(&code)
        .iter()
        .map(|function| (function.name, function.parameters.iter().filter(|p| is_tuple(p)).count()))
        .collect();
    assert_eq!(found, [("plain", 0), ("unit", 0), ("generic", 1), ("reference", 1)]);
}

#[test]
fn messages_are_found_behind_fields() {
    let source = "tracing::info!(port, name = \"x\", \"listening\"); warn!(%error);\n\
        error!(\"cannot read {path}: {error}\"); my_info!(\"other\"); // info!(\"no\")";
    assert_eq!(log_messages(source, &code(source)), ["listening", "", "cannot read {path}: {error}"]);
}
