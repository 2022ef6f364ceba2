//! URL parser with the leniency and strictness of Go's `net/url`.

use std::fmt;

use lexical::quote;

use super::super::address;

/// A parsed URL.
#[derive(Debug, Default)]
pub(super) struct Url {
    /// Lower case.
    pub scheme: String,
    opaque: String,
    /// User and optional password, unescaped.
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    /// Host and optional port, unescaped.
    pub host: Vec<u8>,
    /// Whether a path follows a scheme without a host.
    omits_host: bool,
    path: Part,
    raw_query: String,
    has_empty_query: bool,
    fragment: Part,
}

/// A path or a fragment: unescaped, and as written.
#[derive(Debug, Default)]
struct Part {
    plain: Vec<u8>,
    written: String,
}

/// The part of a URL that a character is in, which decides about escaping.
#[derive(Clone, Copy, PartialEq)]
enum Component {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

impl Component {
    fn must_escape(self, byte: u8) -> bool {
        use Component::{Fragment, Host, Path, Query, User, Zone};
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => false,
            b'$' | b'&' | b'+' | b',' | b';' | b'=' => self == Query,
            b':' => matches!(self, Query | User),
            b'/' | b'@' => !matches!(self, Path | Fragment),
            b'?' => self != Fragment,
            b'!' | b'(' | b')' | b'*' => !matches!(self, Host | Zone | Fragment),
            b'\'' | b'[' | b']' | b'<' | b'>' | b'"' => !matches!(self, Host | Zone),
            _ => true,
        }
    }
}

impl Url {
    /// Parses any URL, also a relative one.
    pub fn parse(text: &str) -> Result<Url, String> {
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Url::parse_in(before, false)?;
        url.fragment = Part::new(fragment, Component::Fragment)?;
        Ok(url)
    }

    /// Parses an absolute URL or a path from the root, as in a request line.
    pub fn parse_request(text: &str) -> Result<Url, String> {
        Url::parse_in(text, true)
    }

    fn parse_in(text: &str, is_request: bool) -> Result<Url, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && is_request {
            return Err("empty url".to_owned());
        }
        let mut url = Url::default();
        if text == "*" {
            url.path = Part { plain: b"*".to_vec(), written: "*".to_owned() };
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.has_empty_query = query.is_empty() && text.ends_with('?');
        url.raw_query = query.to_owned();
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_owned();
                return Ok(url);
            }
            if is_request {
                return Err("invalid URI for request".to_owned());
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let may_have_host = !url.scheme.is_empty() || !is_request && !rest.starts_with("///");
        if let Some(behind) = rest.strip_prefix("//").filter(|_| may_have_host) {
            let (authority, path) = behind.split_at(behind.find('/').unwrap_or(behind.len()));
            rest = path;
            url.read_authority(authority)?;
        } else {
            url.omits_host = !url.scheme.is_empty() && rest.starts_with('/');
        }
        url.path = Part::new(rest, Component::Path)?;
        Ok(url)
    }

    fn read_authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        self.host = parse_host(host)?;
        let Some(user) = user else { return Ok(()) };
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(is_allowed) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        self.user = Some(match user.split_once(':') {
            None => (unescape(user, Component::User)?, None),
            Some((name, password)) => {
                (unescape(name, Component::User)?, Some(unescape(password, Component::User)?))
            }
        });
        Ok(())
    }

    /// The host without port and brackets.
    pub fn hostname(&self) -> &[u8] {
        self.split_port().0
    }

    /// The port; empty if there is none.
    pub fn port(&self) -> &[u8] {
        self.split_port().1
    }

    fn split_port(&self) -> (&[u8], &[u8]) {
        let (mut host, mut port): (&[u8], &[u8]) = (&self.host, b"");
        if let Some(colon) = host.iter().rposition(|byte| *byte == b':')
            && host[colon + 1..].iter().all(u8::is_ascii_digit)
        {
            (host, port) = (&host[..colon], &host[colon + 1..]);
        }
        let inner = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]"));
        (inner.unwrap_or(host), port)
    }

    /// The path in escaped form.
    pub fn escaped_path(&self) -> String {
        self.path.escaped(Component::Path)
    }

    /// Keys and values of the query; malformed ones are omitted.
    pub fn query(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        const MAX_PARAMETERS: usize = 10_000;
        if self.raw_query.bytes().filter(|byte| *byte == b'&').count() >= MAX_PARAMETERS {
            return Vec::new();
        }
        let settings =
            self.raw_query.split('&').filter(|setting| !setting.is_empty() && !setting.contains(';'));
        let pair = |setting: &str| {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            Some((unescape(key, Component::Query).ok()?, unescape(value, Component::Query).ok()?))
        };
        settings.filter_map(pair).collect()
    }
}

