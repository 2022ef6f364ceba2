//! The planner, without a database.

use model::Selector;
use model::selector::{Requirement, Test};

use super::*;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(&Resource::new("", "configmaps"), "ns", name)
}

fn labels(pairs: &[(&str, &str)]) -> Attributes {
    Attributes::new(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(), vec![])
}

fn body(text: &str) -> Encoded {
    let object = serde_json::json!({"metadata": {"name": "x"}, "data": text});
    Encoded::new(object.as_object().unwrap())
}

fn create(name: &str, text: &str) -> Write {
    Write::Create {
        key: key(name),
        uid: Uid(format!("uid-{name}")),
        attributes: labels(&[("t", text)]),
        body: body(text),
    }
}

fn update(name: &str, expect: Precondition, text: &str) -> Write {
    Write::Update { key: key(name), expect, attributes: labels(&[("t", text)]), body: body(text) }
}

fn delete(name: &str, expect: Precondition) -> Write {
    Write::Delete { key: key(name), expect, attributes: Attributes::default(), body: body("last") }
}

fn require(name: &str, text: &str) -> Write {
    let test = Test::In(vec![text.to_owned()]);
    let requirement = Requirement { target: Target::Label, key: "t".to_owned(), test };
    let selector = Selector { requirements: vec![requirement] };
    Write::Require { key: key(name), expect: Precondition::default(), selector }
}

fn at(revision: u64) -> Precondition {
    Precondition { revision: Some(Revision(revision)), uid: None }
}

fn head(revision: u64, text: &str) -> Head {
    Head {
        revision: Revision(revision),
        uid: Uid("u".into()),
        attributes: labels(&[("t", text)]),
        value: Some(body(text).at(Revision(revision))),
        bytes: 1000,
    }
}

fn revisions(plan: &BatchPlan) -> Vec<u64> {
    plan.changes.iter().map(|change| change.revision.0).collect()
}

#[test]
fn revisions_are_consecutive_over_the_transactions_of_a_batch() {
    let plan = plan(
        vec![vec![create("a", "1"), create("b", "1")], vec![create("c", "1")]],
        HashMap::new(),
        Revision(7),
    );
    assert_eq!(revisions(&plan), [8, 9, 10]);
    assert_eq!(plan.revision, Revision(10));
    assert_eq!(plan.outcomes[1].as_ref().unwrap()[0].revision, Revision(10));
    assert_eq!(
        plan.counts,
        [CountMove { resource: Resource::new("", "configmaps"), namespace: "ns".into(), delta: 3 }]
    );
}

#[test]
fn a_transaction_that_fails_leaves_no_trace_and_takes_no_revision() {
    let plan = plan(
        vec![vec![create("a", "1"), update("missing", Precondition::default(), "2")], vec![create("a", "2")]],
        HashMap::new(),
        Revision(7),
    );
    assert!(matches!(plan.outcomes[0], Err(Error::NotFound { .. })));
    assert!(plan.outcomes[1].is_ok());
    assert_eq!(revisions(&plan), [8]);
    assert_eq!(plan.heads.len(), 1);
}

#[test]
fn later_writes_see_earlier_ones_and_only_the_net_effect_reaches_heads_and_index() {
    let plan = plan(
        vec![
            vec![create("a", "1"), update("a", at(8), "2")],
            vec![update("a", at(9), "3")],
            vec![create("b", "1"), delete("b", Precondition::default())],
            vec![update("a", at(9), "4")],
        ],
        HashMap::new(),
        Revision(7),
    );
    assert_eq!(revisions(&plan), [8, 9, 10, 11, 12]);
    assert!(
        matches!(&plan.outcomes[3], Err(Error::Conflict { actual_revision, .. }) if *actual_revision == Revision(10))
    );
    assert_eq!(plan.heads.len(), 1, "b came and went");
    assert_eq!(plan.heads[0].revision, Some(Revision(10)));
    assert_eq!(plan.heads[0].added, [Entry { target: Target::Label, key: "t".into(), value: "3".into() }]);
    assert!(plan.heads[0].removed.is_empty());
    let superseded: Vec<_> = plan.history.iter().map(|row| (row.revision.0, row.by.0)).collect();
    assert_eq!(superseded, [(8, 9), (9, 10), (11, 12)]);
    assert_eq!(plan.changes[1].previous_attributes, labels(&[("t", "1")]));
}

