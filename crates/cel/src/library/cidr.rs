//! The CIDR library: `cidr('10.0.0.0/8')`.

use std::net::IpAddr;

use lexical::quote;

use super::{
    address, cost,
    ip::{self, Ip, is_mapped},
};
use crate::{
    Error, Library, Opaque, Overload, Result, Type, Value,
    cost::{CallEstimate, CostEstimate, EstimateCall, RuntimeCall, STRING_TRAVERSAL_FACTOR, SizeEstimate},
};

/// A network as a value of the language. Its address keeps the host bits.
#[derive(Debug, PartialEq)]
struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    fn ty() -> Type {
        Type::opaque("net.CIDR", Vec::new())
    }

    fn parse(text: &str) -> Result<Cidr> {
        const PROBLEM: &str = "network address parse error during conversion from string";
        match prefix(text) {
            Err(problem) => {
                let problem = format!("{PROBLEM}: {PROBLEM}: netip.ParsePrefix({}): {problem}", quote(text));
                Err(Error::new(problem))
            }
            Ok(cidr) if is_mapped(&cidr.address) => {
                Err(Error::new(format!("{PROBLEM}: IPv4-mapped IPv6 address {} is not allowed", quote(text))))
            }
            Ok(cidr) => Ok(cidr),
        }
    }

    /// The address without its host bits; `None` for the other address family.
    fn network(&self, address: &IpAddr, bits: u8) -> Option<u128> {
        match (self.address, address) {
            (IpAddr::V4(_), IpAddr::V4(address)) => Some(mask(address.to_bits().into(), 32, bits)),
            (IpAddr::V6(_), IpAddr::V6(address)) => Some(mask(address.to_bits(), 128, bits)),
            _ => None,
        }
    }

    fn contains(&self, address: &IpAddr) -> bool {
        let network = self.network(address, self.bits);
        network.is_some() && network == self.network(&self.address, self.bits)
    }

    fn masked(&self) -> Cidr {
        let address = match self.address {
            IpAddr::V4(address) => {
                let bits = mask(address.to_bits().into(), 32, self.bits);
                IpAddr::V4(u32::try_from(bits).expect("a part of 32 bits").into())
            }
            IpAddr::V6(address) => IpAddr::V6(mask(address.to_bits(), 128, self.bits).into()),
        };
        Cidr { address, bits: self.bits }
    }
}

/// The number with all but its first bits cleared.
fn mask(number: u128, width: u32, bits: u8) -> u128 {
    let rest = width - u32::from(bits);
    number.checked_shr(rest).and_then(|kept| kept.checked_shl(rest)).unwrap_or(0)
}