/// The URL as text; URLs with the same text are equal.
impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(formatter, "{}:", self.scheme)?;
        }
        match self.opaque.is_empty() {
            false => formatter.write_str(&self.opaque)?,
            true => self.hierarchy(formatter)?,
        }
        if self.has_empty_query || !self.raw_query.is_empty() {
            write!(formatter, "?{}", self.raw_query)?;
        }
        match self.fragment.plain.is_empty() {
            true => Ok(()),
            false => write!(formatter, "#{}", self.fragment.escaped(Component::Fragment)),
        }
    }
}

impl Url {
    fn hierarchy(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.escaped_path();
        let has_authority = !self.host.is_empty() || self.user.is_some();
        if has_authority || !self.scheme.is_empty() && !self.omits_host && !path.is_empty() {
            formatter.write_str("//")?;
        }
        if let Some((name, password)) = &self.user {
            formatter.write_str(&escape(name, Component::User))?;
            if let Some(password) = password {
                write!(formatter, ":{}", escape(password, Component::User))?;
            }
            formatter.write_str("@")?;
        }
        formatter.write_str(&escape(&self.host, Component::Host))?;
        if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
            formatter.write_str("/")?;
        }
        formatter.write_str(&path)
    }
}

impl Part {
    fn new(written: &str, place: Component) -> Result<Part, String> {
        Ok(Part { plain: unescape(written, place)?, written: written.to_owned() })
    }

    /// The text as written if it is validly escaped, else a new escape.
    fn escaped(&self, place: Component) -> String {
        let is_valid = |byte: u8| b"!$&'()*+,;=:@[]%".contains(&byte) || !place.must_escape(byte);
        match self.written.bytes().all(is_valid) {
            true => self.written.clone(),
            false => escape(&self.plain, place),
        }
    }
}

/// The scheme (may be empty), and the rest.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    let len = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)).count();
    let (scheme, behind) = text.split_at(len);
    match behind.strip_prefix(':') {
        Some(_) if scheme.is_empty() => Err("missing protocol scheme".to_owned()),
        Some(behind) if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) => Ok((scheme, behind)),
        _ => Ok(("", text)),
    }
}

fn parse_host(host: &str) -> Result<Vec<u8>, String> {
    match host.rfind('[') {
        Some(0) => return parse_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    if let Some(colon) = host.rfind(':') {
        check_port(&host[colon..])?;
    }
    unescape(host, Component::Host)
}

/// Parses a host in brackets: an IPv6 address.
fn parse_literal(host: &str) -> Result<Vec<u8>, String> {
    let close = host.rfind(']').ok_or("missing ']' in host")?;
    check_port(&host[close + 1..])?;
    let port = unescape(&host[close + 1..], Component::Host)?;
    let inner = &host[1..close];
    let (address, zone) = inner.split_at(inner.find("%25").unwrap_or(inner.len()));
    let mut name = unescape(address, Component::Host)?;
    name.extend(unescape(zone, Component::Zone)?);
    let parsed =
        address::parse(&String::from_utf8_lossy(&name)).map_err(|error| format!("invalid host: {error}"))?;
    if parsed.address.is_ipv4() {
        return Err("invalid IP-literal".to_owned());
    }
    Ok([b"[", &name[..], b"]", &port].concat())
}

fn check_port(text: &str) -> Result<(), String> {
    let is_port =
        |text: &str| text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    match text.is_empty() || is_port(text) {
        true => Ok(()),
        false => Err(format!("invalid port {} after host", quote(text))),
    }
}

fn unescape(text: &str, place: Component) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'%' => {
                plain.push(escaped_byte(&bytes[index..], place)?);
                index += 2;
            }
            b'+' if place == Component::Query => plain.push(b' '),
            _ if matches!(place, Component::Host | Component::Zone)
                && byte.is_ascii()
                && place.must_escape(*byte) =>
            {
                let wrong = quote(&char::from(*byte).to_string());
                return Err(format!("invalid character {wrong} in host name"));
            }
            _ => plain.push(*byte),
        }
        index += 1;
    }
    Ok(plain)
}

/// Decodes `%xx` at the start of a text, if it is allowed there.
fn escaped_byte(bytes: &[u8], place: Component) -> Result<u8, String> {
    let digit = |index: usize| bytes.get(index).and_then(|byte| char::from(*byte).to_digit(16));
    let shown = &bytes[..bytes.len().min(3)];
    let refused = || format!("invalid URL escape {}", quote(&String::from_utf8_lossy(shown)));
    let (Some(high), Some(low)) = (digit(1), digit(2)) else { return Err(refused()) };
    let byte = u8::try_from(high << 4 | low).map_err(|_| refused())?;
    let is_allowed = match place {
        _ if shown == b"%25" => true,
        Component::Host => byte >= 0x80,
        Component::Zone => byte == b' ' || !Component::Host.must_escape(byte),
        _ => true,
    };
    if is_allowed { Ok(byte) } else { Err(refused()) }
}

fn escape(bytes: &[u8], place: Component) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for byte in bytes {
        match place.must_escape(*byte) {
            true => escaped.push_str(&format!("%{byte:02X}")),
            false => escaped.push(char::from(*byte)),
        }
    }
    escaped
}