#[test]
fn an_update_writes_only_the_index_entries_that_differ() {
    let heads = HashMap::from([(key("a"), head(5, "old"))]);
    let plan = plan(vec![vec![update("a", at(5), "new")]], heads, Revision(7));
    let head = &plan.heads[0];
    assert!(head.existed);
    assert_eq!(head.added[0].value, "new");
    assert_eq!(head.removed[0].value, "old");
    assert!(plan.counts.is_empty());
    assert_eq!(plan.changes[0].uid, Uid("u".into()), "an update keeps the uid of the head");
}

#[test]
fn an_update_that_changes_nothing_gives_back_the_head() {
    let heads = HashMap::from([(key("a"), head(5, "same"))]);
    let plan = plan(vec![vec![update("a", at(5), "same")]], heads, Revision(7));
    let written = &plan.outcomes[0].as_ref().unwrap()[0];
    assert_eq!(written.revision, Revision(5));
    assert_eq!(written.value, body("same").at(Revision(5)));
    assert!(plan.changes.is_empty() && plan.heads.is_empty() && plan.history.is_empty());
    assert_eq!(plan.revision, Revision(7));
}

#[test]
fn a_wrong_uid_or_revision_is_a_conflict_that_names_the_head() {
    for expect in [at(4), Precondition { revision: None, uid: Some(Uid("other".into())) }] {
        let heads = HashMap::from([(key("a"), head(5, "x"))]);
        let plan = plan(vec![vec![delete("a", expect)]], heads, Revision(7));
        assert!(matches!(
            &plan.outcomes[0],
            Err(Error::Conflict { actual_revision, actual_uid, .. })
                if *actual_revision == Revision(5) && *actual_uid == Uid("u".into())
        ));
    }
}

#[test]
fn a_delete_removes_head_and_index_and_keeps_the_last_version_in_history() {
    let heads = HashMap::from([(key("a"), head(5, "x"))]);
    let plan = plan(vec![vec![delete("a", at(5))], vec![create("a", "y")]], heads, Revision(7));
    assert_eq!(plan.heads.len(), 1);
    assert_eq!(plan.heads[0].revision, Some(Revision(9)));
    assert_eq!(plan.history, [Superseded { key: key("a"), revision: Revision(5), by: Revision(8) }]);
    assert_eq!(plan.changes[1].previous, Revision::ZERO);
    assert!(plan.changes[1].previous_attributes.labels().is_empty());
    assert!(plan.counts.is_empty());
}

#[test]
fn each_key_is_wanted_once_and_its_value_only_for_updates() {
    let batch = vec![
        vec![create("b", "1"), update("b", at(1), "2")],
        vec![create("a", "1"), require("b", "1"), delete("a", Precondition::default())],
    ];
    let wanted = wanted(&batch);
    assert_eq!(wanted, [Wanted { key: &key("a"), value: false }, Wanted { key: &key("b"), value: true }]);
}

#[test]
fn a_requirement_sees_earlier_transactions_and_moves_nothing() {
    let heads = HashMap::from([(key("p"), head(5, "open"))]);
    let child = |name: &str| vec![require("p", "open"), create(name, "1")];
    let set = |text: &str| vec![update("p", Precondition::default(), text)];
    let batch = vec![
        child("a"),
        set("closed"),
        child("b"),
        vec![create("c", "1"), update("p", Precondition::default(), "open"), require("p", "closed")],
        child("d"),
        set("open"),
        child("e"),
        vec![delete("p", Precondition::default())],
        child("f"),
    ];
    let plan = plan(batch, heads, Revision(7));
    let counts: Vec<_> =
        plan.outcomes.iter().map(|outcome| outcome.as_ref().map(Vec::len).map_err(Clone::clone)).collect();
    let closed =
        || Err(Error::Conflict { key: key("p"), actual_revision: Revision(9), actual_uid: Uid("u".into()) });
    assert_eq!(counts[0..3], [Ok(1), Ok(1), closed()]);
    assert!(counts[3].is_err(), "its own write opened it");
    assert_eq!(counts[4..8], [closed(), Ok(1), Ok(1), Ok(1)]);
    assert_eq!(counts[8], Err(Error::NotFound { key: key("p") }));
    assert_eq!(revisions(&plan), [8, 9, 10, 11, 12]);
    let moved: Vec<_> = plan.heads.iter().map(|head| head.key.name.as_str()).collect();
    assert_eq!(moved, ["a", "e", "p"]);
}

