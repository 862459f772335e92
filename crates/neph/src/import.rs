//! `neph import`: a Latency Tester's output folder becomes a campaign.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_campaign::settings;
use neph_model::{ByteSize, Parameter};
use neph_store::{
    ImportReport, ImportedEndpoint, ImportedExperiment, ImportedSettings, LatencyTesterOutput,
    StoreError,
};
use neph_text::Source;

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::workspace::Workspace;
use neph_text::counted::counted;

/// Number of problems that are reported one by one; the others are counted.
const MAX_LISTED: usize = 10;

/// Options of `neph import`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Output folder of the program Latency Tester: CSV data, settings, and output of ping, iperf3 and
    /// other tools
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
    // Read before the store is opened: an empty folder must not create a workspace.
    let output = LatencyTesterOutput::read(&args.folder).map_err(|error| match error {
        StoreError::NothingToImport { .. } => Failure::usage(error),
        error => Failure::refused(error),
    })?;
    let known_settings = output
        .settings()
        .map(|(path, text)| read_settings(path, text));
    let mut store = args.workspace.write()?;
    let report = output
        .with_settings(known_settings.unwrap_or_default())
        .import_into(store.as_mut())?;
    print_report(&report, &args.workspace);
    Ok(Outcome::Done)
}

/// The settings of the results in the folder. If the file cannot be read: none, and a message.
fn read_settings(path: &Path, text: &str) -> ImportedSettings {
    let name = path.display().to_string();
    let plan = match settings::parse(&Source::new(name.clone(), text.to_owned())) {
        Ok(plan) => plan,
        Err(problems) => {
            let first_problem = problems.first().map(ToString::to_string);
            output::say(&format!(
                "{name}: its targets and sizes are not taken: {}",
                first_problem.unwrap_or_default()
            ));
            return ImportedSettings::default();
        }
    };
    let endpoints = plan.endpoints.iter().map(|endpoint| ImportedEndpoint {
        name: endpoint.name.clone(),
        destination: settings::destination(&endpoint.target),
        is_secure: endpoint.target.is_secure(),
    });
    let first_axes = plan.endpoints.first().map(|endpoint| &endpoint.axes);
    let single_size = |sizes: &Vec<ByteSize>| match sizes.as_slice() {
        [size] => Some(*size),
        _ => None,
    };
    let port = first_axes.and_then(|axes| axes.values(Parameter::source_port).next());
    ImportedSettings {
        endpoints: endpoints.collect(),
        request_size: first_axes.and_then(|axes| single_size(&axes.request_sizes)),
        response_size: first_axes.and_then(|axes| single_size(&axes.response_sizes)),
        source_port: port.copied(),
    }
}

fn print_report(report: &ImportReport, workspace: &Workspace) {
    for problem in report.problems.iter().take(MAX_LISTED) {
        let line = problem.line.map(|line| format!(":{line}"));
        let (path, line) = (problem.path.display(), line.unwrap_or_default());
        output::say(&format!("{path}{line}: {}", problem.message));
    }
    let listed_count = report.problems.len().min(MAX_LISTED) as u64;
    if report.problem_count > listed_count {
        let more_count = report.problem_count - listed_count;
        output::say(&format!("... and {more_count} more problems of this sort"));
    }
    for path in &report.ignored {
        output::say(&format!("{}: of no known kind, left out", path.display()));
    }
    let unmatched = [
        (
            report.acknowledgements_outside,
            "acknowledgements of no message",
        ),
        (
            report.tcp_rows_outside,
            "rows of TCP statistics outside every experiment",
        ),
    ];
    for (count, message) in unmatched.into_iter().filter(|(count, _)| *count > 0) {
        output::say(&format!("{count} {message}: not kept"));
    }
    output::say(&import_summary(report, workspace));
}

/// The result, with the campaign's name: `last` is the latest measured campaign, and imported ones
/// are old.
fn import_summary(report: &ImportReport, workspace: &Workspace) -> String {
    let sum = |count: fn(&ImportedExperiment) -> u64| report.experiments.iter().map(count).sum();
    let messages: u64 = sum(|imported_experiment| imported_experiment.messages);
    let mut line = format!(
        "neph import: {}, {}",
        counted(report.experiments.len() as u64, "experiment"),
        counted(messages, "message"),
    );
    for (count, noun) in [
        (
            sum(|imported_experiment| imported_experiment.acknowledged),
            "TCP acknowledgement",
        ),
        (
            sum(|imported_experiment| imported_experiment.retransmissions),
            "retransmission",
        ),
        (sum(|imported_experiment| imported_experiment.pings), "ping"),
        (report.pings_outside, "further ping"),
        (
            sum(|imported_experiment| imported_experiment.tcp_rows),
            "TCP statistics row",
        ),
        (report.throughputs, "iperf3 check"),
        (report.traceroutes, "traceroute"),
    ] {
        if count > 0 {
            line.push_str(&format!(", {}", counted(count, noun)));
        }
    }
    if let Some(id) = report.campaign {
        line.push_str(&format!(
            "; `neph report {id}{}` shows them",
            workspace.option()
        ));
    }
    line
}
