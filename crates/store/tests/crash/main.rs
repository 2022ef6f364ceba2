//! Crash and fault tests with real processes, for the SQLite store: kills, full disks, read-only and damaged files.

mod audit;
mod damage;
mod expected;
mod faults;
mod kills;
mod line;
mod objects;
mod process;
mod recovery;
mod writer;

use faults::Fault;
use process::{Orders, name_of};

#[test]
fn every_acknowledged_write_survives_a_kill_and_no_revision_is_reused() {
    match Orders::received() {
        Some(orders) => writer::run(&orders),
        None => kills::run(name_of(every_acknowledged_write_survives_a_kill_and_no_revision_is_reused)),
    }
}

#[test]
fn a_full_disk_refuses_writes_and_only_writes_until_there_is_room_again() {
    match Fault::received() {
        Some((fault, folder)) => recovery::run(fault, &folder),
        None => {
            Fault::Full.run(name_of(a_full_disk_refuses_writes_and_only_writes_until_there_is_room_again))
        }
    }
}

#[test]
fn read_only_files_refuse_writes_and_only_writes_until_they_are_writable_again() {
    match Fault::received() {
        Some((fault, folder)) => recovery::run(fault, &folder),
        None => Fault::Frozen
            .run(name_of(read_only_files_refuse_writes_and_only_writes_until_they_are_writable_again)),
    }
}

#[test]
fn files_that_may_not_grow_refuse_writes_and_only_writes_until_they_may() {
    match Fault::received() {
        Some((fault, folder)) => recovery::run(fault, &folder),
        None => {
            Fault::Limited.run(name_of(files_that_may_not_grow_refuse_writes_and_only_writes_until_they_may))
        }
    }
}

#[tokio::test]
async fn a_read_only_folder_or_file_is_refused_with_a_sentence() {
    match Fault::received() {
        Some((fault, folder)) => damage::read_only(fault, &folder).await,
        None => faults::run_bound(name_of(a_read_only_folder_or_file_is_refused_with_a_sentence)),
    }
}

#[test]
fn a_file_that_is_no_database_is_refused_with_a_remedy() {
    damage::foreign_files();
}

#[tokio::test]
async fn a_database_of_a_newer_version_or_of_another_program_is_refused_with_a_remedy() {
    damage::other_programs().await;
}

#[tokio::test]
async fn a_truncated_database_is_refused_with_a_remedy() {
    damage::truncated_files().await;
}

#[tokio::test]
async fn a_write_ahead_log_without_its_database_is_refused_with_a_remedy() {
    damage::lost_files().await;
}

#[tokio::test]
async fn damaged_pages_give_errors_and_no_panic() {
    damage::damaged_pages().await;
}

#[test]
fn a_second_process_is_refused_while_the_first_lives() {
    match Orders::received() {
        Some(orders) => writer::run(&orders),
        None => kills::second_process(name_of(a_second_process_is_refused_while_the_first_lives)),
    }
}

#[test]
fn a_kill_while_the_database_is_made_leaves_one_that_opens() {
    match Orders::received() {
        Some(orders) => writer::run(&orders),
        None => kills::while_it_is_made(name_of(a_kill_while_the_database_is_made_leaves_one_that_opens)),
    }
}