/// A body of this many bytes.
fn sized(bytes: usize) -> Encoded {
    let empty = body("").len();
    body(&"x".repeat(bytes - empty))
}

fn write_of(body: Encoded, labels: usize, head: Option<Head>) -> Result<Vec<Written>, Error> {
    let labels = (0..labels).map(|number| (format!("l{number}"), String::new())).collect();
    let attributes = Attributes::new(labels, vec![]);
    let write = match &head {
        None => Write::Create { key: key("a"), uid: Uid("u".into()), attributes, body },
        Some(_) => Write::Update { key: key("a"), expect: Precondition::default(), attributes, body },
    };
    let heads = head.into_iter().map(|head| (key("a"), head)).collect();
    let mut plan = plan(vec![vec![create("beside", "1")], vec![write]], heads, Revision(100));
    let outcome = plan.outcomes.remove(1);
    // A refused transaction leaves no trace, and the others succeed.
    assert_eq!(plan.changes.len(), if outcome.is_ok() { 2 } else { 1 });
    outcome
}

#[test]
fn an_object_over_the_size_limit_is_refused_unless_it_was_larger_before() {
    let of = |bytes: usize| Some(Head { value: Some(sized(bytes).at(Revision(9))), ..head(9, "") });
    let outcome = |bytes, head| match write_of(sized(bytes), 0, head) {
        Ok(_) => true,
        Err(Error::TooLarge { .. }) => false,
        Err(error) => panic!("{error}"),
    };
    assert!(outcome(OBJECT_BYTES, None));
    assert!(!outcome(OBJECT_BYTES + 1, None));
    assert!(outcome(OBJECT_BYTES, of(100)));
    assert!(!outcome(OBJECT_BYTES + 1, of(100)));
    assert!(
        !outcome(OBJECT_BYTES + 1, of(OBJECT_BYTES - 2)),
        "no growth over the limit, not even a small one"
    );
    // Objects from before the limit: a smaller one is accepted, and so is the deletion mark.
    assert!(outcome(2 * OBJECT_BYTES, of(3 * OBJECT_BYTES)));
    assert!(outcome(3 * OBJECT_BYTES + 100, of(3 * OBJECT_BYTES)));
    assert!(!outcome(4 * OBJECT_BYTES, of(3 * OBJECT_BYTES)));
}

#[test]
fn an_object_with_too_many_labels_is_refused_unless_it_had_as_many() {
    let of = |count: usize| {
        let pairs = (0..count).map(|number| (format!("old{number}"), String::new())).collect();
        Some(Head { attributes: Attributes::new(pairs, vec![]), ..head(9, "before") })
    };
    assert!(write_of(body("now"), OBJECT_LABELS, None).is_ok());
    let refusal = write_of(body("now"), OBJECT_LABELS + 1, None).unwrap_err().to_string();
    assert!(refusal.ends_with("the object has 10001 labels, the limit is 10000"), "{refusal}");
    assert!(write_of(body("now"), OBJECT_LABELS + 1, of(5)).is_err());
    assert!(write_of(body("now"), OBJECT_LABELS + 1, of(OBJECT_LABELS + 1)).is_ok());
}

#[test]
fn superseded_and_deleted_versions_become_history() {
    let heads = || HashMap::from([(key("a"), head(9, "old")), (key("b"), head(8, "old"))]);
    let bytes = |writes| plan(vec![writes], heads(), Revision(100)).history_bytes;
    assert_eq!(bytes(vec![create("c", "1")]), 0);
    assert_eq!(bytes(vec![update("a", Precondition::default(), "new")]), 1000);
    let last = (body("last").len() + 3 + Attributes::default().to_bytes().len()) as u64;
    assert_eq!(bytes(vec![delete("a", Precondition::default())]), 1000 + last);
    let twice =
        vec![update("a", Precondition::default(), "new"), update("a", Precondition::default(), "newer")];
    let between = (body("new").len() + 3 + labels(&[("t", "new")]).to_bytes().len()) as u64;
    assert_eq!(bytes(twice), 1000 + between);
    assert_eq!(bytes(vec![update("b", at(1), "new")]), 0, "a refused transaction keeps nothing");
}
