//! The bounds of the gate, by level, class and user.

use super::*;

fn flow(user: &str, level: PriorityLevel, class: VerbClass) -> FlowDistinguisher<'_> {
    FlowDistinguisher { user, level, class, width: 1 }
}

/// The slots of as many attempts as succeed at the same time.
fn admitted(gate: &Gate, flow: FlowDistinguisher<'_>) -> Vec<Slot> {
    (0..1000).filter_map(|_| gate.enter(flow).ok()).collect()
}

#[test]
fn reads_and_writes_are_bounded_apart() {
    let gate = Gate::new(&Limits { reads_in_flight: 1, writes_in_flight: 1, ..Limits::default() });
    let read = flow("jane", PriorityLevel::Shared, VerbClass::Read);
    let first = gate.enter(read).unwrap();
    let _write = gate.enter(flow("jane", PriorityLevel::Shared, VerbClass::Mutate)).unwrap();
    assert!(matches!(gate.enter(read), Err(Error::TooManyRequests { retry_after_seconds: 1, .. })));
    drop(first);
    assert!(gate.enter(read).is_ok());
}

#[test]
fn one_user_gets_half_of_the_shared_slots_and_all_users_leave_the_reserve() {
    let gate = Gate::new(&Limits { writes_in_flight: 200, ..Limits::default() });
    let of = |user| flow(user, PriorityLevel::Shared, VerbClass::Mutate);
    let alice = admitted(&gate, of("alice"));
    let bob = admitted(&gate, of("bob"));
    let carol = admitted(&gate, of("carol"));
    assert_eq!((alice.len(), bob.len(), carol.len()), (90, 90, 0));
    let leader = flow("system:kube-scheduler", PriorityLevel::Reserved, VerbClass::Mutate);
    assert_eq!(admitted(&gate, leader).len(), 20);
    let masters = flow("admin", PriorityLevel::Exempt, VerbClass::Mutate);
    assert_eq!(admitted(&gate, masters).len(), 1000, "the administrator is never refused");
    drop(alice);
    assert_eq!(admitted(&gate, of("carol")).len(), 90, "slots are given back");
    assert_eq!(gate.writes.held().by_user.len(), 1, "users without a slot are forgotten");
}

#[test]
fn watches_are_bounded_in_total_and_by_user_but_components_only_in_total() {
    let gate = Gate::new(&Limits { watches: 100, watches_per_user: 20, ..Limits::default() });
    let of = |user, level| flow(user, level, VerbClass::Watch);
    let alice = admitted(&gate, of("alice", PriorityLevel::Shared));
    assert_eq!(alice.len(), 20);
    let controllers = admitted(&gate, of("system:kube-controller-manager", PriorityLevel::System));
    assert_eq!(controllers.len(), 70);
    assert_eq!(admitted(&gate, of("system:node:a", PriorityLevel::Reserved)).len(), 10);
    assert_eq!(admitted(&gate, of("admin", PriorityLevel::Exempt)).len(), 1000);
}

#[test]
fn levels_come_from_the_connection_the_group_and_the_flow_schema() {
    let [jane, admin] =
        [&[][..], &["system:masters".to_owned()]].map(|groups| Identity::authenticated("x", groups.to_vec()));
    let inside = Connection::InProcess(jane.clone());
    let outside = Connection::Bare;
    let leader = Some(PriorityLevel::named("leader-election"));
    for (connection, caller, classified, expected) in [
        (&inside, &jane, None, PriorityLevel::Exempt),
        (&outside, &admin, Some(PriorityLevel::Shared), PriorityLevel::Exempt),
        (&outside, &jane, leader, PriorityLevel::Reserved),
        (&outside, &jane, Some(PriorityLevel::named("workload-high")), PriorityLevel::System),
        (&outside, &jane, Some(PriorityLevel::named("global-default")), PriorityLevel::Shared),
        (&outside, &jane, None, PriorityLevel::Shared),
    ] {
        assert_eq!(
            PriorityLevel::of(connection, caller, classified),
            expected,
            "{connection:?} {classified:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_waits_for_room_and_is_refused_when_there_stays_none() {
    let gate = Gate::new(&Limits { bodies_bytes: 100, body_bytes: 1, ..Limits::default() });
    let of = |user| flow(user, PriorityLevel::Shared, VerbClass::Mutate);
    let (mut first, mut second) = (gate.room(of("alice")), gate.room(of("bob")));
    first.grow(45).await.unwrap();
    second.grow(45).await.unwrap();
    let mut third = gate.room(of("carol"));
    assert!(matches!(third.grow(1).await, Err(Error::TooManyRequests { .. })));
    let release = async {
        tokio::task::yield_now().await;
        drop(first);
    };
    let (grown, ()) = tokio::join!(third.grow(45), release);
    grown.expect("there is room again");
    assert!(third.grow(1).await.is_err(), "one user gets half of it");
    gate.room(of("dave")).grow(0).await.expect("a body without a byte takes no room");
}
