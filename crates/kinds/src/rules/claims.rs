//! What only one object at a time may have: addresses and ports that the server hands out, and being the default.
//!
//! Here it is decided what an object shall get. That nobody else gets it is the store's affair: each claim has a key there.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use model::error::FieldError;

use super::ranges::Ranges;

/// Something that only one object at a time may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// An address of a service.
    ClusterIp(Ipv4Addr),
    /// A port on every node.
    NodePort(u16),
    /// To be the priority of pods that name none.
    DefaultPriority,
}

/// Why an object cannot get what it wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// It asks for something that it cannot have.
    Invalid(Vec<FieldError>),
    /// It may not be what it asks to be.
    Forbidden(String),
    /// There is nothing left, or what Kubernetes takes for its own fault.
    Internal(String),
}

/// What can be handed out.
pub struct Pool<'a> {
    ranges: Ranges,
    taken: BTreeMap<Claim, String>,
    random: &'a mut dyn FnMut() -> u32,
}

impl<'a> Pool<'a> {
    /// Everything but what is known to be taken, with the names of those who have it; it chooses by chance.
    pub fn new(ranges: Ranges, taken: BTreeMap<Claim, String>, random: &'a mut dyn FnMut() -> u32) -> Self {
        Self { ranges, taken, random }
    }

    /// The name of the object that has something.
    pub(super) fn owner(&self, claim: Claim) -> Option<&str> {
        self.taken.get(&claim).map(String::as_str)
    }

    fn take(&mut self, claim: Claim) -> bool {
        self.taken.insert(claim, String::new()).is_none()
    }

    /// Takes this address, or says why it cannot be had.
    pub(super) fn take_address(&mut self, address: Ipv4Addr) -> Result<(), &'static str> {
        let number = u32::from(address).wrapping_sub(u32::from(self.ranges.first_address()));
        if number >= self.ranges.addresses() {
            return Err("the provided network does not match the current range");
        }
        if self.take(Claim::ClusterIp(address)) { Ok(()) } else { Err("provided IP is already allocated") }
    }

    /// Takes any address.
    pub(super) fn next_address(&mut self) -> Option<Ipv4Addr> {
        let first = u32::from(self.ranges.first_address());
        let address = |number| Claim::ClusterIp(Ipv4Addr::from(first + number));
        match self.next(self.ranges.addresses(), self.ranges.chosen_addresses(), address)? {
            Claim::ClusterIp(address) => Some(address),
            Claim::NodePort(_) | Claim::DefaultPriority => None,
        }
    }

    /// Takes this port, or says why it cannot be had.
    pub(super) fn take_port(&mut self, port: i64) -> Result<(), String> {
        let Ranges { first_port, last_port, .. } = self.ranges;
        let port = u16::try_from(port).ok().filter(|port| (first_port..=last_port).contains(port));
        let Some(port) = port else {
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {first_port}-{last_port}"
            ));
        };
        if self.take(Claim::NodePort(port)) {
            Ok(())
        } else {
            Err("provided port is already allocated".to_owned())
        }
    }

    /// Takes any port.
    pub(super) fn next_port(&mut self) -> Result<u16, &'static str> {
        let first = self.ranges.first_port;
        let port = |number| Claim::NodePort(first + u16::try_from(number).unwrap_or_default());
        match self.next(self.ranges.ports(), self.ranges.chosen_ports(), port) {
            Some(Claim::NodePort(port)) => Ok(port),
            _ => Err("range is full"),
        }
    }

    /// Takes one of those with numbers below `count`; those below `chosen` only if there is no other.
    fn next(&mut self, count: u32, chosen: u32, claim: impl Fn(u32) -> Claim) -> Option<Claim> {
        for (start, length) in
            [(chosen, count - chosen), (0, chosen)].into_iter().filter(|(_, length)| *length > 0)
        {
            let first = (self.random)() % length;
            let mut candidates = (0..length).map(|step| claim(start + (first + step) % length));
            if let Some(free) = candidates.find(|claim| !self.taken.contains_key(claim)) {
                self.take(free);
                return Some(free);
            }
        }
        None
    }
}
