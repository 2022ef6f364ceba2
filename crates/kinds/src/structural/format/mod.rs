//! The `format` of strings, as far as Kubernetes 1.35 validates it.

mod names;
mod numbers;
#[cfg(test)]
mod tests;
mod times;
mod uri;

use std::fmt;

use model::address::{ip, is_range};
use model::names::{is_dns1123_label, is_dns1123_subdomain};

pub use uri::is_request_uri;

/// A string format. An unknown format matches every text.
pub struct Format {
    name: Box<str>,
    check: Option<fn(&str) -> bool>,
}

impl Format {
    /// The format with this name, which may be unknown.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), check: check_of(name) }
    }

    /// The name, as the schema has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the format is validated.
    pub fn is_checked(&self) -> bool {
        self.check.is_some()
    }

    /// Whether a text matches the format.
    pub fn fits(&self, text: &str) -> bool {
        self.check.is_none_or(|check| check(text))
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Format({:?})", self.name)
    }
}

/// The validator of a format; dashes in names are ignored.
fn check_of(name: &str) -> Option<fn(&str) -> bool> {
    Some(match name.replace('-', "").as_str() {
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "byte" => names::is_base64,
        "cidr" => is_range,
        "creditcard" => numbers::is_credit_card,
        "date" => times::is_date,
        "datetime" => times::is_date_time,
        "duration" => times::is_duration,
        "email" => names::is_email,
        "hexcolor" => names::is_hex_color,
        "hostname" => names::is_hostname,
        "ipv4" => |text| text.contains('.') && ip(text).is_some(),
        "ipv6" => |text| text.contains(':') && text.parse::<std::net::IpAddr>().is_ok(),
        "isbn" => |text| numbers::is_isbn10(text) || numbers::is_isbn13(text),
        "isbn10" => numbers::is_isbn10,
        "isbn13" => numbers::is_isbn13,
        "k8slongname" => is_dns1123_subdomain,
        "k8sshortname" => is_dns1123_label,
        "mac" => names::is_mac,
        "password" => |_| true,
        "rgbcolor" => names::is_rgb_color,
        "ssn" => numbers::is_ssn,
        "uri" => uri::is_request_uri,
        "uuid" => |text| numbers::is_uuid(text, None),
        "uuid3" => |text| numbers::is_uuid(text, Some('3')),
        "uuid4" => |text| numbers::is_uuid(text, Some('4')),
        "uuid5" => |text| numbers::is_uuid(text, Some('5')),
        _ => return None,
    })
}
