//! Result of an import, and the problems in its files.

use std::path::{Path, PathBuf};

use neph_model::{CampaignId, ExperimentId};

/// Maximum number of listed problems; all are counted.
const MAX_LISTED_PROBLEMS: usize = 100;

/// Part of a file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1; `None` if the problem concerns the whole file.
    pub line: Option<u64>,
    /// What is wrong, and how the import handled it.
    pub message: String,
}

/// A raw-data file that became an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedExperiment {
    /// The experiment.
    pub id: ExperimentId,
    /// The raw-data file.
    pub path: PathBuf,
    /// Its messages.
    pub messages: u64,
    /// Messages with an acknowledgement in a tshark report.
    pub acknowledged: u64,
    /// Retransmitted segments during the experiment, from a tshark report.
    pub retransmissions: u64,
    /// Pings during the experiment.
    pub pings: u64,
    /// Rows of TCP statistics during the experiment.
    pub tcp_rows: u64,
}

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// The new campaign.
    pub campaign: Option<CampaignId>,
    /// Its experiments, in order of time.
    pub experiments: Vec<ImportedExperiment>,
    /// Pings outside of all experiments, stored as pings between experiments.
    pub pings_outside: u64,
    /// Acknowledgements of no message (handshakes, other connections), not stored.
    pub acknowledgements_outside: u64,
    /// Throughput checks by iperf3.
    pub throughputs: u64,
    /// Routes by traceroute.
    pub traceroutes: u64,
    /// Rows of TCP statistics outside of all experiments, not stored.
    pub tcp_rows_outside: u64,
    /// Files of no known kind.
    pub ignored: Vec<PathBuf>,
    /// The first problems, in order of reading.
    pub problems: Vec<Problem>,
    /// Number of all problems.
    pub problem_count: u64,
}

impl ImportReport {
    pub(super) fn add_problem(
        &mut self,
        path: &Path,
        line: Option<u64>,
        message: impl Into<String>,
    ) {
        self.problem_count += 1;
        if self.problems.len() < MAX_LISTED_PROBLEMS {
            self.problems.push(Problem {
                path: path.to_owned(),
                line,
                message: message.into(),
            });
        }
    }
}
