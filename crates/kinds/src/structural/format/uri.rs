//! Absolute URIs and paths, by the rules of Go's `ParseRequestURI`.

/// A URL with a scheme, or a path that begins with a slash.
pub fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        None => is_escaped(rest, |_| true),
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            is_authority(&rest[..end]) && is_escaped(&rest[end..], |_| true)
        }
    }
}

/// The scheme, which may be empty, and the rest; `None` for an empty scheme before a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
    match end {
        Some(0) if text.starts_with(':') => None,
        Some(end) if text[end..].starts_with(':') => {
            match text.starts_with(|c: char| c.is_ascii_alphabetic()) {
                true => Some((&text[..end], &text[end + 1..])),
                false => Some(("", text)),
            }
        }
        _ => Some(("", text)),
    }
}

/// Whether every `%` is followed by two hexadecimal digits, and every other character is allowed.
fn is_escaped(text: &str, is_allowed: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    bytes.iter().enumerate().all(|(at, byte)| match byte {
        b'%' => is_hex(at + 1) && is_hex(at + 2),
        byte => is_allowed(*byte),
    })
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_user_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    let is_host_byte = |byte: u8| {
        !byte.is_ascii() || byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
    };
    let port = match (host.starts_with('['), host.rfind(']')) {
        (true, None) => return false,
        (true, Some(end)) => &host[end + 1..],
        (false, _) => host.rfind(':').map_or("", |start| &host[start..]),
    };
    let is_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    // Hosts may escape only non-ASCII bytes, except in zones of addresses.
    let is_host = host.starts_with('[')
        || !host.contains('%')
        || host.split('%').skip(1).all(|part| {
            part.starts_with(['8', '9', 'a', 'b', 'c', 'd', 'e', 'f', 'A', 'B', 'C', 'D', 'E', 'F'])
        });
    user.bytes().all(is_user_byte)
        && is_escaped(user, |_| true)
        && is_port
        && is_host
        && is_escaped(host, is_host_byte)
}
