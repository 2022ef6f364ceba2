//! Formats of names, addresses and colors.

use std::sync::LazyLock;

use regex::Regex;

/// Non-empty Base64 with padding.
pub fn is_base64(text: &str) -> bool {
    let data = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !data.is_empty() && text.len().is_multiple_of(4) && data.bytes().all(is_digit)
}

/// Three or six hexadecimal digits, with an optional `#`.
pub fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `rgb(1, 2, 3)`.
pub fn is_rgb_color(text: &str) -> bool {
    let is_part = |part: &str| {
        let part = part.trim_matches([' ', '\t', '\n', '\x0c', '\r']);
        (part == "0" || !part.starts_with('0'))
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u8>().is_ok()
    };
    let inner = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    inner.is_some_and(|inner| inner.split(',').count() == 3 && inner.split(',').all(is_part))
}

/// A MAC address of 6, 8 or 20 bytes with colons, dashes or dots.
pub fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (separator, width) = match (bytes.get(2), bytes.get(4)) {
        (Some(separator @ (b':' | b'-')), _) => (*separator, 2),
        (_, Some(b'.')) => (b'.', 4),
        _ => return false,
    };
    let groups: Vec<&[u8]> = bytes.split(|byte| *byte == separator).collect();
    matches!(groups.len() * width / 2, 6 | 8 | 20)
        && groups.iter().all(|group| group.len() == width && group.iter().all(u8::is_ascii_hexdigit))
}

/// A host name: one label with at most one dash, after its first character, or several labels that end in letters.
pub fn is_hostname(text: &str) -> bool {
    if text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return false;
    }
    match text.rsplit_once('.') {
        None => {
            let mut characters = text.chars();
            let starts = characters.next().is_some_and(is_host_character);
            let rest = characters.as_str();
            starts && rest.strip_prefix('-').unwrap_or(rest).chars().all(is_host_character)
        }
        Some((labels, top)) => {
            top.chars().count() >= 2 && top.chars().all(char_is_letter) && labels.split('.').all(is_label)
        }
    }
}

fn is_label(label: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_some_and(is_host_character);
    is_edge(label.chars().next())
        && is_edge(label.chars().next_back())
        && label.chars().all(|c| c == '-' || is_host_character(c))
}

fn is_host_character(c: char) -> bool {
    static SYMBOL: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\p{S}$").expect("the pattern is constant"));
    c.is_ascii_alphanumeric() || char_is_letter(c) || SYMBOL.is_match(c.encode_utf8(&mut [0; 4]))
}

fn char_is_letter(c: char) -> bool {
    static LETTER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\p{L}$").expect("the pattern is constant"));
    c.is_ascii_alphabetic() || (!c.is_ascii() && LETTER.is_match(c.encode_utf8(&mut [0; 4])))
}

/// A mail address with an optional name: `Ann <ann@example.com>`.
pub fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    let Some((name, address)) = text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) else {
        return is_address(text);
    };
    is_phrase(name.trim_matches([' ', '\t'])) && is_address(address)
}

fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_literal = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|inner| {
        inner.strip_prefix("IPv6:").unwrap_or(inner).parse::<std::net::IpAddr>().is_ok()
    });
    (is_quoted(local) || is_dotted(local)) && (is_literal || is_dotted(domain))
}

fn is_dotted(text: &str) -> bool {
    text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom_character))
}

fn is_quoted(text: &str) -> bool {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let mut escaped = false;
    let fits = inner.is_some_and(|inner| {
        !inner.is_empty()
            && inner.chars().all(|c| {
                let fits = escaped || c == '\\' || (c != '"' && !c.is_control());
                escaped = !escaped && c == '\\';
                fits
            })
    });
    fits && !escaped
}

fn is_phrase(text: &str) -> bool {
    is_quoted(text)
        || text.split([' ', '\t']).all(|word| word.chars().all(|c| c == '.' || is_atom_character(c)))
}

fn is_atom_character(c: char) -> bool {
    !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}
