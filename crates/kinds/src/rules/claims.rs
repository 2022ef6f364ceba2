//! Allocation of exclusive values: cluster IPs, node ports, and the default PriorityClass.
//!
//! This module decides which values an object gets. The store makes them exclusive: each claim has a key there.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use model::error::FieldError;

use super::ranges::Ranges;

/// A value that only one object at a time may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// A cluster IP of a Service.
    ClusterIp(Ipv4Addr),
    /// A node port.
    NodePort(u16),
    /// The default PriorityClass.
    DefaultPriority,
}

/// The reason why an allocation fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The requested value is invalid or taken.
    Invalid(Vec<FieldError>),
    /// The object may not have the value.
    Forbidden(String),
    /// The range is exhausted, or Kubernetes reports an internal error.
    Internal(String),
}

/// The allocator: ranges and the values that are known to be taken.
pub struct Pool<'a> {
    ranges: Ranges,
    taken: BTreeMap<Claim, String>,
    random: &'a mut dyn FnMut() -> u32,
}

impl<'a> Pool<'a> {
    /// An allocator with the taken values and the names of their owners; it chooses free ones at random.
    pub fn new(ranges: Ranges, taken: BTreeMap<Claim, String>, random: &'a mut dyn FnMut() -> u32) -> Self {
        Self { ranges, taken, random }
    }

    /// The name of the object that has a value.
    pub(super) fn owner(&self, claim: Claim) -> Option<&str> {
        self.taken.get(&claim).map(String::as_str)
    }

    fn take(&mut self, claim: Claim) -> bool {
        self.taken.insert(claim, String::new()).is_none()
    }

    /// Allocates this address; the error is the reason.
    pub(super) fn take_address(&mut self, address: Ipv4Addr) -> Result<(), &'static str> {
        let number = u32::from(address).wrapping_sub(u32::from(self.ranges.first_address()));
        if number >= self.ranges.addresses() {
            return Err("the provided network does not match the current range");
        }
        if self.take(Claim::ClusterIp(address)) { Ok(()) } else { Err("provided IP is already allocated") }
    }

    /// Allocates any free address.
    pub(super) fn next_address(&mut self) -> Option<Ipv4Addr> {
        let first = u32::from(self.ranges.first_address());
        let address = |number| Claim::ClusterIp(Ipv4Addr::from(first + number));
        match self.next(self.ranges.addresses(), self.ranges.chosen_addresses(), address)? {
            Claim::ClusterIp(address) => Some(address),
            Claim::NodePort(_) | Claim::DefaultPriority => None,
        }
    }

    /// Allocates this port; the error is the reason.
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

    /// Allocates any free port.
    pub(super) fn next_port(&mut self) -> Result<u16, &'static str> {
        let first = self.ranges.first_port;
        let port = |number| Claim::NodePort(first + u16::try_from(number).unwrap_or_default());
        match self.next(self.ranges.ports(), self.ranges.chosen_ports(), port) {
            Some(Claim::NodePort(port)) => Ok(port),
            _ => Err("range is full"),
        }
    }

    /// Allocates one of the values below `count`; those below `chosen`, the static band, only if all others are taken.
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
