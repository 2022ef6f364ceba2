//! The ranges of cluster IPs and node ports.

use std::net::Ipv4Addr;

/// The ranges of cluster IPs and node ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranges {
    network: Ipv4Addr,
    bits: u8,
    pub(super) first_port: u16,
    pub(super) last_port: u16,
}

impl Default for Ranges {
    /// The defaults of kube-apiserver.
    fn default() -> Self {
        Self { network: Ipv4Addr::new(10, 0, 0, 0), bits: 24, first_port: 30_000, last_port: 32_767 }
    }
}

impl Ranges {
    /// With the addresses of a CIDR such as `10.96.0.0/12`; `None` if it is not an IPv4 network with usable addresses.
    #[must_use]
    pub fn with_network(self, text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let bits = bits.parse::<u8>().ok().filter(|bits| (1..=30).contains(bits))?;
        let network = u32::from(address.parse::<Ipv4Addr>().ok()?) & (u32::MAX << (32 - bits));
        Some(Self { network: network.into(), bits, ..self })
    }

    /// With the ports of a range such as `30000-32767`; `None` if it is invalid.
    #[must_use]
    pub fn with_ports(self, text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first_port, last_port) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (0 < first_port && first_port <= last_port).then_some(Self { first_port, last_port, ..self })
    }

    /// The network as a CIDR such as `10.0.0.0/24`.
    pub fn network(&self) -> String {
        format!("{}/{}", self.network, self.bits)
    }

    /// The first usable address: that of the Service `kubernetes`.
    pub fn first_address(&self) -> Ipv4Addr {
        (u32::from(self.network) + 1).into()
    }

    /// The number of usable addresses, without network and broadcast address.
    pub(super) fn addresses(&self) -> u32 {
        (1 << (32 - self.bits)) - 2
    }

    /// The size of the static band: addresses below are allocated only when all others are taken, so that clients can
    /// choose them.
    pub(super) fn chosen_addresses(&self) -> u32 {
        kept_for_clients(self.addresses() + 2, 16, 256)
    }

    pub(super) fn ports(&self) -> u32 {
        u32::from(self.last_port - self.first_port) + 1
    }

    /// Like [`Ranges::chosen_addresses`], for ports.
    pub(super) fn chosen_ports(&self) -> u32 {
        kept_for_clients(self.ports(), 32, 128)
    }
}

/// A fraction `1/of` of the range, at least 16 and at most `most`; zero for a small range.
fn kept_for_clients(count: u32, of: u32, most: u32) -> u32 {
    if count <= 16 { 0 } else { (count / of).clamp(16, most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_the_usable_addresses_of_kubernetes() {
        let of = |text: &str| Ranges::default().with_network(text);
        let usual = Ranges::default();
        assert_eq!(of("10.0.0.7/24"), Some(usual));
        assert_eq!((usual.addresses(), usual.chosen_addresses()), (254, 16));
        assert_eq!((usual.ports(), usual.chosen_ports()), (2768, 86));
        let large = of("10.96.0.0/12").unwrap();
        assert_eq!(
            (large.network(), large.first_address()),
            ("10.96.0.0/12".to_owned(), [10, 96, 0, 1].into())
        );
        assert_eq!((large.addresses(), large.chosen_addresses()), ((1 << 20) - 2, 256));
        assert_eq!(of("10.0.0.0/28").unwrap().chosen_addresses(), 0);
        for bad in ["10.0.0.0", "10.0.0.0/31", "10.0.0.0/0", "fd00::/108", "10.0.0/24", "x/24"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

    #[test]
    fn ports_are_a_range() {
        let of = |text: &str| Ranges::default().with_ports(text);
        assert_eq!(of("30000-32767"), Some(Ranges::default()));
        assert_eq!(of("7").map(|ranges| ranges.ports()), Some(1));
        for bad in ["", "0-5", "9-8", "1-70000", "a-b"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
