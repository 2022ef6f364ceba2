//! IP addresses, CIDR ranges and ports, parsed as Kubernetes parses them: legacy forms that it still accepts
//! are accepted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use crate::error::{FieldError, Path, quote};

const BAD_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const BAD_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// An address; leading zeros are ignored, and an IPv4-mapped IPv6 address is an IPv4 address.
pub fn ip(text: &str) -> Option<IpAddr> {
    ipv4(text).or_else(|| text.parse().ok().map(IpAddr::V6)).map(|ip| ip.to_canonical())
}

fn ipv4(text: &str) -> Option<IpAddr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = u8::try_from(decimal(parts.next()?)?).ok()?;
    }
    parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(octets)))
}

fn decimal(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.trim_start_matches('0')).and_then(|rest| match rest {
        "" => Some(0),
        rest => rest.parse().ok(),
    })
}

/// Whether a text is a CIDR range.
pub fn is_range(text: &str) -> bool {
    Range::parse(text).is_some()
}

/// Whether a text is an IPv6 address.
pub fn is_ipv6(text: &str) -> bool {
    matches!(ip(text), Some(IpAddr::V6(_)))
}

/// The error for a text that is no address, unless the old object had it.
pub fn bad_ip(path: &Path<'_>, text: &str, old: &[Value]) -> Option<FieldError> {
    let fine = old.iter().any(|old| old == text) || ip(text).is_some();
    (!fine).then(|| FieldError::invalid(path, text, BAD_IP))
}

/// Problems of an address that has to be in canonical form.
pub fn strict_ip(text: &str) -> Vec<String> {
    let problem = match (ip(text), text.parse()) {
        (None, _) => BAD_IP.to_owned(),
        (Some(_), Err(_)) => "must not have leading 0s".to_owned(),
        (Some(_), Ok(IpAddr::V6(mapped))) if mapped.to_ipv4_mapped().is_some() => {
            "must not be an IPv4-mapped IPv6 address".to_owned()
        }
        (Some(ip), Ok(_)) if text != ip.to_string() => {
            format!("must be in canonical form ({})", quote(&ip.to_string()))
        }
        _ => return Vec::new(),
    };
    vec![problem]
}

/// Problems of an address that traffic is sent to.
pub fn bad_destination(path: &Path<'_>, text: &str) -> Vec<FieldError> {
    let Some(ip) = ip(text) else {
        return vec![FieldError::invalid(path, text, "must be a valid IP address")];
    };
    let (link_local, multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (is_ipv6_link_local(ip), ip.segments()[0] & 0xff0f == 0xff02),
    };
    let unspecified = ip.is_unspecified().then(|| format!("may not be unspecified ({text})"));
    let others = [
        (ip.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ];
    let others = others.into_iter().filter(|(bad, _)| *bad).map(|(_, problem)| problem.to_owned());
    unspecified.into_iter().chain(others).map(|problem| FieldError::invalid(path, text, problem)).collect()
}

fn is_ipv6_link_local(ip: Ipv6Addr) -> bool {
    ip.segments()[0] & 0xffc0 == 0xfe80
}

/// The warning for an address that is not in canonical form.
pub fn ip_warning(path: &Path<'_>, text: &str) -> Option<String> {
    let read = ip(text)?;
    match text.parse() {
        Ok(IpAddr::V4(_)) => None,
        Ok(IpAddr::V6(strict)) if strict.to_ipv4_mapped().is_none() => {
            (strict.to_string() != text).then(|| {
                let (text, form) = (quote(text), quote(&strict.to_string()));
                format!("{path}: IPv6 address {text} should be in RFC 5952 canonical format ({form})")
            })
        }
        _ => Some(format!(
            "{path}: non-standard IP address {} will be considered invalid in a future Kubernetes release: use {}",
            quote(text),
            quote(&read.to_string())
        )),
    }
}

/// A CIDR range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    ip: IpAddr,
    length: u8,
}

