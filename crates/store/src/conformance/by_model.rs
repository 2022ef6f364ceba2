//! Random operations against a plain model in memory; a failure is shrunk to the shortest sequence that shows it.

use std::collections::BTreeMap;

use model::Revision;
use model::selector::{Requirement, Target, Test};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio::runtime::Handle;

use super::Factory;
use super::kit::*;
use crate::{Error, EventKind, ListQuery, Write};

/// One operation. Small numbers choose objects, labels and revisions, so that operations collide.
#[derive(Clone, Debug)]
enum Operation {
    Write(Vec<ModelWrite>),
    List { label: u8, namespace: u8, back: u64, limit: usize },
    Get { object: u8, back: u64 },
    Compact { back: u64 },
    Watch { label: u8, back: u64 },
}

#[derive(Clone, Debug)]
struct ModelWrite {
    object: u8,
    action: u8,
    label: u8,
    data: u8,
    /// Expect the revision that the model knows, or another one.
    right: bool,
}

fn steps() -> impl Strategy<Value = Vec<Operation>> {
    let change = (0..6_u8, 0..4_u8, 0..4_u8, 0..3_u8, prop::bool::weighted(0.9))
        .prop_map(|(object, action, label, data, right)| ModelWrite { object, action, label, data, right });
    let step = prop_oneof![
        6 => prop::collection::vec(change, 1..4).prop_map(Operation::Write),
        3 => (0..7_u8, 0..3_u8, 0..12_u64, 1..5_usize)
            .prop_map(|(label, namespace, back, limit)| Operation::List { label, namespace, back, limit }),
        2 => (0..6_u8, 0..12_u64).prop_map(|(object, back)| Operation::Get { object, back }),
        1 => (0..8_u64).prop_map(|back| Operation::Compact { back }),
        1 => (0..7_u8, 0..12_u64).prop_map(|(label, back)| Operation::Watch { label, back }),
    ];
    prop::collection::vec(step, 1..40)
}

/// The label value and the data of an object.
type ModelVersion = (Revision, u8, u8);
type State = BTreeMap<(String, String), ModelVersion>;

/// The states after each write of a transaction, or the reason for its refusal.
type Decision = Result<Vec<(Revision, State)>, &'static str>;

/// Every state that the store ever had.
struct Model {
    states: Vec<(Revision, State)>,
    compacted: Revision,
}

impl Model {
    fn current(&self) -> &(Revision, State) {
        self.states.last().expect("there is always a state")
    }

    fn at(&self, revision: Revision) -> &State {
        let place = self.states.partition_point(|(at, _)| *at <= revision);
        &self.states[place - 1].1
    }

    fn back(&self, steps: u64) -> Revision {
        Revision(self.current().0.0.saturating_sub(steps).max(1))
    }
}

fn path(object: u8) -> (String, String) {
    (format!("n{}", object % 2), format!("o{object}"))
}

fn object_of(change: &ModelWrite) -> Object {
    let (namespace, name) = path(change.object);
    let o = object(&format!("{namespace}/{name}")).data(change.data.to_string());
    // Label 3 is none.
    if change.label == 3 { o } else { o.label("k", &change.label.to_string()).field("f", "x") }
}

fn requirements(choice: u8) -> Vec<Requirement> {
    let label = |test| vec![requirement(Target::Label, "k", test)];
    match choice {
        0 => vec![],
        1 => label(one_of(&["0"])),
        2 => label(one_of(&["1", "2"])),
        3 => label(none_of(&["0"])),
        4 => label(Test::Exists),
        5 => label(Test::NotExists),
        _ => vec![label_is("k", "1"), requirement(Target::Field, "f", one_of(&["x"]))],
    }
}

fn selects(choice: u8, label: u8) -> bool {
    match choice {
        0 => true,
        1 => label == 0,
        2 => label == 1 || label == 2,
        3 => label != 0,
        4 => label != 3,
        5 => label == 3,
        _ => label == 1,
    }
}

