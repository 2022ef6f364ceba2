//! Decisions of the identity Lease controller: a single server, servers that share a database, shutdown.

use kinds::Ranges;

use super::*;

fn identity(is_shared: bool) -> ServerIdentity {
    ServerIdentity::new("here", "192.0.2.1:6443".parse().unwrap(), is_shared, Ranges::default())
}

const CLOCK: &str = "2026-02-28T12:00:00Z";

fn clock() -> Timestamp {
    CLOCK.parse().unwrap()
}

/// The Lease of another server, renewed `age` seconds ago.
fn neighbour(version: u64, age: i64) -> IdentityLease {
    let renewed = clock() - jiff::SignedDuration::from_secs(age);
    IdentityLease {
        name: "other".to_owned(),
        version: Revision(version),
        holder: "other_1".to_owned(),
        address: Some("192.0.2.2:6443".parse().unwrap()),
        renewed: Some(renewed),
        end: Some(renewed + jiff::SignedDuration::from_secs(3600)),
    }
}

fn own(identity: &ServerIdentity) -> IdentityLease {
    IdentityLease {
        name: identity.name.clone(),
        holder: identity.holder.clone(),
        address: identity.address,
        ..neighbour(1, 0)
    }
}

fn time(now: Instant) -> DecisionTime {
    DecisionTime { now, clock: clock(), is_leaving: false }
}

/// The history of a server that has just renewed its Lease and observes these Leases.
fn history(leases: &[IdentityLease], at: Instant) -> LeaseHistory {
    let mut history = LeaseHistory::default();
    history.note(leases, &time(at));
    history.renewed(at);
    history
}

/// An observed state whose endpoints are these servers.
fn observed(leases: Vec<IdentityLease>, servers: &[&str]) -> ObservedState {
    let servers: BTreeSet<SocketAddr> = servers.iter().map(|it| it.parse().unwrap()).collect();
    let slices = objects::slices(&servers).into_iter().map(|slice| slice.object).collect();
    let endpoints = (!servers.is_empty()).then(|| objects::endpoints(&servers).object);
    ObservedState { leases, slices, endpoints, has_service: true, has_node_leases: true }
}

/// The written and the deleted objects, by kind and name.
fn written_and_deleted(actions: &Actions) -> (Vec<String>, Vec<String>) {
    let writes = actions.writes.iter().map(|(first, is_there)| {
        format!("{} {}", if *is_there { "update" } else { "create" }, first.resource)
    });
    let ended = actions.ended.iter().map(|(path, _)| path.rsplit('/').next().unwrap_or_default().to_owned());
    (writes.collect(), ended.collect())
}

