//! The store, on SQLite and on a real Postgres: the same claims for both.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod databases;
mod frozen;
mod postgres;
mod receiver;

#[path = "store/clock.rs"]
mod clock;
#[path = "store/counting.rs"]
mod counting;
#[path = "store/crash.rs"]
mod crash;
#[path = "store/decisions.rs"]
mod decisions;
#[path = "store/fixtures.rs"]
mod fixtures;
#[path = "store/layout.rs"]
mod layout;
#[path = "store/pager.rs"]
mod pager;
#[path = "store/probing.rs"]
mod probing;
#[path = "store/server.rs"]
mod server;
#[path = "store/stalls.rs"]
mod stalls;
#[path = "store/standby.rs"]
mod standby;
#[path = "store/together.rs"]
mod together;
#[path = "store/turns.rs"]
mod turns;

use clock::*;
use counting::*;
use databases::{Claim, claims};
use decisions::*;
use layout::*;
use libtest_mimic::Arguments;
use mcproof_demo::{DemoName, DemoOptions};
use probing::*;
use stalls::*;
use standby::*;
use std::process::ExitCode;
use together::*;
use turns::*;

// Those that wait longest are begun first.
const CLAIMS: &[(&str, Claim)] = claims![
    a_mute_that_ends_in_memory_is_over_there_and_in_the_database,
    what_an_unread_standby_tells_anew_goes_on,
    an_outage_is_told_while_the_database_takes_nothing,
    what_is_known_in_memory_is_shown_and_jobs_report_there,
    a_monitor_that_starts_without_its_database_tells_and_stores_it_later,
    what_people_decide_in_memory_counts_at_once_and_is_written_once,
    what_the_database_does_not_take_is_tried_again_later,
    a_decision_that_the_database_refuses_is_taken_by_whoever_stands_in,
    a_turn_is_leased_to_one_worker_only,
    a_target_is_monitored_as_long_as_a_process_names_it,
    a_process_takes_no_turn_of_thousands_that_it_does_not_know,
    what_a_process_that_was_killed_monitored_is_kept_until_a_file_is_read_again,
    a_lease_that_ended_is_taken_over_and_its_result_is_dropped,
    without_the_fence_a_late_result_is_taken,
    leases_that_are_given_back_are_taken_again,
    a_result_is_written_once_and_its_target_waits_for_the_next_slot,
    a_failure_is_looked_at_again_and_so_are_the_neighbours,
    what_is_new_is_probed_at_once_and_never_twice_in_a_slot,
    a_reload_keeps_turns_and_changes_what_changed,
    what_was_never_committed_is_probed_again_and_what_has_passed_is_missed,
    contracts_and_evidence_come_back_as_they_were,
    another_region_confirms,
    results_become_counts_and_counting_twice_changes_nothing,
    what_is_old_is_forgotten_and_counts_stay_longer,
    who_is_not_heard_for_three_intervals_is_blind_unless_the_monitor_was_away,
    who_is_not_heard_is_told_in_parts_until_all_are,
    a_region_that_is_not_heard_while_others_are_is_told_until_it_is,
    who_waited_for_the_database_calls_nobody_blind,
    a_chore_is_done_by_one_of_many,
    each_failure_has_its_layer_and_its_culprit,
    a_job_is_down_when_it_does_not_report_in,
    an_outage_is_confirmed_told_once_and_ended,
    once_probes_everything_at_once,
    once_believes_no_old_result_after_the_interval_became_longer,
    a_process_lives_on_between_probes_and_its_deaths_are_counted,
    the_suite_of_a_target_runs_what_changes_nothing,
    a_clock_that_is_set_forward_and_back_hides_no_outage,
    a_clock_that_is_set_forward_brings_no_confirmation_forward,
    a_restart_believes_no_times_that_have_not_come_yet,
    what_a_job_said_while_the_clock_was_ahead_is_outlived_by_what_it_says_later,
    what_people_decided_while_the_clock_was_ahead_lasts_as_long_as_they_said,
    a_database_of_an_earlier_version_goes_on,
    a_database_of_the_version_before_keeps_its_audit_log,
    a_database_of_a_later_version_is_left_alone,
    a_lock_of_another_program_is_named_with_what_to_do,
    nobody_is_told_of_what_is_silenced_until_it_ends,
    what_depends_on_what_is_down_is_told_only_if_it_outlasts_that,
    what_is_grouped_is_one_message_and_none_is_lost,
];

const CLAIMS_OF_POSTGRES: &[(&str, Claim)] = claims![
    a_read_only_database_is_named_with_what_to_do,
    a_worker_that_stalls_in_its_transaction_holds_nobody_up,
    workers_whose_clocks_differ_go_by_that_of_the_database,
    the_clock_of_a_busy_database_is_right,
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--demo", ..] => return demo(),
        ["--worker", words @ ..] => return crash::work(words),
        // The long form of the crash test: how often something dies.
        ["--crashes", on_sqlite, on_postgres] => {
            return crash::long(on_sqlite.parse().unwrap(), on_postgres.parse().unwrap());
        }
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    // They wait for intervals and deadlines, and hardly compute.
    arguments.test_threads.get_or_insert(8);
    let claims = databases::trials(CLAIMS, CLAIMS_OF_POSTGRES, &arguments);
    let trials = crash::trials().into_iter().chain(claims).chain([trial_of_connections()]);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// A server over stdio.
fn demo() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let served = runtime.block_on(mcproof_demo::serve(DemoOptions::new(DemoName::Shop), std::future::pending()));
    if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
