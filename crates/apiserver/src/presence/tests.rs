//! What a server alone writes, whom servers of one database name and for how long, and what becomes of who leaves.

use kinds::Ranges;

use super::*;

fn me(is_shared: bool) -> Me {
    Me::new("here", "192.0.2.1:6443".parse().unwrap(), is_shared, Ranges::default())
}

const CLOCK: &str = "2026-02-28T12:00:00Z";

fn clock() -> Timestamp {
    CLOCK.parse().unwrap()
}

/// The Lease of another server, renewed so many seconds ago.
fn neighbour(version: u64, age: i64) -> Lease {
    let renewed = clock() - jiff::SignedDuration::from_secs(age);
    Lease {
        name: "other".to_owned(),
        version: Revision(version),
        holder: "other_1".to_owned(),
        address: Some("192.0.2.2:6443".parse().unwrap()),
        renewed: Some(renewed),
        end: Some(renewed + jiff::SignedDuration::from_secs(3600)),
    }
}

fn own(me: &Me) -> Lease {
    Lease { name: me.name.clone(), holder: me.holder.clone(), address: me.address, ..neighbour(1, 0) }
}

fn moment(now: Instant) -> Moment {
    Moment { now, clock: clock(), is_leaving: false }
}

/// What a server that has just renewed its Lease and sees this one remembers.
fn memory(leases: &[Lease], at: Instant) -> Memory {
    let mut memory = Memory::default();
    memory.note(leases, &moment(at));
    memory.renewed(at);
    memory
}

/// A view in which these servers are named.
fn view(leases: Vec<Lease>, servers: &[&str]) -> View {
    let servers: BTreeSet<SocketAddr> = servers.iter().map(|it| it.parse().unwrap()).collect();
    let slices = objects::slices(&servers).into_iter().map(|slice| slice.object).collect();
    let endpoints = (!servers.is_empty()).then(|| objects::endpoints(&servers).object);
    View { leases, slices, endpoints, has_service: true, has_node_leases: true }
}

/// What is written and what is deleted, by kind and name.
fn told(plan: &Plan) -> (Vec<String>, Vec<String>) {
    let writes = plan.writes.iter().map(|(first, is_there)| {
        format!("{} {}", if *is_there { "update" } else { "create" }, first.resource)
    });
    let ended = plan.ended.iter().map(|(path, _)| path.rsplit('/').next().unwrap_or_default().to_owned());
    (writes.collect(), ended.collect())
}

