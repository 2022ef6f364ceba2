//! The decision of the identity Lease controller: the writes that follow from the observed state. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;
use model::Revision;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::objects::{self, IdentityLease, NAMESPACE, SYSTEM, ServerIdentity};
use super::{LEASES, SLICES};
use crate::bootstrap::{BootstrapObject, path_of};

/// The renewal interval of servers that share a database.
pub(super) const RENEWAL: Duration = Duration::from_secs(5);
/// The time after which a server that does not renew counts as gone.
pub(super) const LIFE: Duration = Duration::from_secs(15);
/// The renewal interval of a server that does not share its database.
pub(super) const RENEWAL_ALONE: Duration = Duration::from_secs(1200);

/// The observed objects.
#[derive(Clone, Debug, Default)]
pub(super) struct ObservedState {
    pub leases: Vec<IdentityLease>,
    pub slices: Vec<Value>,
    pub endpoints: Option<Value>,
    pub has_service: bool,
    pub has_node_leases: bool,
}

/// The time of a decision.
pub(super) struct DecisionTime {
    pub now: Instant,
    pub clock: Timestamp,
    /// Whether the server is stopping.
    pub is_leaving: bool,
}

/// The history of the observed Leases.
#[derive(Debug, Default)]
pub(super) struct LeaseHistory {
    /// The last revision of each Lease, and the time until its holder counts as alive.
    leases: BTreeMap<String, (Revision, Instant)>,
    has_observed: bool,
    renewed: Option<Instant>,
}

impl LeaseHistory {
    /// Records the observed Leases. Their age is measured by the local clock, because clocks of other servers may be wrong;
    /// only at the first observation renewTime counts.
    pub fn note(&mut self, leases: &[IdentityLease], time: &DecisionTime) {
        let age = |lease: &IdentityLease| {
            let renewed = lease.renewed.filter(|_| !self.has_observed)?;
            Duration::try_from(time.clock.duration_since(renewed)).ok()
        };
        let deadline = |lease: &IdentityLease| {
            let known = self.leases.get(&lease.name).filter(|(version, _)| *version == lease.version);
            let end = || time.now + LIFE.saturating_sub(age(lease).unwrap_or_default());
            (lease.name.clone(), known.copied().unwrap_or_else(|| (lease.version, end())))
        };
        self.leases = leases.iter().map(deadline).collect();
        self.has_observed = true;
    }

    /// Records a renewal of this server's own Lease.
    pub fn renewed(&mut self, at: Instant) {
        self.renewed = Some(at);
    }

    fn end_of(&self, lease: &IdentityLease) -> Option<Instant> {
        self.leases.get(&lease.name).map(|(_, end)| *end)
    }
}

/// The actions of a decision.
pub(super) struct Actions {
    /// Objects to create (false) or update (true).
    pub writes: Vec<(BootstrapObject, bool)>,
    /// Paths to delete, with preconditions.
    pub ended: Vec<(String, Value)>,
    /// Whether the own Lease is renewed.
    pub is_renewal: bool,
    /// The time of the next reconciliation without a change.
    pub next: Instant,
}

pub(super) fn decide(
    identity: &ServerIdentity,
    observed: &ObservedState,
    history: &LeaseHistory,
    time: &DecisionTime,
) -> Actions {
    let renewal = if identity.is_shared { RENEWAL } else { RENEWAL_ALONE };
    let mut actions = Actions {
        writes: Vec::new(),
        ended: ended(identity, observed, time),
        is_renewal: false,
        next: history.renewed.unwrap_or(time.now) + renewal,
    };
    // A server that does not share its database keeps its Lease and endpoints when it stops: no other server reads them, and
    // the next start reuses them.
    if time.is_leaving && !identity.is_shared {
        actions.ended.clear();
        return actions;
    }
    let own = observed.leases.iter().find(|lease| lease.name == identity.name);
    let is_due = own.is_none_or(|lease| lease.holder != identity.holder)
        || history.renewed.is_none_or(|renewed| renewed + renewal <= time.now);
    if is_due && !time.is_leaving {
        let seen = own.map(|lease| lease.version);
        actions.writes.push((identity.lease(time.clock, seen), seen.is_some()));
        actions.is_renewal = true;
        actions.next = time.now + renewal;
    }
    if !observed.has_service && !time.is_leaving {
        actions.writes.push((identity.service(), false));
    }
    if !observed.has_node_leases && !time.is_leaving {
        actions.writes.push((objects::node_leases(), false));
    }
    let (servers, until) = servers(identity, observed, history, time);
    actions.next = until.map_or(actions.next, |until| actions.next.min(until));
    write_endpoints(&servers, observed, &mut actions);
    if servers.is_empty() && time.is_leaving {
        remove_endpoints(observed, &mut actions);
    }
    actions
}

