//! The rows of `neph list`.

use neph_model::{ExperimentId, Span, UtcOffset, Wall};

use super::beginning;
use crate::p50::P50;
use crate::when;

crate::rows! {
    /// A campaign of a workspace.
    pub struct CampaignRow {
        /// The id.
        id: String => left "ID" by |row| beginning(&row.id, row.id_length),
        /// The name that its plan gives it.
        name: String => left "NAME",
        /// When it began, Unix time in nanoseconds.
        started_unix_ns: Wall => left "STARTED" by |row| when::at(row.started_unix_ns, row.offset),
        /// `running`, `complete`, `interrupted` or `failed`.
        status: String => left "STATUS" by |row| match &row.way_on {
            Some(command) => format!("{} ({command})", row.status),
            None => row.status.clone(),
        },
        /// How many scenarios it has.
        scenarios: u64 => right "SCENARIOS",
        /// How many blocks are planned.
        blocks: u32 => right "BLOCKS",
        /// How many experiments were begun.
        experiments: u64 => right "EXPERIMENTS",
        ; shown
        /// How much of the id is shown.
        id_length: usize,
        /// The time zone of times.
        offset: UtcOffset,
        /// The command by which an interrupted campaign goes on.
        way_on: Option<String>,
    }
}

crate::rows! {
    /// An experiment of a campaign.
    pub struct ExperimentRow {
        /// The id.
        id: String => left "ID" by |row| beginning(&row.id, row.id_length),
        /// When it began, Unix time in nanoseconds.
        started_unix_ns: Wall => left "STARTED" by |row| when::at(row.started_unix_ns, row.offset),
        /// The block, from 0.
        block: u32 => right "BLOCK" by |row| block(row.block),
        /// The attempt, from 0.
        attempt: u32 => right "TRY" by |row| block(row.attempt),
        /// The scenario's label: all that it fixes.
        scenario: String => left "SCENARIO" by |row| row.scenario_shown.clone(),
        /// `running`, `complete`, `interrupted` or `failed`.
        status: String => left "STATUS",
        /// How many messages were sent or should have been; 0 of a transfer.
        messages: u64 => right "N" by |row| {
            if row.is_transfer { "-".to_owned() } else { row.messages.to_string() }
        },
        /// How many had no reply in time.
        lost: u64 => right "LOST" by |row| match row.lost {
            _ if row.is_transfer => "-".to_owned(),
            0 => "0".to_owned(),
            lost => format!("{lost} ({})", share(lost, row.messages)),
        },
        /// The median response time in nanoseconds; lost messages count as slower than all others.
        response_p50_ns: Option<Span> => right "P50" by |row| row.p50.to_string(),
        /// Warnings, separated by semicolons.
        warnings: String => left "FLAGS",
        ; shown
        /// How much of the id is shown.
        id_length: usize,
        /// The time zone of times.
        offset: UtcOffset,
        /// The scenario's label without what all scenarios share.
        scenario_shown: String,
        /// The median, or why there is none.
        p50: P50,
        /// Whether it is of a transfer, which has no messages.
        is_transfer: bool,
    }
}

/// A block as people count them, from 1.
pub(super) fn block(block: u32) -> String {
    (u64::from(block) + 1).to_string()
}

/// A part of a whole in percent.
#[expect(clippy::cast_precision_loss, reason = "display")]
pub fn share(part: u64, whole: u64) -> String {
    format!("{:.2} %", part as f64 * 100.0 / whole.max(1) as f64)
}

crate::rows! {
    /// An experiment that `neph tidy` reduces.
    pub struct TidyRow {
        /// Its id.
        experiment: ExperimentId => left "EXPERIMENT" by |row| row.experiment.to_string(),
        /// The name of its campaign.
        campaign: String => left "CAMPAIGN",
        /// When it ended.
        ended_unix_ns: Option<Wall> => left "ENDED" by |row| {
            row.ended_unix_ns.map_or_else(|| "-".to_owned(), crate::when::utc)
        },
        /// How many messages it has.
        messages: u64 => right "MESSAGES",
        /// `messages to minutes`: a histogram for each minute replaces its messages; `minutes removed`: its counts
        /// are left.
        action: &'static str => left "ACTION",
    }
}
