//! The rows of `neph list`.

use std::collections::BTreeMap;

use neph_model::{ExperimentId, Span, UtcOffset, Wall};

use super::id_prefix;
use super::quantities::QuantityRow;
use crate::p50::P50;
use crate::wall_time;

crate::rows! {
    /// A campaign of a workspace.
    pub struct CampaignRow {
        /// Id of the campaign.
        id: String => left "ID" by |row| id_prefix(&row.id, row.id_length),
        /// Name of the campaign, from its plan.
        name: String => left "NAME",
        /// When it began.
        started_unix_ns: Wall => left "STARTED" by |row| {
            wall_time::local_text(row.started_unix_ns, row.offset)
        },
        /// Status: `running`, `complete`, `interrupted`, `incomplete` or `imported`.
        status: String => left "STATUS" by |row| match &row.resume_command {
            Some(command) => format!("{} ({command})", row.status),
            None => row.status.clone(),
        },
        /// Number of scenarios.
        scenarios: u64 => right "SCENARIOS",
        /// Number of planned blocks.
        blocks: u32 => right "BLOCKS",
        /// Number of experiments that began.
        experiments: u64 => right "EXPERIMENTS" by |row| experiments_text(row),
        ; shown
        /// Number of experiments that are not complete, by status.
        incomplete: BTreeMap<&'static str, u64>,
        /// Number of characters of the id that are shown.
        id_length: usize,
        /// Time zone in which times are shown.
        offset: UtcOffset,
        /// Command that resumes an interrupted campaign.
        resume_command: Option<String>,
    }
}

/// The number of complete experiments, and of the others by status.
fn experiments_text(row: &CampaignRow) -> String {
    let complete = row.experiments - row.incomplete.values().sum::<u64>();
    if row.incomplete.is_empty() {
        return complete.to_string();
    }
    let others = row.incomplete.iter();
    let others: Vec<String> = others
        .map(|(status, count)| format!("{count} {status}"))
        .collect();
    format!("{complete} (and {})", others.join(", "))
}

crate::rows! {
    /// An experiment of a campaign.
    pub struct ExperimentRow {
        /// Id of the experiment.
        id: String => left "ID" by |row| id_prefix(&row.id, row.id_length),
        /// When it began.
        started_unix_ns: Wall => left "STARTED" by |row| {
            wall_time::local_text(row.started_unix_ns, row.offset)
        },
        /// The block, from 0.
        block: u32 => right "BLOCK" by |row| one_based(row.block),
        /// Number of earlier attempts of the scenario in the block: 0 for the first attempt.
        attempt: u32 => right "TRY" by |row| one_based(row.attempt),
        /// Label of the scenario, with all parameters.
        scenario: String => left "SCENARIO" by |row| row.scenario_shown.clone(),
        /// Status: `running`, `complete`, `interrupted` or `failed`.
        status: String => left "STATUS",
        /// Number of messages; 0 for a transfer.
        messages: u64 => right "N" by |row| {
            if row.is_transfer { "-".to_owned() } else { row.messages.to_string() }
        },
        /// Messages without a reply in time.
        lost: u64 => right "LOST" by |row| {
            let counted = |count: u64| format!("{count} ({})", share(count, row.messages));
            match (row.lost, row.errors) {
                _ if row.is_transfer => "-".to_owned(),
                (0, 0) => "0".to_owned(),
                (lost, 0) => counted(lost),
                (lost, errors) => format!("{lost}, errors {}", counted(errors)),
            }
        },
        /// Median response time; lost messages count as slower than all others. null if they decide
        /// it, or with too few messages.
        response_p50_ns: Option<Span> => right "P50 OR RESULT" by |row| match &row.transfer_result {
            Some(result) => result.clone(),
            None => row.p50.to_string(),
        },
        /// Warnings, separated by semicolons.
        warnings: String => left "FLAGS",
        /// Results of a transfer; absent if it measured messages.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        quantities: Vec<QuantityRow>,
        /// Messages with an unexpected answer; absent if there is none.
        #[serde(skip_serializing_if = "is_zero")]
        errors: u64,
        ; shown
        /// Number of characters of the id that are shown.
        id_length: usize,
        /// Time zone in which times are shown.
        offset: UtcOffset,
        /// Label of the scenario without the parts that all scenarios share.
        scenario_shown: String,
        /// The median, or why there is none.
        p50: P50,
        /// Whether it measures a transfer, which has no messages.
        is_transfer: bool,
        /// The most important results of a complete transfer, in one line.
        transfer_result: Option<String>,
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A number as shown, from 1.
pub(super) fn one_based(index: u32) -> String {
    (u64::from(index) + 1).to_string()
}

/// A part of a whole in percent.
#[expect(clippy::cast_precision_loss, reason = "display")]
pub fn share(part: u64, total: u64) -> String {
    format!("{:.2} %", part as f64 * 100.0 / total.max(1) as f64)
}

crate::rows! {
    /// An experiment that `neph tidy` reduces.
    pub struct TidyRow {
        /// Id of the experiment.
        experiment: ExperimentId => left "EXPERIMENT" by |row| row.experiment.to_string(),
        /// Name of its campaign.
        campaign: String => left "CAMPAIGN",
        /// When it ended; null if not known.
        ended_unix_ns: Option<Wall> => left "ENDED" by |row| {
            row.ended_unix_ns.map_or_else(|| "-".to_owned(), crate::wall_time::utc)
        },
        /// Number of messages.
        messages: u64 => right "MESSAGES",
        /// `messages to minutes`: a histogram for each minute replaces its messages. `minutes
        /// removed`: the histograms are removed, its counts remain.
        action: &'static str => left "ACTION",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_experiments_are_counted_separately() {
        let row = |incomplete: &[(&'static str, u64)]| CampaignRow {
            id: "x".to_owned(),
            name: "p".to_owned(),
            started_unix_ns: Wall::from_unix_nanos(0),
            status: "complete".to_owned(),
            scenarios: 1,
            blocks: 1,
            experiments: 13,
            incomplete: incomplete.iter().copied().collect(),
            id_length: 8,
            offset: UtcOffset::default(),
            resume_command: None,
        };
        assert_eq!(experiments_text(&row(&[])), "13");
        let others = row(&[("interrupted", 1), ("failed", 2)]);
        assert_eq!(
            experiments_text(&others),
            "10 (and 2 failed, 1 interrupted)"
        );
    }
}
