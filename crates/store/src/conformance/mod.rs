//! The tests that every engine has to pass, behind the feature `conformance`.
//!
//! An engine's test file passes a factory of empty databases to
//! [`conformance_suite!`](crate::conformance_suite), which makes one `#[test]` of each case.

mod advancing;
mod batches;
mod by_model;
mod compaction;
mod durability;
pub(crate) mod kit;
mod lists;
mod load;
mod older_reads;
mod requirements;
mod selectors;
mod watches;
mod watching_selected;
mod writes;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;

/// A future that a factory returns.
pub type Made<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Makes an empty database, each time another one.
pub type Factory = Arc<dyn Fn() -> Made<Fixture> + Send + Sync>;

/// Connects to a database again, after its engine was closed or (if the engine allows several) beside it.
pub type Reopen = Arc<dyn Fn() -> Made<Arc<dyn Engine>> + Send + Sync>;

/// An empty database and a way to open it again.
pub struct Fixture {
    /// The first connection to it.
    pub engine: Arc<dyn Engine>,
    /// Connects to the same database again; `None` if it is gone with its first engine.
    pub reopen: Option<Reopen>,
    /// Resources that have to live as long as the database: a temporary folder, a server.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl From<Arc<dyn Engine>> for Fixture {
    fn from(engine: Arc<dyn Engine>) -> Self {
        Self { engine, reopen: None, guard: Box::new(()) }
    }
}

/// One test of the suite.
pub struct Case {
    /// A sentence.
    pub name: &'static str,
    run: fn(Factory) -> Made<()>,
}

/// No case waits longer than this, however slow the machine: one that does is stuck.
const PATIENCE: Duration = Duration::from_secs(240);

/// Runs one case, in a runtime of its own.
pub fn run(name: &str, factory: Factory) {
    let case = CASES.iter().find(|case| case.name == name).expect("the macro only knows names of the list");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a machine that runs tests can start two threads");
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, (case.run)(factory)).await.expect("the case is stuck");
    });
}

/// Lists the cases once, for [`CASES`] and for the macro that makes tests of them. `$d` is a dollar sign for the inner macro.
macro_rules! cases {
    ($d:tt $($module:ident: [$($name:ident),* $(,)?])*) => {
        /// All cases.
        pub const CASES: &[Case] = &[
            $($(Case { name: stringify!($name), run: |factory| Box::pin($module::$name(factory)) },)*)*
        ];

        /// Makes a test of each case of the conformance suite. The argument is a [`Factory`](crate::conformance::Factory).
        #[macro_export]
        macro_rules! conformance_suite {
            ($d factory:expr) => {
                $(mod $module {
                    use super::*;
                    $(#[test]
                    fn $name() {
                        $d crate::conformance::run(stringify!($name), $d factory);
                    })*
                })*
            };
        }
    };
}

