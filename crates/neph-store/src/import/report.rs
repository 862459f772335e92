//! What an import did, and what it could not read.

use std::path::{Path, PathBuf};

use neph_model::{CampaignId, ExperimentId};

/// How many problems are told one by one; all are counted.
const REPORTED: usize = 100;

/// Something in a file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1; `None` if it concerns the file as a whole.
    pub line: Option<u64>,
    /// What is wrong with it, and what was done instead.
    pub what: String,
}

/// One raw-data file that became an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedExperiment {
    /// The experiment.
    pub id: ExperimentId,
    /// The file it came from.
    pub path: PathBuf,
    /// Its messages.
    pub messages: u64,
    /// Messages for which a tshark report tells the acknowledgement.
    pub acknowledged: u64,
    /// Retransmitted segments that a tshark report tells while it ran.
    pub retransmissions: u64,
    /// Pings while it ran.
    pub pings: u64,
    /// Rows of TCP statistics while it ran.
    pub tcp_rows: u64,
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// The campaign it became.
    pub campaign: Option<CampaignId>,
    /// Its experiments, in order of time.
    pub experiments: Vec<ImportedExperiment>,
    /// Pings that fall into no experiment: kept as pings between experiments.
    pub pings_outside: u64,
    /// Acknowledgements that fall to no message (handshakes, other connections): not kept.
    pub acknowledgements_outside: u64,
    /// Throughput checks by iperf3.
    pub throughputs: u64,
    /// Routes by traceroute.
    pub traceroutes: u64,
    /// Rows of TCP statistics that fall into no experiment: not kept.
    pub tcp_rows_outside: u64,
    /// Files that are none of the known kinds.
    pub ignored: Vec<PathBuf>,
    /// The first problems, in order of reading.
    pub problems: Vec<Problem>,
    /// How many problems there are in all.
    pub problem_count: u64,
}

impl ImportReport {
    pub(super) fn problem(&mut self, path: &Path, line: Option<u64>, what: impl Into<String>) {
        self.problem_count += 1;
        if self.problems.len() < REPORTED {
            self.problems.push(Problem {
                path: path.to_owned(),
                line,
                what: what.into(),
            });
        }
    }
}
