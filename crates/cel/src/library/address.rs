//! IP address parser with Go's strictness and error messages.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

use lexical::quote;

/// An address, and whether it had a zone.
#[derive(Debug, PartialEq)]
pub(crate) struct ParsedAddress {
    pub address: IpAddr,
    pub has_zone: bool,
}

/// The reason why a text is no address.
#[derive(Debug, PartialEq)]
pub(crate) struct AddressError {
    text: String,
    problem: &'static str,
    /// The rest of the text from the error on.
    at: String,
}

impl fmt::Display for AddressError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ParseAddr({}): {}", quote(&self.text), self.problem)?;
        match self.at.is_empty() {
            true => Ok(()),
            false => write!(formatter, " (at {})", quote(&self.at)),
        }
    }
}

/// A message, with the rest of the text if it is shown.
type Problem<'t> = (&'static str, &'t str);

/// Parses an address of either family.
pub(crate) fn parse(text: &str) -> Result<ParsedAddress, AddressError> {
    let parsed = match text.bytes().find(|byte| b".:%".contains(byte)) {
        Some(b'.') => v4(text).map(|octets| (IpAddr::V4(octets.into()), false)),
        Some(b':') => v6_with_zone(text),
        Some(_) => Err(("missing IPv6 address", "")),
        None => Err(("unable to parse IP", "")),
    };
    match parsed {
        Ok((address, has_zone)) => Ok(ParsedAddress { address, has_zone }),
        Err((problem, at)) => Err(AddressError { text: text.to_owned(), problem, at: at.to_owned() }),
    }
}

fn v4(text: &str) -> Result<[u8; 4], Problem<'_>> {
    let bytes = text.as_bytes();
    let mut octets = [0; 4];
    let (mut filled, mut value, mut digits) = (0, 0u16, 0);
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", ""));
                }
                value = value * 10 + u16::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", ""));
                }
            }
            b'.' if index == 0 || index + 1 == bytes.len() || bytes[index - 1] == b'.' => {
                return Err(("IPv4 field must have at least one digit", &text[index..]));
            }
            b'.' if filled == 3 => return Err(("IPv4 address too long", "")),
            b'.' => {
                octets[filled] = u8::try_from(value).unwrap_or(u8::MAX);
                (filled, value, digits) = (filled + 1, 0, 0);
            }
            _ => return Err(("unexpected character", &text[index..])),
        }
    }
    if filled < 3 {
        return Err(("IPv4 address too short", ""));
    }
    octets[3] = u8::try_from(value).unwrap_or(u8::MAX);
    Ok(octets)
}

fn v6_with_zone(text: &str) -> Result<(IpAddr, bool), Problem<'_>> {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", "")),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    v6(address).map(|address| (IpAddr::V6(address), zone))
}

/// The fields of an IPv6 address during parsing.
#[derive(Default)]
struct Fields {
    values: [u16; 8],
    len: usize,
    /// The position of `::`.
    gap: Option<usize>,
}

impl Fields {
    fn push(&mut self, value: u16) {
        self.values[self.len] = value;
        self.len += 1;
    }

    /// The address, with zeros in the gap.
    fn fill(mut self) -> Result<Ipv6Addr, Problem<'static>> {
        match self.gap {
            None if self.len < 8 => return Err(("address string too short", "")),
            Some(_) if self.len == 8 => {
                return Err(("the :: must expand to at least one field of zeros", ""));
            }
            None => {}
            Some(gap) => {
                let behind = self.len - gap;
                self.values.copy_within(gap..self.len, 8 - behind);
                self.values[gap..8 - behind].fill(0);
            }
        }
        Ok(self.values.into())
    }
}

fn v6(text: &str) -> Result<Ipv6Addr, Problem<'_>> {
    let mut fields = Fields::default();
    let mut rest = text;
    if let Some(behind) = rest.strip_prefix("::") {
        fields.gap = Some(0);
        rest = behind;
        if rest.is_empty() {
            return Ok(Ipv6Addr::UNSPECIFIED);
        }
    }
    while fields.len < 8 {
        let (value, behind) = hex_field(rest)?;
        if behind.starts_with('.') {
            let [a, b, c, d] = embedded_v4(rest, &fields)?;
            fields.push(u16::from_be_bytes([a, b]));
            fields.push(u16::from_be_bytes([c, d]));
            rest = "";
            break;
        }
        fields.push(value);
        rest = behind;
        if rest.is_empty() {
            break;
        }
        rest = separator(rest, &mut fields)?;
        if rest.is_empty() {
            break;
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    fields.fill()
}

/// Parses up to four hexadecimal digits; returns the rest.
fn hex_field(text: &str) -> Result<(u16, &str), Problem<'_>> {
    let len = text.bytes().take_while(u8::is_ascii_hexdigit).count();
    match len {
        0 => Err(("each colon-separated field must have at least one digit", text)),
        1..=4 => Ok((u16::from_str_radix(&text[..len], 16).unwrap_or(u16::MAX), &text[len..])),
        _ => Err(("each group must have 4 or less digits", text)),
    }
}

fn embedded_v4<'t>(text: &'t str, fields: &Fields) -> Result<[u8; 4], Problem<'t>> {
    if fields.gap.is_none() && fields.len != 6 {
        return Err(("embedded IPv4 address must replace the final 2 fields of the address", text));
    }
    if fields.len > 6 {
        return Err(("too many hex fields to fit an embedded IPv4 at the end of the address", text));
    }
    v4(text)
}

/// Skips a colon or double colon; returns the rest.
fn separator<'t>(text: &'t str, fields: &mut Fields) -> Result<&'t str, Problem<'t>> {
    let Some(behind) = text.strip_prefix(':') else {
        return Err(("unexpected character, want colon", text));
    };
    if behind.is_empty() {
        return Err(("colon must be followed by more characters", text));
    }
    let Some(behind_gap) = behind.strip_prefix(':') else { return Ok(behind) };
    if fields.gap.is_some() {
        return Err(("multiple :: in address", behind));
    }
    fields.gap = Some(fields.len);
    Ok(behind_gap)
}
