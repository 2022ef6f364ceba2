//! Watches with a selector: objects enter and leave the selection.

use model::selector::Target;

use super::Factory;
use super::kit::*;

fn red() -> crate::WatchScope {
    watching(vec![label_is("colour", "red")])
}

fn coloured(colour: &str, data: &str) -> Object {
    object("ns/a").label("colour", colour).data(data)
}

pub(super) async fn an_object_that_leaves_and_returns_is_deleted_and_added(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let mut watch = kit.watch(red(), kit.revision().await).await;
    kit.write(coloured("red", "one").create()).await;
    kit.write(coloured("blue", "two").put()).await;
    kit.write(coloured("blue", "three").put()).await;
    kit.write(coloured("red", "four").put()).await;
    let seen = next_seen(&mut watch, 3).await;
    assert_eq!(seen, [added("a", "one"), deleted("a", "one"), added("a", "four")]);
}

pub(super) async fn an_object_that_leaves_is_shown_as_it_was_last_selected(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let created = kit.write(coloured("red", "selected").create()).await;
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(kit.watch(red(), created.revision).await);
    }
    let left = kit.write(coloured("blue", "secret").put()).await;
    for watch in &mut watches {
        let event = next(watch, 1).await.remove(0);
        // The bytes of the previous version, with the revision of the change that removed it from the
        // selection.
        assert_eq!(seen(&event), deleted("a", "selected"));
        assert_eq!(event.change.revision, left.revision);
        assert_eq!(event.change.value, left.value);
    }
}

pub(super) async fn a_delete_of_an_unselected_object_is_not_shown(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let mut watch = kit.watch(red(), kit.revision().await).await;
    kit.write(coloured("blue", "x").create()).await;
    kit.write(coloured("blue", "x").remove()).await;
    kit.write(coloured("red", "y").create()).await;
    // The last state may carry other labels: it only matters whether the watcher knows the object.
    kit.write(coloured("blue", "z").remove()).await;
    assert_eq!(next_seen(&mut watch, 2).await, [added("a", "y"), deleted("a", "z")]);
}

pub(super) async fn fields_select_events_too(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let running = vec![requirement(Target::Field, "status.phase", one_of(&["Running"]))];
    let not_running = vec![requirement(Target::Field, "status.phase", none_of(&["Running"]))];
    let from = kit.revision().await;
    let mut of_running = kit.watch(watching(running), from).await;
    let mut of_others = kit.watch(watching(not_running), from).await;
    let pod = |phase: &str| object("ns/p").field("status.phase", phase).data(phase);
    kit.write(pod("Pending").create()).await;
    kit.write(pod("Running").put()).await;
    kit.write(pod("Succeeded").put()).await;
    kit.write(pod("Succeeded").remove()).await;
    assert_eq!(next_seen(&mut of_running, 2).await, [added("p", "Running"), deleted("p", "Running")]);
    let others = next_seen(&mut of_others, 4).await;
    let expected =
        [added("p", "Pending"), deleted("p", "Pending"), added("p", "Succeeded"), deleted("p", "Succeeded")];
    assert_eq!(others, expected);
}

pub(super) async fn leaving_is_also_seen_in_the_log(factory: Factory) {
    let kit = Kit::with(&factory, |options| options.ring_events = 1).await;
    let from = kit.revision().await;
    let mut expected = Vec::new();
    for n in 0..50 {
        let (colour, data) =
            if n % 2 == 0 { ("red", format!("red {n}")) } else { ("blue", format!("blue {n}")) };
        let next = coloured(colour, &data);
        kit.write(if n == 0 { next.create() } else { next.put() }).await;
        expected.push(if n % 2 == 0 { added("a", &data) } else { deleted("a", &format!("red {}", n - 1)) });
    }
    let mut watch = kit.watch(red(), from).await;
    assert_eq!(next_seen(&mut watch, 50).await, expected);
}

pub(super) async fn a_change_within_the_selection_is_modified(factory: Factory) {
    let kit = Kit::new(&factory).await;
    let either = vec![requirement(Target::Label, "colour", one_of(&["red", "blue"]))];
    let mut watch = kit.watch(watching(either), kit.revision().await).await;
    kit.write(coloured("red", "one").create()).await;
    kit.write(coloured("blue", "two").put()).await;
    kit.write(coloured("green", "three").put()).await;
    let seen = next_seen(&mut watch, 3).await;
    assert_eq!(seen, [added("a", "one"), modified("a", "two"), deleted("a", "two")]);
}
