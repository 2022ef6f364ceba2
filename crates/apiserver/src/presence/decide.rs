//! What a server writes about itself and its neighbours, from what it sees.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;
use model::Revision;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::objects::{self, Lease, Me, NAMESPACE, SYSTEM};
use super::{LEASES, SLICES};
use crate::bootstrap::{First, path_of};

/// How often servers of one database renew their Leases.
pub(super) const RENEWAL: Duration = Duration::from_secs(5);
/// How long a server counts as being there that does not.
pub(super) const LIFE: Duration = Duration::from_secs(15);
/// How often a server does that has its database for itself.
pub(super) const RENEWAL_ALONE: Duration = Duration::from_secs(1200);

/// What is there.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub leases: Vec<Lease>,
    pub slices: Vec<Value>,
    pub endpoints: Option<Value>,
    pub has_service: bool,
    pub has_node_leases: bool,
}

/// When something is decided.
pub(super) struct Moment {
    pub now: Instant,
    pub clock: Timestamp,
    /// Whether the server stops.
    pub is_leaving: bool,
}

/// What is remembered from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Each Lease as it was last seen, and until when its holder counts as being there.
    sights: BTreeMap<String, (Revision, Instant)>,
    has_looked: bool,
    renewed: Option<Instant>,
}

impl Memory {
    /// Notes what is seen. How long ago something was renewed is measured by one's own clock, for those of others may be wrong. Only
    /// what was there at the first look is as old as it says.
    pub fn note(&mut self, leases: &[Lease], moment: &Moment) {
        let age = |lease: &Lease| {
            let renewed = lease.renewed.filter(|_| !self.has_looked)?;
            Duration::try_from(moment.clock.duration_since(renewed)).ok()
        };
        let sight = |lease: &Lease| {
            let known = self.sights.get(&lease.name).filter(|(version, _)| *version == lease.version);
            let end = || moment.now + LIFE.saturating_sub(age(lease).unwrap_or_default());
            (lease.name.clone(), known.copied().unwrap_or_else(|| (lease.version, end())))
        };
        self.sights = leases.iter().map(sight).collect();
        self.has_looked = true;
    }

    /// Notes that this server's own Lease was renewed.
    pub fn renewed(&mut self, at: Instant) {
        self.renewed = Some(at);
    }

    fn end_of(&self, lease: &Lease) -> Option<Instant> {
        self.sights.get(&lease.name).map(|(_, end)| *end)
    }
}

/// What to do.
pub(super) struct Plan {
    /// What to write, and whether it is there already.
    pub writes: Vec<(First, bool)>,
    /// What to delete, by its path, if it is still as it was seen.
    pub ended: Vec<(String, Value)>,
    /// Whether the server's own Lease is among what is written.
    pub is_renewal: bool,
    /// When to look again, if nothing changes before.
    pub next: Instant,
}

pub(super) fn decide(me: &Me, view: &View, memory: &Memory, moment: &Moment) -> Plan {
    let renewal = if me.is_shared { RENEWAL } else { RENEWAL_ALONE };
    let mut plan = Plan {
        writes: Vec::new(),
        ended: ended(me, view, moment),
        is_renewal: false,
        next: memory.renewed.unwrap_or(moment.now) + renewal,
    };
    // Who was alone is missed by nobody, and the next start finds everything as it has to be.
    if moment.is_leaving && !me.is_shared {
        plan.ended.clear();
        return plan;
    }
    let own = view.leases.iter().find(|lease| lease.name == me.name);
    let is_due = own.is_none_or(|lease| lease.holder != me.holder)
        || memory.renewed.is_none_or(|renewed| renewed + renewal <= moment.now);
    if is_due && !moment.is_leaving {
        let seen = own.map(|lease| lease.version);
        plan.writes.push((me.lease(moment.clock, seen), seen.is_some()));
        plan.is_renewal = true;
        plan.next = moment.now + renewal;
    }
    if !view.has_service && !moment.is_leaving {
        plan.writes.push((me.service(), false));
    }
    if !view.has_node_leases && !moment.is_leaving {
        plan.writes.push((objects::node_leases(), false));
    }
    let (servers, until) = servers(me, view, memory, moment);
    plan.next = until.map_or(plan.next, |until| plan.next.min(until));
    point_to(&servers, view, &mut plan);
    if servers.is_empty() && moment.is_leaving {
        point_to_nobody(view, &mut plan);
    }
    plan
}

/// Leases that have run out, and the own one of a server that stops.
fn ended(me: &Me, view: &View, moment: &Moment) -> Vec<(String, Value)> {
    let is_over = |lease: &&Lease| {
        if lease.name == me.name {
            moment.is_leaving && lease.holder == me.holder
        } else {
            lease.end.is_none_or(|end| end < moment.clock)
        }
    };
    let end = |lease: &Lease| {
        let preconditions = json!({"resourceVersion": lease.version.to_string()});
        (path_of(LEASES, SYSTEM, &lease.name), json!({"preconditions": preconditions}))
    };
    view.leases.iter().filter(is_over).map(end).collect()
}

/// Where the servers are that count as being there, and until when at least one of the others does.
fn servers(
    me: &Me,
    view: &View,
    memory: &Memory,
    moment: &Moment,
) -> (BTreeSet<SocketAddr>, Option<Instant>) {
    let others = view.leases.iter().filter(|lease| me.is_shared && lease.name != me.name);
    let fresh = others.filter_map(|lease| {
        let end = memory.end_of(lease).filter(|end| *end > moment.now)?;
        Some((lease.address?, end))
    });
    let (others, ends): (BTreeSet<SocketAddr>, Vec<Instant>) = fresh.unzip();
    let own = me.address.filter(|_| !moment.is_leaving);
    (own.into_iter().chain(others).collect(), ends.into_iter().min())
}

/// Makes the Endpoints and the slices of the service name these servers. If there are none, nobody knows better than what is there.
fn point_to(servers: &BTreeSet<SocketAddr>, view: &View, plan: &mut Plan) {
    if servers.is_empty() {
        return;
    }
    let endpoints = objects::endpoints(servers);
    let slices = objects::slices(servers);
    let name = |slice: &Value| slice["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let there: BTreeMap<String, &Value> = view.slices.iter().map(|slice| (name(slice), slice)).collect();
    for (name, slice) in &there {
        if objects::is_ours(name) && !slices.iter().any(|wanted| wanted.name() == name) {
            let version = slice["metadata"]["resourceVersion"].clone();
            let preconditions = json!({"preconditions": {"resourceVersion": version}});
            plan.ended.push((path_of(SLICES, NAMESPACE, name), preconditions));
        }
    }
    let mut write = |wanted: First, there: Option<&Value>| match there {
        None => plan.writes.push((wanted, false)),
        Some(there) if wanted.instead_of(there).is_some() => plan.writes.push((wanted, true)),
        Some(_) => {}
    };
    write(endpoints, view.endpoints.as_ref());
    for slice in slices {
        let there = there.get(slice.name()).copied();
        write(slice, there);
    }
}

/// The last server takes its address along.
fn point_to_nobody(view: &View, plan: &mut Plan) {
    if view.endpoints.is_some() {
        plan.writes.push((objects::endpoints(&BTreeSet::new()), true));
    }
    for slice in &view.slices {
        let name = slice["metadata"]["name"].as_str().unwrap_or_default();
        if objects::is_ours(name) {
            plan.ended.push((path_of(SLICES, NAMESPACE, name), json!({})));
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