impl Range {
    /// Parses a range; leading zeros are ignored, and the address may have bits behind the prefix.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let ip = ipv4(address).or_else(|| address.parse().ok().map(IpAddr::V6))?;
        let length = decimal(length).and_then(|length| u8::try_from(length).ok())?;
        (length <= bits(ip)).then_some(Self { ip, length })
    }

    /// The range without bits behind its prefix.
    pub fn network(self) -> Self {
        let ip = match self.ip {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(ip) & mask))
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(ip) & mask))
            }
        };
        Self { ip, ..self }
    }

    /// Whether it is one of IPv6.
    pub fn is_ipv6(self) -> bool {
        self.ip.is_ipv6()
    }

    /// Whether all addresses of the other range are in this one, and more.
    pub fn strictly_contains(self, other: Self) -> bool {
        self.length < other.length
            && self.is_ipv6() == other.is_ipv6()
            && Self { length: self.length, ..other }.network() == self.network()
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.ip, self.length)
    }
}

fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv6() { 128 } else { 32 }
}

/// The error for a text that is no range, unless the old object had it.
pub fn bad_range(path: &Path<'_>, text: &str, old: &[Value]) -> Option<FieldError> {
    let fine = old.iter().any(|old| old.as_str().is_some_and(|old| old.trim() == text))
        || Range::parse(text).is_some();
    (!fine).then(|| FieldError::invalid(path, text, BAD_RANGE))
}

/// Problems of a range that has to be in canonical form.
pub fn bad_strict_range(path: &Path<'_>, text: &str) -> Vec<FieldError> {
    let Some(range) = Range::parse(text) else { return vec![FieldError::invalid(path, text, BAD_RANGE)] };
    let mapped = matches!(range.ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
    let problem = if has_leading_zeros(text) {
        "must not have leading 0s in IP or prefix length".to_owned()
    } else if mapped {
        "must not have an IPv4-mapped IPv6 address".to_owned()
    } else if range.network() != range {
        "must not have bits set beyond the prefix length".to_owned()
    } else if text != range.to_string() {
        format!("must be in canonical form ({})", quote(&range.to_string()))
    } else {
        return Vec::new();
    };
    vec![FieldError::invalid(path, text, problem)]
}

fn has_leading_zeros(range: &str) -> bool {
    let (address, length) = range.split_once('/').unwrap_or((range, ""));
    (length.len() > 1 && length.starts_with('0')) || address.parse::<IpAddr>().is_err()
}

/// The warnings for a range that is not in canonical form.
pub fn range_warnings(path: &Path<'_>, text: &str) -> Vec<String> {
    let Some(range) = Range::parse(text) else { return Vec::new() };
    let (network, mut warnings) = (range.network(), Vec::new());
    let shown = quote(text);
    if network != range {
        let (all, one) =
            (quote(&network.to_string()), quote(&Range { length: bits(range.ip), ..range }.to_string()));
        warnings.push(format!(
            "{path}: CIDR value {shown} is ambiguous in this context (should be {all} or {one}?)"
        ));
    }
    let mapped = matches!(range.ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
    if has_leading_zeros(text) || mapped {
        let form = quote(&network.to_string());
        warnings.push(format!(
            "{path}: non-standard CIDR value {shown} will be considered invalid in a future Kubernetes release: use \
             {form}"
        ));
    }
    if warnings.is_empty() && range.is_ipv6() && range.to_string() != text {
        let form = quote(&range.to_string());
        warnings
            .push(format!("{path}: IPv6 CIDR value {shown} should be in RFC 5952 canonical format ({form})"));
    }
    warnings
}

/// The error of a port number out of range.
pub fn bad_port(path: &Path<'_>, port: i64) -> Option<FieldError> {
    let fine = (1..=65_535).contains(&port);
    (!fine).then(|| FieldError::invalid(path, port, "must be between 1 and 65535, inclusive"))
}

/// Problems of a port name.
pub fn bad_port_name(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    let letter = |byte: u8| byte.is_ascii_lowercase();
    let charset = |byte: u8| letter(byte) || byte.is_ascii_digit() || byte == b'-';
    [
        (name.len() > 15, "must be no more than 15 characters"),
        (
            name.is_empty() || !name.bytes().all(charset),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (!name.bytes().any(letter), "must contain at least one letter (a-z)"),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen"),
    ]
    .into_iter()
    .filter(|(bad, _)| *bad)
    .map(|(_, problem)| FieldError::invalid(path, name, problem))
    .collect()
}

/// Problems of a port that is a number or a name.
pub fn bad_port_or_name(path: &Path<'_>, port: &Value) -> Vec<FieldError> {
    match port {
        Value::String(name) => bad_port_name(path, name),
        port => bad_port(path, port.as_i64().unwrap_or_default()).into_iter().collect(),
    }
}
