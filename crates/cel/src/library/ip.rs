//! The IP library: `ip('10.0.0.1')`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use lexical::quote;

use super::{
    address::{self, ParsedAddress},
    cost,
};
use crate::{Error, Library, Opaque, Overload, Result, Type, Value};

/// An IP address as a value of the language.
#[derive(Debug)]
pub(super) struct Ip(pub(super) IpAddr);

impl Ip {
    pub(super) fn ty() -> Type {
        Type::opaque("net.IP", Vec::new())
    }
}

impl Opaque for Ip {
    fn ty(&self) -> Type {
        Ip::ty()
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        super::downcast::<Ip>(other).is_some_and(|other| self.0 == other.0)
    }

    fn size(&self) -> Option<u64> {
        Some(if self.0.is_ipv4() { 4 } else { 16 })
    }
}

/// The library.
pub fn library() -> Library {
    costs(functions())
}

fn functions() -> Library {
    let about = |id, test: crate::Implementation| [Overload::member(id, [Ip::ty()], Type::Bool, test)];
    Library::new()
        .named_type(Ip::ty())
        .function(
            "ip",
            [Overload::global("string_to_ip", [Type::String], Ip::ty(), |_, args| {
                Ok(Value::opaque(Ip(parse(args[0].as_str()?)?)))
            })],
        )
        .function(
            "isIP",
            [Overload::global("is_ip", [Type::String], Type::Bool, |_, args| {
                Ok(parse(args[0].as_str()?).is_ok().into())
            })],
        )
        .function(
            "ip.isCanonical",
            [Overload::global("ip_is_canonical", [Type::String], Type::Bool, |_, args| {
                let text = args[0].as_str()?;
                Ok((parse(text)?.to_string() == text).into())
            })],
        )
        .function(
            "string",
            [Overload::global("ip_to_string", [Ip::ty()], Type::String, |_, args| {
                Ok(args[0].as_opaque::<Ip>()?.0.to_string().into())
            })],
        )
        .function(
            "family",
            [Overload::member("ip_family", [Ip::ty()], Type::Int, |_, args| {
                Ok(Value::Int(if args[0].as_opaque::<Ip>()?.0.is_ipv4() { 4 } else { 6 }))
            })],
        )
        .function("isUnspecified", about("ip_is_unspecified", |_, args| test(args, IpAddr::is_unspecified)))
        .function("isLoopback", about("ip_is_loopback", |_, args| test(args, IpAddr::is_loopback)))
        .function(
            "isLinkLocalMulticast",
            about("ip_is_link_local_multicast", |_, args| test(args, is_link_local_multicast)),
        )
        .function(
            "isLinkLocalUnicast",
            about("ip_is_link_local_unicast", |_, args| test(args, is_link_local_unicast)),
        )
        .function("isGlobalUnicast", about("ip_is_global_unicast", |_, args| test(args, is_global_unicast)))
}

fn costs(mut library: Library) -> Library {
    let nominal = [
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
    ];
    for function in nominal {
        library = library.estimates(function, cost::one).costs(function, cost::one_run);
    }
    library
        .estimates("isIP", cost::argument)
        .costs("isIP", cost::argument_run)
        .estimates("ip", |call| match call.overload {
            "cidr_ip" => cost::one(call),
            _ => cost::argument(call),
        })
        .costs("ip", |call| match call.overload {
            "cidr_ip" => cost::one_run(call),
            _ => cost::argument_run(call),
        })
        .estimates("ip.isCanonical", cost::argument_twice)
        .costs("ip.isCanonical", cost::argument_twice_run)
}

fn test<'a>(args: &[Value<'a>], test: impl Fn(&IpAddr) -> bool) -> Result<Value<'a>> {
    Ok(test(&args[0].as_opaque::<Ip>()?.0).into())
}

/// Parses an address without a zone; IPv4-mapped IPv6 addresses are rejected.
pub(super) fn parse(text: &str) -> Result<IpAddr> {
    let ParsedAddress { address, has_zone } = address::parse(text).map_err(|error| {
        Error::new(format!("IP Address {} parse error during conversion from string: {error}", quote(text)))
    })?;
    if has_zone {
        return Err(Error::new(format!("IP address {} with zone value is not allowed", quote(text))));
    }
    if is_mapped(&address) {
        return Err(Error::new(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text))));
    }
    Ok(address)
}

/// Whether the address is an IPv4-mapped IPv6 address.
pub(super) fn is_mapped(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

fn is_link_local_multicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_global_unicast(address: &IpAddr) -> bool {
    let is_special = match address {
        IpAddr::V4(address) => *address == Ipv4Addr::UNSPECIFIED || *address == Ipv4Addr::BROADCAST,
        IpAddr::V6(address) => *address == Ipv6Addr::UNSPECIFIED,
    };
    !(is_special || address.is_loopback() || address.is_multicast() || is_link_local_unicast(address))
}