/// Parses a network in CIDR notation.
fn prefix(text: &str) -> std::result::Result<Cidr, String> {
    let (address, bits_text) = text.rsplit_once('/').ok_or("no '/'")?;
    let parsed = address::parse(address).map_err(|error| error.to_string())?;
    if parsed.has_zone {
        return Err("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let bad = || format!("bad bits after slash: {}", quote(bits_text));
    if bits_text.len() > 1 && !matches!(bits_text.as_bytes()[0], b'1'..=b'9') {
        return Err(bad());
    }
    let bits: i64 = bits_text.parse().map_err(|_| bad())?;
    let width = if parsed.address.is_ipv4() { 32 } else { 128 };
    match u8::try_from(bits) {
        Ok(bits) if bits <= width => Ok(Cidr { address: parsed.address, bits }),
        _ => Err("prefix length out of range".to_owned()),
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

impl Opaque for Cidr {
    fn ty(&self) -> Type {
        Cidr::ty()
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        super::downcast::<Cidr>(other).is_some_and(|other| self == other)
    }

    fn size(&self) -> Option<u64> {
        Some(u64::from(self.bits).div_ceil(8))
    }
}

/// The library.
pub fn library() -> Library {
    costs(functions())
}

fn functions() -> Library {
    let cidr = Cidr::ty;
    Library::new()
        .named_type(cidr())
        .function(
            "cidr",
            [Overload::global("string_to_cidr", [Type::String], cidr(), |_, args| {
                Ok(Value::opaque(Cidr::parse(args[0].as_str()?)?))
            })],
        )
        .function(
            "isCIDR",
            [Overload::global("is_cidr", [Type::String], Type::Bool, |_, args| {
                Ok(Cidr::parse(args[0].as_str()?).is_ok().into())
            })],
        )
        .function(
            "string",
            [Overload::global("cidr_to_string", [cidr()], Type::String, |_, args| {
                Ok(args[0].as_opaque::<Cidr>()?.to_string().into())
            })],
        )
        .function(
            "containsIP",
            [
                Overload::member("cidr_contains_ip_string", [cidr(), Type::String], Type::Bool, |_, args| {
                    let address = ip::parse(args[1].as_str()?).map_err(|_| Error::no_such_overload())?;
                    Ok(args[0].as_opaque::<Cidr>()?.contains(&address).into())
                }),
                Overload::member("cidr_contains_ip_ip", [cidr(), Ip::ty()], Type::Bool, |_, args| {
                    Ok(args[0].as_opaque::<Cidr>()?.contains(&args[1].as_opaque::<Ip>()?.0).into())
                }),
            ],
        )
        .function(
            "containsCIDR",
            [
                Overload::member(
                    "cidr_contains_cidr_string",
                    [cidr(), Type::String],
                    Type::Bool,
                    |_, args| contains_cidr(&args[0], &Cidr::parse(args[1].as_str()?)?),
                ),
                Overload::member("cidr_contains_cidr", [cidr(), cidr()], Type::Bool, |_, args| {
                    contains_cidr(&args[0], args[1].as_opaque::<Cidr>()?)
                }),
            ],
        )
        .function(
            "ip",
            [Overload::member("cidr_ip", [cidr()], Ip::ty(), |_, args| {
                Ok(Value::opaque(Ip(args[0].as_opaque::<Cidr>()?.address)))
            })],
        )
        .function(
            "prefixLength",
            [Overload::member("cidr_prefix_length", [cidr()], Type::Int, |_, args| {
                Ok(Value::Int(args[0].as_opaque::<Cidr>()?.bits.into()))
            })],
        )
        .function(
            "masked",
            [Overload::member("cidr_masked", [cidr()], cidr(), |_, args| {
                Ok(Value::opaque(args[0].as_opaque::<Cidr>()?.masked()))
            })],
        )
}

fn contains_cidr<'a>(outer: &Value<'a>, inner: &Cidr) -> Result<Value<'a>> {
    let outer = outer.as_opaque::<Cidr>()?;
    Ok((outer.bits <= inner.bits && outer.contains(&inner.address)).into())
}

fn costs(library: Library) -> Library {
    library
        .estimates("cidr", cost::argument)
        .costs("cidr", cost::argument_run)
        .estimates("isCIDR", cost::argument)
        .costs("isCIDR", cost::argument_run)
        .estimates("masked", cost::one)
        .costs("masked", cost::one_run)
        .estimates("prefixLength", cost::one)
        .costs("prefixLength", cost::one_run)
        .estimates("containsIP", |call| {
            Some(CallEstimate::of(compared(call, "cidr_contains_ip_string", CostEstimate::fixed(0))))
        })
        .costs("containsIP", |call| Some(compared_run(call, "cidr_contains_ip_string", 0)))
        .estimates("containsCIDR", |call| {
            let masking = ADDRESS_SIZE.cost(STRING_TRAVERSAL_FACTOR).plus(CostEstimate::fixed(1));
            Some(CallEstimate::of(compared(call, "cidr_contains_cidr_string", masking)))
        })
        .costs("containsCIDR", |call| {
            let masking = cost::traversal(call.args.first()?.cost_size(), 1.0) + 1;
            Some(compared_run(call, "cidr_contains_cidr_string", masking))
        })
}

/// The size of an address in bytes.
const ADDRESS_SIZE: SizeEstimate = SizeEstimate { min: 4, max: 16 };

/// The cost of comparing two addresses, plus `more`, plus parsing the second one if it is a string.
fn compared(call: &EstimateCall<'_>, of_text: &str, more: CostEstimate) -> CostEstimate {
    let comparing = ADDRESS_SIZE.plus(ADDRESS_SIZE).cost(STRING_TRAVERSAL_FACTOR).plus(more);
    match call.args.first() {
        Some(other) if call.overload == of_text => {
            comparing.plus(call.size(other).cost(STRING_TRAVERSAL_FACTOR))
        }
        _ => comparing,
    }
}

fn compared_run(call: &RuntimeCall<'_, '_>, of_text: &str, more: u64) -> u64 {
    let size = |index: usize| call.args.get(index).map_or(1, Value::cost_size);
    let comparing = cost::traversal(size(0), 2.0) + more;
    if call.overload == of_text { comparing + cost::traversal(size(1), 1.0) } else { comparing }
}
