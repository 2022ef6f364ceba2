//! The proxy subresource of Pods, Services and Nodes: names with scheme and port.

use std::net::IpAddr;

use http::Response;
use model::error::{Error, quote};
use serde_json::Value;

use super::{NO_NODE_CONNECTION, address, maybe, not_found, object};
use crate::body::Body;
use crate::verbs::Call;

/// A name and port, parsed from `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`.
struct ProxyTarget<'a> {
    name: &'a str,
    /// Empty if absent.
    port: &'a str,
}

impl<'a> ProxyTarget<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme, name, port] => (*scheme, *name, *port),
            _ => return None,
        };
        let is_known = matches!(scheme, "" | "http" | "https");
        (is_known && !name.is_empty()).then_some(Self { name, port })
    }

    fn of(call: &'a Call, kind: &str) -> Result<Self, Error> {
        let given = &call.path.name;
        let message = || format!("invalid {kind} request {}", quote(given));
        Self::parse(given).ok_or_else(|| Error::BadRequest { message: message() })
    }
}

pub async fn to_pod(call: &Call) -> Result<Response<Body>, Error> {
    let named = ProxyTarget::of(call, "pod")?;
    let pod = object(call, "pods", named.name).await?;
    let status = pod.get("status");
    let found = status.and_then(|status| status["podIPs"][0]["ip"].as_str());
    let found = found.or_else(|| status.and_then(|status| status["podIP"].as_str()));
    allow(found.unwrap_or_default())?;
    Err(unreachable())
}

pub async fn to_node(call: &Call) -> Result<Response<Body>, Error> {
    let named = ProxyTarget::of(call, "node")?;
    let node = object(call, "nodes", named.name).await?;
    let found = address(&node)?;
    if found.parse::<IpAddr>().is_ok() {
        allow(found)?;
    }
    Err(unreachable())
}

pub async fn to_service(call: &Call) -> Result<Response<Body>, Error> {
    let ProxyTarget { name, port } = ProxyTarget::of(call, "service")?;
    let mut port = port.to_owned();
    if let Ok(number) = port.parse::<i32>() {
        let service = object(call, "services", name).await?;
        let ports = service.get("spec").and_then(|spec| spec["ports"].as_array());
        let found = ports.into_iter().flatten().find(|port| port["port"].as_i64() == Some(number.into()));
        let Some(found) = found else {
            return Err(unavailable(format!("no service port {number} found for service {}", quote(name))));
        };
        port = found["name"].as_str().unwrap_or_default().to_owned();
    }
    let endpoints = maybe(call, "endpoints", name).await?.ok_or_else(|| not_found("services", name))?;
    let subsets = endpoints.get("subsets").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let none_for = |name: &str| unavailable(format!("no endpoints available for service {}", quote(name)));
    if subsets.is_empty() {
        return Err(none_for(name));
    }
    let is_there = |subset: &Value| {
        let has = |key: &str| subset[key].as_array().is_some_and(|list| !list.is_empty());
        let ports = subset["ports"].as_array();
        let mut names = ports.into_iter().flatten().map(|port| port["name"].as_str().unwrap_or_default());
        has("addresses") && names.any(|name| name == port)
    };
    Err(if subsets.iter().any(is_there) { unreachable() } else { none_for(&call.path.name) })
}

/// Refuses addresses of the server's own machine.
fn allow(address: &str) -> Result<(), Error> {
    let is_allowed = address.parse::<IpAddr>().is_ok_and(|address| {
        let is_local = match address {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        !(is_local || address.is_unspecified() || address.is_loopback() || address.is_multicast())
    });
    if is_allowed { Ok(()) } else { Err(Error::bad_request("address not allowed")) }
}

fn unreachable() -> Error {
    unavailable(format!("error trying to reach service: {NO_NODE_CONNECTION}"))
}

fn unavailable(message: String) -> Error {
    Error::Decided { code: 503, reason: "ServiceUnavailable".to_owned(), message, details: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_schemes_and_ports() {
        let parts = |text| ProxyTarget::parse(text).map(|named| (named.name, named.port));
        assert_eq!(parts("a"), Some(("a", "")));
        assert_eq!(parts("a:web"), Some(("a", "web")));
        assert_eq!(parts("https:a:"), Some(("a", "")));
        for odd in ["", ":", ":1", "ftp:a:1", "http::1", "a:b:c:d"] {
            assert_eq!(parts(odd), None, "{odd}");
        }
    }

    #[test]
    fn proxying_to_addresses_of_this_machine_is_refused() {
        for odd in
            ["", "x", "127.0.0.1", "0.0.0.0", "169.254.1.1", "255.255.255.255", "224.0.0.1", "::1", "fe80::1"]
        {
            assert!(allow(odd).is_err(), "{odd}");
        }
        assert!(allow("10.0.0.1").is_ok() && allow("2001:db8::1").is_ok());
    }
}
