//! Image names.

/// Whether an image has the tag `latest`, which is implied if it has neither tag nor digest.
pub fn pulls_latest(image: &str) -> bool {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    let is_good = is_name(name) && tag.is_none_or(is_tag) && digest.is_none_or(is_digest);
    is_good && (tag == Some("latest") || (tag.is_none() && digest.is_none()))
}

/// Whether a name is a path with an optional host.
fn is_name(name: &str) -> bool {
    let (host, path) = match name.split_once('/') {
        Some((first, rest)) if is_host(first) => (first, rest),
        _ => ("", name),
    };
    let is_good_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    host.bytes().all(is_good_host) && path.split('/').all(is_component)
}

fn is_host(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost" || first.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Lower case letters and digits, separated by `.`, `_`, `__` or dashes.
fn is_component(part: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    let ends_well = |byte: Option<&u8>| byte.is_some_and(|byte| is_letter(*byte));
    let separators = part.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    ends_well(bytes.first())
        && ends_well(bytes.last())
        && separators.into_iter().all(|between| {
            matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-')
        })
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts_well = tag.bytes().next().is_some_and(is_word);
    starts_well && tag.len() <= 128 && tag.bytes().all(|byte| is_word(byte) || b".-".contains(&byte))
}

fn is_digest(digest: &str) -> bool {
    digest
        .split_once(':')
        .is_some_and(|(_, hex)| hex.len() >= 32 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}