/// The writes and their expected outcome.
fn decide(model: &Model, changes: &[ModelWrite]) -> (Vec<Write>, Decision) {
    let (mut revision, mut state) = model.current().clone();
    let mut states = Vec::new();
    let mut writes = Vec::new();
    let mut refused = None;
    for change in changes {
        let key = path(change.object);
        let head = state.get(&key).copied();
        let known = head.map_or(revision, |(revision, _, _)| revision);
        let expect = at(if change.right { known } else { Revision(known.0 + 1000) });
        let o = object_of(change);
        writes.push(match change.action {
            0 => o.create(),
            1 => o.update(expect),
            2 => o.delete(expect),
            _ => o.require(expect, requirements(change.label)),
        });
        let outcome = match (change.action, head) {
            (0, Some(_)) => Err("exists"),
            (1.., None) => Err("missing"),
            (1.., Some(_)) if !change.right => Err("conflict"),
            (3, Some((_, label, _))) if !selects(change.label, label) => Err("conflict"),
            (3, Some(_)) => Ok(false),
            (1, Some((_, label, data))) if (label, data) == (change.label, change.data) => Ok(false),
            _ => Ok(true),
        };
        match outcome {
            Err(reason) => refused = refused.or(Some(reason)),
            Ok(true) if refused.is_none() => {
                revision = revision.next();
                if change.action == 2 {
                    state.remove(&key);
                } else {
                    state.insert(key, (revision, change.label, change.data));
                }
                states.push((revision, state.clone()));
            }
            Ok(_) => {}
        }
    }
    (writes, refused.map_or(Ok(states), Err))
}

async fn write(kit: &Kit, model: &mut Model, changes: &[ModelWrite]) -> Result<(), TestCaseError> {
    let (writes, expected) = decide(model, changes);
    let outcome = kit.store.write(writes).await;
    match (outcome, expected) {
        (Ok(_), Ok(states)) => model.states.extend(states),
        (Err(Error::AlreadyExists { .. }), Err("exists"))
        | (Err(Error::NotFound { .. }), Err("missing"))
        | (Err(Error::Conflict { .. }), Err("conflict")) => {}
        (outcome, expected) => prop_assert!(false, "{outcome:?} instead of {expected:?}"),
    }
    prop_assert_eq!(kit.revision().await, model.current().0);
    Ok(())
}

async fn list(kit: &Kit, model: &Model, query: ListQuery, label: u8) -> Result<(), TestCaseError> {
    let asked = query.at.expect("the step chose one");
    if asked < model.compacted {
        let expired = matches!(kit.store.list(&query).await, Err(Error::Expired { .. }));
        prop_assert!(expired, "{asked} is below the mark");
        return Ok(());
    }
    let expected: Vec<_> = model
        .at(asked)
        .iter()
        .filter(|((namespace, _), _)| query.namespace.as_ref().is_none_or(|wanted| wanted == namespace))
        .filter(|(_, (_, value, _))| selects(label, *value))
        .map(|((namespace, name), (revision, _, data))| {
            (namespace.clone(), name.clone(), *revision, data.to_string())
        })
        .collect();
    let mut found = Vec::new();
    let mut query = query;
    loop {
        let page = kit.list(&query).await;
        prop_assert!(page.items.len() <= query.limit);
        for item in &page.items {
            let key = item.key.clone();
            found.push((key.namespace, key.name, item.revision, data_of(&item.value)));
        }
        if !page.more {
            break;
        }
        query.after = behind(&page);
    }
    prop_assert_eq!(found, expected);
    Ok(())
}

