//! `neph import`: a Latency Tester's output folder becomes a campaign.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_store::{ImportReport, ImportedExperiment, LatencyTesterOutput, StoreError};

use crate::counted::counted;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::workspace::Workspace;

/// Problems told one by one; the rest is counted.
const TOLD: usize = 10;

/// Options of `neph import`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The folder: raw-data CSV files, tshark reports, ping texts, settings
    folder: PathBuf,
    #[command(flatten)]
    workspace: Workspace,
}

/// Imports.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if !args.folder.is_dir() {
        let folder = args.folder.display();
        return Err(Failure::usage(format!(
            "{folder} is no folder; give the output folder of a Latency Tester"
        )));
    }
    // Read first: a folder with nothing in it must not leave an empty workspace behind.
    let output = LatencyTesterOutput::read(&args.folder).map_err(|error| match error {
        StoreError::NothingToImport { .. } => Failure::usage(error),
        error => Failure::refused(error),
    })?;
    let mut store = args.workspace.write()?;
    let report = output
        .import_into(store.as_mut())
        .map_err(Failure::refused)?;
    tell(&report);
    Ok(Outcome::Done)
}

fn tell(report: &ImportReport) {
    for problem in report.problems.iter().take(TOLD) {
        let line = problem.line.map(|line| format!(":{line}"));
        let (path, line) = (problem.path.display(), line.unwrap_or_default());
        output::say(&format!("{path}{line}: {}", problem.what));
    }
    let shown = report.problems.len().min(TOLD) as u64;
    if report.problem_count > shown {
        let more = report.problem_count - shown;
        output::say(&format!("... and {more} more problems of this sort"));
    }
    for path in &report.ignored {
        output::say(&format!("{}: of no known kind, left out", path.display()));
    }
    let outside = [
        (report.pings_outside, "pings outside every experiment"),
        (
            report.acknowledgements_outside,
            "acknowledgements of no message",
        ),
    ];
    for (count, what) in outside.into_iter().filter(|(count, _)| *count > 0) {
        output::say(&format!("{count} {what}: not kept"));
    }
    output::say(&told(report));
}

/// What came of it. The campaign is named: `last` is the latest measured, and these are old.
fn told(report: &ImportReport) -> String {
    let sum = |count: fn(&ImportedExperiment) -> u64| report.experiments.iter().map(count).sum();
    let (messages, acknowledged, retransmissions, pings): (u64, u64, u64, u64) = (
        sum(|one| one.messages),
        sum(|one| one.acknowledged),
        sum(|one| one.retransmissions),
        sum(|one| one.pings),
    );
    let mut line = format!(
        "neph import: {}, {}",
        counted(report.experiments.len() as u64, "experiment"),
        counted(messages, "message"),
    );
    for (count, noun) in [
        (acknowledged, "acknowledgement"),
        (retransmissions, "retransmission"),
        (pings, "ping"),
    ] {
        if count > 0 {
            line.push_str(&format!(", {}", counted(count, noun)));
        }
    }
    if let Some(id) = report.campaign {
        line.push_str(&format!("; `neph report {id}` shows them"));
    }
    line
}
