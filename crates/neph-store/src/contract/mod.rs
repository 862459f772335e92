//! The contract of every store, as claims that are tested on each kind.
//!
//! Owns the claims and their test values; a [`Subject`] names where a store can be opened. A
//! violated claim panics on a thread with its name. A further kind of store needs a further
//! [`Subject`].

mod append_only;
mod campaigns;
mod experiments;
mod fleets;
mod kill;
mod reduced;
mod taken_in;
mod traced_routes;
pub(crate) mod values;
mod writers;

use std::any::Any;
use std::panic::resume_unwind;
use std::thread::Builder;

use neph_model::{Experiment, ExperimentStatus, Span, Wall, Warning};

use crate::{Access, Store, StoreError, open};
use values::{campaign, experiment, scenario};

/// A place where a store can be opened repeatedly, also by another process, until this is dropped.
#[derive(Debug)]
pub struct StoreLocation {
    /// The argument of [`open`].
    pub url: String,
    /// Removes the store when it is dropped.
    pub keeper: Box<dyn Any>,
}

impl StoreLocation {
    pub(crate) fn open(&self, access: Access) -> Box<dyn Store> {
        self.try_open(access).expect("a store that opens")
    }

    fn try_open(&self, access: Access) -> Result<Box<dyn Store>, StoreError> {
        open(&self.url, access)
    }
}

/// A kind of store.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Returns a place without a store.
    pub fresh: fn() -> StoreLocation,
    /// Full name of an ignored test of the running binary that only calls [`child`]: the process
    /// that is killed runs it.
    pub child: &'static str,
}

type Claim = fn(&StoreLocation);

/// Claims with their names.
macro_rules! claims {
    ($($claim:path,)*) => { &[$((stringify!($claim), $claim as Claim)),*] };
}

const CLAIMS: &[(&str, Claim)] = claims![
    campaigns::campaigns_and_their_matrix_read_back_oldest_first,
    campaigns::a_campaigns_status_is_kept_and_an_unknown_campaign_refused,
    campaigns::only_a_campaign_without_data_can_be_removed,
    campaigns::checks_are_returned_by_time,
    campaigns::pings_between_experiments_are_returned_by_time,
    campaigns::one_process_writes_and_all_can_read,
    experiments::a_finished_experiment_reads_back_in_order,
    experiments::a_running_experiment_can_be_watched,
    experiments::an_experiment_without_its_writer_becomes_an_interrupted_one,
    experiments::experiments_are_returned_by_block_position_and_attempt,
    experiments::traces_of_flows_come_by_time_while_an_experiment_runs_and_afterwards,
    experiments::a_mismatched_recorder_or_provenance_is_refused,
    fleets::a_fleets_messages_read_back_as_recorded_while_it_runs_and_after,
    fleets::a_fleet_without_its_writer_keeps_its_messages_and_they_are_counted,
    traced_routes::traced_routes_and_transfers_survive_a_kill,
    traced_routes::a_failing_visitor_of_routes_ends_the_visit,
    append_only::an_experiment_is_begun_once,
    append_only::one_of_four_writers_begins_an_experiment,
    append_only::an_experiment_ends_once,
    reduced::messages_are_replaced_by_minutes_and_these_removed,
    taken_in::a_finished_journal_is_taken_in_once,
    taken_in::one_of_four_writers_takes_a_journal_in,
    taken_in::a_truncated_journal_is_taken_in_once_it_is_complete,
    taken_in::a_journal_without_its_writer_becomes_an_interrupted_experiment,
    taken_in::an_experiment_recorded_here_is_not_taken_in,
    writers::four_writers_record_one_campaign_at_the_same_time,
    writers::recovery_leaves_what_another_handle_records,
    writers::a_store_is_open_until_its_last_handle_is_dropped,
];

/// Tests every claim, each with a new place and on a thread with its name.
///
/// # Panics
/// A claim is violated.
pub fn check(subject: Subject) {
    for (name, claim) in CLAIMS {
        on_thread(name, move || claim(&(subject.fresh)()));
    }
    for kills in kill::KILLS {
        let name = format!("a kill of {} writers", kills.writers);
        on_thread(&name, move || {
            kill::every_acknowledged_message_survives(subject, kills);
        });
    }
    on_thread("a kill while journals are taken in", move || {
        taken_in::a_kill_in_the_middle_leaves_all_or_nothing(subject);
    });
}

/// The panic message contains the thread's name.
fn on_thread(name: &str, claim: impl FnOnce() + Send + 'static) {
    let thread = Builder::new().name(name.to_owned()).spawn(claim);
    if let Err(panic) = thread.expect("a thread").join() {
        resume_unwind(panic);
    }
}

/// Runs in the process that is killed: records into the store of its environment, or takes in
/// journals, until it is killed. Returns at once in a process that [`check`] did not start.
///
/// # Panics
/// The store refuses, or no process reads the output.
pub fn child() {
    kill::record_until_killed();
    taken_in::take_in_until_killed();
}

/// A store with a campaign, and a running experiment of it that `begin` has not seen yet.
pub(crate) fn prepared(location: &StoreLocation) -> (Box<dyn Store>, Experiment) {
    let mut store = location.open(Access::Write);
    let campaign = campaign();
    store
        .add_campaign(&campaign, &[scenario(0), scenario(1)])
        .expect("a new campaign");
    (store, experiment(campaign.id))
}

pub(crate) fn complete(experiment: &Experiment) -> Experiment {
    let mut ended = experiment.clone();
    ended.status = ExperimentStatus::Complete;
    ended.ended = Some(Wall::from_unix_nanos(experiment.started.unix_nanos() + 7));
    ended.tally.messages = 3;
    ended.tally.late = 1;
    ended.response_p50 = Some(Span::from_nanos(41_900_001));
    ended.anchors = vec![(0, 5), (1_000_000_000, 1_000_000_006)];
    ended.warnings = vec![
        Warning::FewMessages { replies: 3 },
        Warning::CpuStolen { percent: 12.5 },
    ];
    ended.flows[0].source = "10.0.0.9:4711".parse().ok();
    ended
}