cases! { $
    writes: [
        a_write_gives_the_revision_that_its_value_carries,
        a_second_create_is_refused,
        a_stale_revision_is_a_conflict_that_names_the_head,
        a_wrong_uid_is_a_conflict,
        an_update_or_delete_of_nothing_is_not_found,
        an_update_that_changes_nothing_keeps_its_version,
        equal_names_of_two_groups_do_not_collide,
        a_name_that_is_created_again_has_a_higher_revision,
        concurrent_updates_of_one_object_lose_nothing,
        revisions_of_concurrent_writers_are_consecutive,
    ]
    batches: [
        a_transaction_happens_as_a_whole_or_not_at_all,
        writes_of_a_transaction_see_each_other,
        an_object_can_come_and_go_in_one_transaction,
        a_failed_transaction_does_not_touch_others_of_its_batch,
        an_empty_transaction_does_nothing,
        a_transaction_larger_than_a_batch_is_committed,
    ]
    requirements: [
        a_requirement_that_holds_writes_nothing_and_gives_nothing,
        a_requirement_without_a_head_is_not_found,
        a_head_of_another_revision_or_uid_does_not_satisfy,
        a_head_that_the_selector_leaves_out_does_not_satisfy,
        a_requirement_is_checked_before_the_writes_behind_it,
        a_requirement_sees_the_steps_before_it,
        requirements_see_the_earlier_transactions_of_their_batch,
    ]
    lists: [
        a_list_is_in_byte_order_of_its_keys,
        pages_join_to_the_whole_list,
        more_is_exact,
        a_page_is_bounded_in_bytes,
        large_objects_among_small_ones_are_listed_in_order,
        the_total_follows_creates_and_deletes,
        a_namespace_is_listed_alone,
        a_position_outside_of_the_namespace_is_honoured,
        an_empty_database_has_a_version,
        concurrent_reads_of_many_objects_each_return_their_own,
    ]
    older_reads: [
        a_get_at_an_older_revision_shows_the_object_as_it_was,
        a_list_at_an_older_revision_shows_the_objects_as_they_were,
        pages_of_an_older_revision_join_while_others_write,
        a_read_ahead_of_the_clock_is_refused,
    ]
    selectors: [
        every_operator_selects_by_labels,
        every_operator_selects_by_fields,
        requirements_have_to_hold_together,
        selection_as_of_an_older_revision_uses_the_attributes_of_then,
        the_index_follows_updates_and_deletes,
        names_and_namespaces_are_fields,
        a_common_value_is_listed_in_pages,
    ]
    watches: [
        a_watch_gives_every_later_change_once_and_in_order,
        a_watch_from_an_older_revision_begins_there,
        a_watch_is_confined_to_its_scope,
        a_delete_carries_the_last_state_and_its_own_revision,
        a_watch_ahead_of_the_clock_waits_for_it,
        one_write_wakes_many_watches,
        the_position_of_an_idle_watch_moves_on,
        the_position_never_passes_an_event_that_was_not_given_out,
        a_dropped_next_loses_nothing,
        a_slow_watch_reads_on_from_the_log,
        a_frame_is_encoded_once,
        closing_ends_watches,
    ]
    watching_selected: [
        an_object_that_leaves_and_returns_is_deleted_and_added,
        an_object_that_leaves_is_shown_as_it_was_last_selected,
        a_delete_of_an_unselected_object_is_not_shown,
        fields_select_events_too,
        leaving_is_also_seen_in_the_log,
        a_change_within_the_selection_is_modified,
    ]
    compaction: [
        a_watch_from_before_the_mark_is_expired,
        a_running_watch_that_falls_behind_the_mark_is_expired,
        history_is_counted_in_bytes_until_it_is_compacted,
        history_over_its_budget_is_compacted_early,
        a_revision_is_never_reused_after_compaction,
        reads_at_the_mark_work_and_below_it_expire,
        a_continue_position_that_outlives_compaction_is_expired,
        heads_survive_compaction,
        compaction_can_be_repeated_and_never_goes_back,
        compaction_ahead_of_the_clock_is_refused,
        old_history_is_compacted_by_the_clock,
        young_history_is_kept,
        leaving_a_selection_is_seen_after_compaction,
    ]
    advancing: [
        an_advanced_clock_expires_every_older_revision,
        an_advanced_clock_ends_every_watch_once,
        a_revision_below_an_advanced_clock_is_never_given_out,
        an_advanced_clock_keeps_the_objects,
        history_below_an_advanced_clock_is_swept_in_steps_of_changes,
    ]
    load: [
        watches_from_anywhere_see_every_change_of_concurrent_writers,
        slow_watches_with_a_tiny_ring_see_every_change,
        compaction_under_load_loses_nothing,
        lists_under_load_are_of_one_moment,
    ]
    durability: [
        everything_is_there_after_reopening,
        revisions_go_on_after_reopening,
        a_closed_store_is_unavailable,
        queued_writes_are_committed_before_closing,
    ]
    by_model: [
        random_operations_match_a_plain_model,
    ]
}