/// The events that the states of the model make for a watch.
fn events(model: &Model, from: Revision, label: u8) -> Vec<(EventKind, String, Revision, Option<String>)> {
    let mut events = Vec::new();
    for pair in model.states.windows(2) {
        let ((_, before), (revision, after)) = (&pair[0], &pair[1]);
        let changed = before.iter().chain(after).find(|(key, _)| before.get(*key) != after.get(*key));
        let (key, _) = changed.expect("each revision changes one object");
        let version = |state: &State| state.get(key).copied().filter(|(_, value, _)| selects(label, *value));
        let (was, is) = (version(before), version(after));
        let kind = match (was, is) {
            _ if *revision <= from => continue,
            (None, None) => continue,
            (None, Some(_)) => EventKind::Added,
            (Some(_), Some(_)) => EventKind::Modified,
            (Some(_), None) => EventKind::Deleted,
        };
        // A real delete shows the last state that its writer supplied, which the model does not keep.
        let left = kind == EventKind::Deleted && after.contains_key(key);
        let shown = if left { was } else { is };
        events.push((kind, key.1.clone(), *revision, shown.map(|(_, _, data)| data.to_string())));
    }
    events
}

async fn watch(kit: &Kit, model: &Model, label: u8, from: Revision) -> Result<(), TestCaseError> {
    let scope = watching(requirements(label));
    if from < model.compacted {
        let expired = matches!(kit.store.watch(scope, from).await, Err(Error::Expired { .. }));
        prop_assert!(expired, "{from} is below the mark");
        return Ok(());
    }
    let mut watch = kit.watch(scope, from).await;
    let expected = events(model, from, label);
    let found = if expected.is_empty() { vec![] } else { next(&mut watch, expected.len()).await };
    for (event, (kind, name, revision, data)) in found.iter().zip(expected) {
        let shown = seen(event);
        prop_assert_eq!((event.kind, &event.change.key.name, event.change.revision), (kind, &name, revision));
        prop_assert!(data.is_none_or(|data| data == shown.2), "{shown:?}");
    }
    Ok(())
}

async fn check(factory: Factory, ring_events: usize, steps: Vec<Operation>) -> Result<(), TestCaseError> {
    let kit = Kit::with(&factory, |options| options.ring_events = ring_events).await;
    let mut model = Model { states: vec![(kit.revision().await, State::new())], compacted: Revision::ZERO };
    for step in steps {
        match step {
            Operation::Write(changes) => write(&kit, &mut model, &changes).await?,
            Operation::List { label, namespace, back, limit } => {
                let namespace = (namespace < 2).then(|| format!("n{namespace}"));
                let at = Some(model.back(back));
                let query = ListQuery { namespace, at, limit, ..selected(requirements(label)) };
                list(&kit, &model, query, label).await?;
            }
            Operation::Get { object: chosen, back } => {
                let at = model.back(back);
                let key = path(chosen);
                let o = object(&format!("{}/{}", key.0, key.1));
                if at < model.compacted {
                    prop_assert!(kit.store.get(&o.key(), Some(at)).await.is_err());
                } else {
                    let expected = model.at(at).get(&key).map(|(_, _, data)| data.to_string());
                    prop_assert_eq!(kit.data(&o, Some(at)).await, expected);
                }
            }
            Operation::Compact { back } => {
                let through = model.back(back);
                kit.store.compact(through).await.map_err(|error| TestCaseError::fail(error.to_string()))?;
                model.compacted = model.compacted.max(through);
            }
            Operation::Watch { label, back } => watch(&kit, &model, label, model.back(back)).await?,
        }
    }
    kit.store.close().await;
    Ok(())
}

pub(super) async fn random_operations_match_a_plain_model(factory: Factory) {
    let handle = Handle::current();
    let run = move || {
        let config =
            Config { cases: 48, max_shrink_iters: 2000, failure_persistence: None, ..Config::default() };
        TestRunner::new(config).run(&(steps(), 1..40_usize), |(steps, ring_events)| {
            handle.block_on(check(factory.clone(), ring_events, steps))
        })
    };
    let outcome = tokio::task::spawn_blocking(run).await.expect("the runner does not panic");
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