fn addresses(actions: &Actions) -> Vec<String> {
    let endpoints = actions.writes.iter().find(|(first, _)| first.resource == "endpoints");
    let subsets = endpoints.map(|(first, _)| first.object["subsets"].clone()).unwrap_or_default();
    let of = |subset: &Value| subset["addresses"].as_array().cloned().unwrap_or_default();
    let all = subsets.as_array().into_iter().flatten().flat_map(of);
    all.map(|address| address["ip"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_alone_writes_everything_once_and_renews_its_lease_rarely() {
    let (identity, now) = (identity(false), Instant::now());
    let first = decide(&identity, &ObservedState::default(), &LeaseHistory::default(), &time(now));
    let created = [
        "create leases",
        "create services",
        "create namespaces",
        "create endpoints",
        "create endpointslices",
    ];
    assert_eq!(written_and_deleted(&first).0, created);
    assert!(first.is_renewal);
    assert_eq!(first.next, now + RENEWAL_ALONE);

    let settled = observed(vec![own(&identity)], &["192.0.2.1:6443"]);
    let history = history(&settled.leases, now);
    let later = |after: Duration| decide(&identity, &settled, &history, &time(now + after));
    assert_eq!(written_and_deleted(&later(Duration::from_secs(1199))), (vec![], vec![]));
    assert_eq!(written_and_deleted(&later(RENEWAL_ALONE)).0, ["update leases"]);
    // A single server leaves its Lease and endpoints in place.
    let leaving = DecisionTime { is_leaving: true, ..time(now) };
    assert_eq!(written_and_deleted(&decide(&identity, &settled, &history, &leaving)), (vec![], vec![]));
    // Deleted objects are restored.
    let incomplete = ObservedState { endpoints: None, has_service: false, has_node_leases: false, ..settled };
    let repaired = decide(&identity, &incomplete, &history, &time(now));
    assert_eq!(
        written_and_deleted(&repaired).0,
        ["create services", "create namespaces", "create endpoints"]
    );
    // The Lease of the previous run is taken over.
    let stale =
        observed(vec![IdentityLease { holder: "before".to_owned(), ..own(&identity) }], &["192.0.2.1:6443"]);
    assert_eq!(written_and_deleted(&decide(&identity, &stale, &history, &time(now))).0, ["update leases"]);
}

#[tokio::test(start_paused = true)]
async fn a_peer_is_an_endpoint_while_its_lease_is_fresh_by_the_local_clock() {
    let (identity, now) = (identity(true), Instant::now());
    let both = ["192.0.2.1", "192.0.2.2"];
    let seen = |other: IdentityLease| observed(vec![own(&identity), other], &["192.0.2.1:6443"]);
    // At the first observation renewTime counts; a clock that is ahead does not prolong the Lease.
    for (age, is_named) in [(-9, true), (0, true), (14, true), (15, false), (3000, false)] {
        let seen = seen(neighbour(1, age));
        let actions = decide(&identity, &seen, &history(&seen.leases, now), &time(now));
        let expected = if is_named { both.to_vec() } else { vec![] };
        assert_eq!(addresses(&actions), expected, "{age}");
    }
    // Later the age counts from the last observed change, whatever renewTime says.
    let mut history = history(&seen(neighbour(1, 0)).leases, now);
    let renewed = seen(neighbour(2, 500));
    history.note(&renewed.leases, &time(now + Duration::from_secs(10)));
    let named = observed(renewed.leases.clone(), &["192.0.2.1:6443", "192.0.2.2:6443"]);
    let after = |seconds| decide(&identity, &named, &history, &time(now + Duration::from_secs(seconds)));
    assert!(written_and_deleted(&after(4)).0.is_empty());
    assert_eq!(after(4).next, now + RENEWAL);
    assert_eq!(after(24).next, now + Duration::from_secs(25), "then the neighbour has had its time");
    assert_eq!(addresses(&after(25)), ["192.0.2.1"]);
    assert!(written_and_deleted(&after(25)).1.is_empty(), "its lease stays for an hour");
}

#[tokio::test(start_paused = true)]
async fn a_stopping_server_removes_its_lease_and_address_and_expired_leases_are_deleted() {
    let (identity, now) = (identity(true), Instant::now());
    let leaving = DecisionTime { is_leaving: true, ..time(now) };
    let both = observed(vec![own(&identity), neighbour(1, 0)], &["192.0.2.1:6443", "192.0.2.2:6443"]);
    let actions = decide(&identity, &both, &history(&both.leases, now), &leaving);
    assert_eq!(
        written_and_deleted(&actions),
        (
            vec!["update endpoints".to_owned(), "update endpointslices".to_owned()],
            vec![identity.name.clone()]
        )
    );
    assert_eq!(addresses(&actions), ["192.0.2.2"]);

    let last = observed(vec![own(&identity)], &["192.0.2.1:6443"]);
    let actions = decide(&identity, &last, &history(&last.leases, now), &leaving);
    assert_eq!(
        written_and_deleted(&actions),
        (vec!["update endpoints".to_owned()], vec![identity.name.clone(), "kubernetes".to_owned()])
    );
    assert!(addresses(&actions).is_empty());

    let lives = |age| {
        let seen = observed(vec![own(&identity), neighbour(1, age)], &["192.0.2.1:6443"]);
        written_and_deleted(&decide(&identity, &seen, &history(&seen.leases, now), &time(now))).1
    };
    assert!(lives(3600).is_empty());
    assert_eq!(lives(3601), ["other"]);
    let endless =
        observed(vec![own(&identity), IdentityLease { end: None, ..neighbour(1, 0) }], &["192.0.2.1:6443"]);
    let actions = decide(&identity, &endless, &history(&endless.leases, now), &time(now));
    assert_eq!(written_and_deleted(&actions).1, ["other"], "one that never ends is no lease of a server");
}