/// Expired Leases, and the own one of a stopping server.
fn ended(identity: &ServerIdentity, observed: &ObservedState, time: &DecisionTime) -> Vec<(String, Value)> {
    let is_over = |lease: &&IdentityLease| {
        if lease.name == identity.name {
            time.is_leaving && lease.holder == identity.holder
        } else {
            lease.end.is_none_or(|end| end < time.clock)
        }
    };
    let end = |lease: &IdentityLease| {
        let preconditions = json!({"resourceVersion": lease.version.to_string()});
        (path_of(LEASES, SYSTEM, &lease.name), json!({"preconditions": preconditions}))
    };
    observed.leases.iter().filter(is_over).map(end).collect()
}

/// The addresses of live servers, and the time at which the first of the others expires.
fn servers(
    identity: &ServerIdentity,
    observed: &ObservedState,
    history: &LeaseHistory,
    time: &DecisionTime,
) -> (BTreeSet<SocketAddr>, Option<Instant>) {
    let others = observed.leases.iter().filter(|lease| identity.is_shared && lease.name != identity.name);
    let fresh = others.filter_map(|lease| {
        let end = history.end_of(lease).filter(|end| *end > time.now)?;
        Some((lease.address?, end))
    });
    let (others, ends): (BTreeSet<SocketAddr>, Vec<Instant>) = fresh.unzip();
    let own = identity.address.filter(|_| !time.is_leaving);
    (own.into_iter().chain(others).collect(), ends.into_iter().min())
}

/// Writes the Endpoints and EndpointSlices of the Service `kubernetes`. An empty set changes nothing.
fn write_endpoints(servers: &BTreeSet<SocketAddr>, observed: &ObservedState, actions: &mut Actions) {
    if servers.is_empty() {
        return;
    }
    let endpoints = objects::endpoints(servers);
    let slices = objects::slices(servers);
    let name = |slice: &Value| slice["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let there: BTreeMap<String, &Value> = observed.slices.iter().map(|slice| (name(slice), slice)).collect();
    for (name, slice) in &there {
        if objects::is_ours(name) && !slices.iter().any(|wanted| wanted.name() == name) {
            let version = slice["metadata"]["resourceVersion"].clone();
            let preconditions = json!({"preconditions": {"resourceVersion": version}});
            actions.ended.push((path_of(SLICES, NAMESPACE, name), preconditions));
        }
    }
    let mut write = |wanted: BootstrapObject, there: Option<&Value>| match there {
        None => actions.writes.push((wanted, false)),
        Some(there) if wanted.replacement_for(there).is_some() => actions.writes.push((wanted, true)),
        Some(_) => {}
    };
    write(endpoints, observed.endpoints.as_ref());
    for slice in slices {
        let there = there.get(slice.name()).copied();
        write(slice, there);
    }
}

/// Removes the endpoints when the last server stops.
fn remove_endpoints(observed: &ObservedState, actions: &mut Actions) {
    if observed.endpoints.is_some() {
        actions.writes.push((objects::endpoints(&BTreeSet::new()), true));
    }
    for slice in &observed.slices {
        let name = slice["metadata"]["name"].as_str().unwrap_or_default();
        if objects::is_ours(name) {
            actions.ended.push((path_of(SLICES, NAMESPACE, name), json!({})));
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