fn addresses(plan: &Plan) -> Vec<String> {
    let endpoints = plan.writes.iter().find(|(first, _)| first.resource == "endpoints");
    let subsets = endpoints.map(|(first, _)| first.object["subsets"].clone()).unwrap_or_default();
    let of = |subset: &Value| subset["addresses"].as_array().cloned().unwrap_or_default();
    let all = subsets.as_array().into_iter().flatten().flat_map(of);
    all.map(|address| address["ip"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_alone_writes_everything_once_and_renews_its_lease_rarely() {
    let (me, now) = (me(false), Instant::now());
    let first = decide(&me, &View::default(), &Memory::default(), &moment(now));
    let created = [
        "create leases",
        "create services",
        "create namespaces",
        "create endpoints",
        "create endpointslices",
    ];
    assert_eq!(told(&first).0, created);
    assert!(first.is_renewal);
    assert_eq!(first.next, now + RENEWAL_ALONE);

    let settled = view(vec![own(&me)], &["192.0.2.1:6443"]);
    let memory = memory(&settled.leases, now);
    let later = |after: Duration| decide(&me, &settled, &memory, &moment(now + after));
    assert_eq!(told(&later(Duration::from_secs(1199))), (vec![], vec![]));
    assert_eq!(told(&later(RENEWAL_ALONE)).0, ["update leases"]);
    // Nobody misses it.
    let leaving = Moment { is_leaving: true, ..moment(now) };
    assert_eq!(told(&decide(&me, &settled, &memory, &leaving)), (vec![], vec![]));
    // What somebody else has deleted comes back.
    let robbed = View { endpoints: None, has_service: false, has_node_leases: false, ..settled };
    let mended = decide(&me, &robbed, &memory, &moment(now));
    assert_eq!(told(&mended).0, ["create services", "create namespaces", "create endpoints"]);
    // The lease of the life before is taken over.
    let stale = view(vec![Lease { holder: "before".to_owned(), ..own(&me) }], &["192.0.2.1:6443"]);
    assert_eq!(told(&decide(&me, &stale, &memory, &moment(now))).0, ["update leases"]);
}

#[tokio::test(start_paused = true)]
async fn a_neighbour_is_named_as_long_as_its_lease_is_fresh_by_ones_own_clock() {
    let (me, now) = (me(true), Instant::now());
    let both = ["192.0.2.1", "192.0.2.2"];
    let seen = |other: Lease| view(vec![own(&me), other], &["192.0.2.1:6443"]);
    // At the first look it is as old as it says; a clock that is ahead does not make it younger than new.
    for (age, is_named) in [(-9, true), (0, true), (14, true), (15, false), (3000, false)] {
        let seen = seen(neighbour(1, age));
        let plan = decide(&me, &seen, &memory(&seen.leases, now), &moment(now));
        let expected = if is_named { both.to_vec() } else { vec![] };
        assert_eq!(addresses(&plan), expected, "{age}");
    }
    // Later it is as old as it was last seen to change, whatever its clock says.
    let mut memory = memory(&seen(neighbour(1, 0)).leases, now);
    let renewed = seen(neighbour(2, 500));
    memory.note(&renewed.leases, &moment(now + Duration::from_secs(10)));
    let named = view(renewed.leases.clone(), &["192.0.2.1:6443", "192.0.2.2:6443"]);
    let after = |seconds| decide(&me, &named, &memory, &moment(now + Duration::from_secs(seconds)));
    assert!(told(&after(4)).0.is_empty());
    assert_eq!(after(4).next, now + RENEWAL);
    assert_eq!(after(24).next, now + Duration::from_secs(25), "then the neighbour has had its time");
    assert_eq!(addresses(&after(25)), ["192.0.2.1"]);
    assert!(told(&after(25)).1.is_empty(), "its lease stays for an hour");
}

#[tokio::test(start_paused = true)]
async fn who_leaves_takes_its_lease_and_its_address_along_and_dead_leases_are_collected() {
    let (me, now) = (me(true), Instant::now());
    let leaving = Moment { is_leaving: true, ..moment(now) };
    let both = view(vec![own(&me), neighbour(1, 0)], &["192.0.2.1:6443", "192.0.2.2:6443"]);
    let plan = decide(&me, &both, &memory(&both.leases, now), &leaving);
    assert_eq!(
        told(&plan),
        (vec!["update endpoints".to_owned(), "update endpointslices".to_owned()], vec![me.name.clone()])
    );
    assert_eq!(addresses(&plan), ["192.0.2.2"]);

    let last = view(vec![own(&me)], &["192.0.2.1:6443"]);
    let plan = decide(&me, &last, &memory(&last.leases, now), &leaving);
    assert_eq!(
        told(&plan),
        (vec!["update endpoints".to_owned()], vec![me.name.clone(), "kubernetes".to_owned()])
    );
    assert!(addresses(&plan).is_empty());

    let lives = |age| {
        let seen = view(vec![own(&me), neighbour(1, age)], &["192.0.2.1:6443"]);
        told(&decide(&me, &seen, &memory(&seen.leases, now), &moment(now))).1
    };
    assert!(lives(3600).is_empty());
    assert_eq!(lives(3601), ["other"]);
    let endless = view(vec![own(&me), Lease { end: None, ..neighbour(1, 0) }], &["192.0.2.1:6443"]);
    let plan = decide(&me, &endless, &memory(&endless.leases, now), &moment(now));
    assert_eq!(told(&plan).1, ["other"], "one that never ends is no lease of a server");
}
