//! The source of a request: addresses and user agent.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::USER_AGENT;

/// Bytes of the user agent that are kept.
const AGENT: usize = 1024;

/// The addresses in forwarding headers, then the address of the connection.
pub(super) fn addresses(headers: &HeaderMap, peer: Option<IpAddr>) -> Vec<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let forwarded = text("x-forwarded-for").split(',');
    let mut all: Vec<IpAddr> = forwarded.filter_map(|part| part.trim().parse().ok()).collect();
    let real: Option<IpAddr> = text("x-real-ip").parse().ok();
    all.extend(real.filter(|real| !all.contains(real)));
    all.extend(peer.filter(|peer| all.last() != Some(peer)));
    all.iter().map(IpAddr::to_string).collect()
}

/// The user agent.
pub(super) fn agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
    let agent = agent.unwrap_or_default();
    if agent.len() <= AGENT {
        return agent.into_owned();
    }
    format!("{}...TRUNCATED", &agent[..agent.floor_char_boundary(AGENT)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_addresses_are_in_hop_order() {
        let of = |forwarded: &str, real: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            headers.insert("x-real-ip", real.parse().unwrap());
            addresses(&headers, Some([127, 0, 0, 1].into()))
        };
        assert_eq!(of("1.2.3.4, 5.6.7.8", "9.9.9.9"), ["1.2.3.4", "5.6.7.8", "9.9.9.9", "127.0.0.1"]);
        assert_eq!(of("nobody, 5.6.7.8", "5.6.7.8"), ["5.6.7.8", "127.0.0.1"]);
        assert_eq!(of("::1, 127.0.0.1", ""), ["::1", "127.0.0.1"]);
    }

    #[test]
    fn a_long_user_agent_is_truncated() {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, "a".repeat(AGENT + 1).parse().unwrap());
        assert_eq!(agent(&headers), format!("{}...TRUNCATED", "a".repeat(AGENT)));
    }
}
