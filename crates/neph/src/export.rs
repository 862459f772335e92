//! `neph export`: a campaign's messages as CSV, JSON lines, Parquet, or a Latency Tester's folder.
//!
//! A file or folder gets its final name only when it is complete.

mod changes;
mod pings;
mod rows;
mod samples;
mod transfers;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use neph_model::{Campaign, Experiment, ExperimentStatus};
use neph_store::{
    Store, StoreError, export_csv, export_fleet_csv, export_fleet_jsonl, export_fleet_parquet,
    export_jsonl, export_latency_tester_csv, export_latency_tester_folder, export_parquet,
};
use neph_text::{WholeFile, alongside};

use crate::exit::{Failure, Outcome};
use crate::sink::Force;
use crate::workspace::Workspace;
use crate::{output, sink};
use neph_store::find::{LAST, campaign, experiment};
use neph_text::counted::counted;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FileFormat {
    /// CSV: one line per message, with one column per stage of its latency
    Csv,
    /// JSON lines: one JSON object per message
    Jsonl,
    /// Parquet: one row per message, with the columns of docs/schema.md
    Parquet,
    /// Output folder as the program Latency Tester writes it: one file per experiment, only messages
    /// with a reply
    LatencyTester,
}

/// Options of `neph export`.
#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// Campaign (one run of a plan) to export: its id or the beginning of it, its name, or 'last'
    #[arg(default_value = LAST)]
    campaign: String,
    #[command(flatten)]
    workspace: Workspace,
    /// Format of the output file
    #[arg(long, value_enum)]
    format: FileFormat,
    /// Output file, or '-' for standard output (not with parquet); for latency-tester a new folder, or
    /// a file with --experiment
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
    /// Export only the experiment with this id, or beginning of an id, as `neph list CAMPAIGN` prints it
    #[arg(long, value_name = "ID")]
    experiment: Option<String>,
    /// Also export experiments that were interrupted, failed or are still running; column 'status' has
    /// the state
    #[arg(long)]
    everything: bool,
    /// Export the messages of fleets (many flows from one source) instead, one row per message
    #[arg(long)]
    flows: bool,
    /// Export the path changes of flows in fleets instead, as this detector finds them; one row per change
    #[arg(long, value_enum, value_name = "DETECTOR", conflicts_with = "flows")]
    changes: Option<changes::ChangeDetector>,
    /// Export the transfers that `neph flows --transfers` made instead, one row per transfer
    #[arg(long, conflicts_with_all = ["flows", "changes"])]
    transfers: bool,
    /// Export time series recorded in experiments (CPU, interfaces, TCP statistics) instead, one row
    /// per value
    #[arg(long, conflicts_with_all = ["flows", "changes", "transfers"])]
    samples: bool,
    /// Export the pings sent between blocks (passes over all scenarios) instead, one row per ping
    #[arg(long, conflicts_with_all = ["flows", "changes", "transfers", "samples", "experiment"])]
    pings: bool,
}

/// The content of the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExportContent {
    /// Messages of single flows: the main flow, ICMP echo.
    SingleFlows,
    Fleets,
    /// Path changes that a detector finds in messages of fleets.
    Changes(changes::ChangeDetector),
    /// Transfers on the source ports of latency classes of fleets.
    Transfers,
    /// Time series of experiments.
    Samples,
    /// Pings between blocks.
    Pings,
}

/// Content and format of the export.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    format: FileFormat,
    of: ExportContent,
}

/// The selected experiments.
struct Chosen {
    campaign: Campaign,
    experiments: Vec<Experiment>,
    /// The number of omitted experiments: not complete, and not requested.
    left_out: usize,
}

/// Exports.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    args.check_format()?;
    let to_standard_output = args.output.as_os_str() == "-";
    if to_standard_output {
        args.check_standard_output()?;
    }
    let store = args.workspace.read()?;
    let chosen = args.choose(store.as_ref())?;
    let rows = if to_standard_output {
        let mut out = output::data();
        let written = write(store.as_ref(), &chosen, args.wanted_content(), &mut out);
        let rows = written.map_err(|error| match error {
            StoreError::Output { source, .. } => source.into(),
            other => Failure::refused(other),
        })?;
        out.flush()?;
        rows
    } else {
        to_path(store.as_ref(), &chosen, args)?
    };
    output::say(&export_summary(rows, &chosen, args));
    if args.wanted_content().of == ExportContent::SingleFlows && chosen.has_fleets() {
        output::say("neph export: fleets were measured too; --flows writes their messages");
    }
    Ok(if rows > 0 || chosen.is_answered_by_none(args) {
        Outcome::Done
    } else {
        Outcome::Nothing
    })
}

impl Chosen {
    fn has_fleets(&self) -> bool {
        self.experiments.iter().any(|run| run.fleet.is_some())
    }

    /// No path change is a valid result.
    fn is_answered_by_none(&self, args: &Args) -> bool {
        matches!(args.wanted_content().of, ExportContent::Changes(_)) && self.has_fleets()
    }
}

impl Args {
    const fn wanted_content(&self) -> Wanted {
        let of = match self.changes {
            Some(detector) => ExportContent::Changes(detector),
            None if self.transfers => ExportContent::Transfers,
            None if self.samples => ExportContent::Samples,
            None if self.pings => ExportContent::Pings,
            None if self.flows => ExportContent::Fleets,
            None => ExportContent::SingleFlows,
        };
        Wanted {
            format: self.format,
            of,
        }
    }

    fn check_format(&self) -> Result<(), Failure> {
        let Wanted { format, of } = self.wanted_content();
        let reason = match (format, of) {
            (FileFormat::LatencyTester, ExportContent::Fleets) => {
                "the Latency Tester's format has no place for flows; write csv, jsonl or parquet"
            }
            (FileFormat::LatencyTester | FileFormat::Parquet, ExportContent::Changes(_)) => {
                "path changes are written as csv or jsonl; give --format csv"
            }
            (FileFormat::LatencyTester | FileFormat::Parquet, ExportContent::Samples) => {
                "samples are written as csv or jsonl; give --format csv"
            }
            (FileFormat::LatencyTester | FileFormat::Parquet, ExportContent::Pings) => {
                "pings between blocks are written as csv or jsonl; give --format csv"
            }
            (FileFormat::LatencyTester | FileFormat::Parquet, ExportContent::Transfers) => {
                "transfers are written as csv or jsonl; give --format csv"
            }
            _ => return Ok(()),
        };
        Err(Failure::usage(reason))
    }

    /// Rows of the Latency Tester have no experiment, so each experiment needs a separate file.
    fn is_folder(&self) -> bool {
        self.format == FileFormat::LatencyTester && self.experiment.is_none()
    }

    fn check_standard_output(&self) -> Result<(), Failure> {
        if self.format == FileFormat::Parquet {
            return Err(Failure::usage(
                "Parquet ends with its table of contents and needs a file; give --output FILE",
            ));
        }
        if self.is_folder() {
            return Err(Failure::usage(
                "the Latency Tester has a file for each experiment; give --output FOLDER, or --experiment ID for one of them",
            ));
        }
        Ok(())
    }

    fn choose(&self, store: &dyn Store) -> Result<Chosen, Failure> {
        let campaign = campaign(store, &self.campaign)?;
        if let Some(id) = &self.experiment {
            return Ok(Chosen {
                experiments: vec![experiment(store, &campaign, id)?],
                campaign,
                left_out: 0,
            });
        }
        let mut experiments = store.experiments(campaign.id)?;
        let total = experiments.len();
        experiments.retain(|experiment| {
            self.everything || experiment.status == ExperimentStatus::Complete
        });
        Ok(Chosen {
            left_out: total - experiments.len(),
            campaign,
            experiments,
        })
    }
}

fn export_summary(rows: u64, chosen: &Chosen, args: &Args) -> String {
    let row = match args.wanted_content().of {
        ExportContent::SingleFlows | ExportContent::Fleets => "message",
        ExportContent::Changes(_) => "path change",
        ExportContent::Transfers => "transfer",
        ExportContent::Samples => "sample",
        ExportContent::Pings => "ping",
    };
    let is_written = rows > 0 || chosen.is_answered_by_none(args);
    let is_file = args.output.as_os_str() != "-";
    let nothing = if is_written || !is_file {
        ""
    } else {
        ": nothing is"
    };
    let (rows, campaign) = (counted(rows, row), &chosen.campaign.name);
    let output = args.output.display();
    if args.pings {
        // Pings belong to no experiment, so none is omitted.
        return format!("neph export: {rows} of '{campaign}'{nothing} written to {output}");
    }
    let experiments = counted(chosen.experiments.len() as u64, "experiment");
    let mut line = format!(
        "neph export: {rows} of {experiments} of '{campaign}'{nothing} written to {output}"
    );
    match chosen.left_out {
        0 => {}
        1 => line.push_str("; 1 that is not complete left out (--everything takes it)"),
        several => line.push_str(&format!(
            "; {several} that are not complete left out (--everything takes them)"
        )),
    }
    line
}

fn to_path(store: &dyn Store, chosen: &Chosen, args: &Args) -> Result<u64, Failure> {
    let path = &args.output;
    if args.is_folder() {
        return to_folder(store, chosen, path);
    }
    let refused = |error: &io::Error| sink::failure(path, error);
    let file = WholeFile::at(path, args.force.existing()).map_err(|error| refused(&error))?;
    let rows =
        write_file(store, chosen, args.wanted_content(), &file).map_err(|error| match error {
            StoreError::Output { source, .. } => refused(&source),
            StoreError::File { path, source, .. } if path == file.temporary() => refused(&source),
            StoreError::Columns {
                operation,
                path: temporary,
                source,
            } if temporary == file.temporary() => Failure::refused(StoreError::Columns {
                operation,
                path: path.clone(),
                source,
            }),
            other => Failure::refused(other),
        })?;
    // Without rows, an existing file with this name is kept.
    if rows > 0 || chosen.is_answered_by_none(args) {
        file.finish().map_err(|error| refused(&error))?;
    }
    Ok(rows)
}

/// The folder must be new or empty: files of an earlier export would be read with these.
fn to_folder(store: &dyn Store, chosen: &Chosen, path: &Path) -> Result<u64, Failure> {
    let refused = |error: io::Error| sink::failure(path, &error);
    let is_free = !path.is_symlink()
        && match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
    if !is_free {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path} is there already; give the name of a new folder"
        )));
    }
    let partial = alongside(path).map_err(refused)?;
    fs::create_dir(&partial).map_err(refused)?;
    let written =
        export_latency_tester_folder(store, &chosen.campaign, &chosen.experiments, &partial)
            .map_err(Failure::refused)
            .and_then(|rows| match rows {
                0 => Ok(0),
                _ => fs::rename(&partial, path).map_err(refused).map(|()| rows),
            });
    if !matches!(written, Ok(1..)) {
        // This process created it: no folder of that name existed before.
        let _ = fs::remove_dir_all(&partial);
    }
    written
}

/// Writes all rows to `file`.
fn write_file(
    store: &dyn Store,
    chosen: &Chosen,
    wanted: Wanted,
    file: &WholeFile,
) -> Result<u64, StoreError> {
    let experiments = &chosen.experiments[..];
    if wanted.format == FileFormat::Parquet {
        return match wanted.of {
            ExportContent::Fleets => export_fleet_parquet(store, experiments, file),
            ExportContent::SingleFlows => export_parquet(store, experiments, file),
            ExportContent::Changes(_)
            | ExportContent::Transfers
            | ExportContent::Samples
            | ExportContent::Pings => {
                unreachable!("only messages are written as Parquet")
            }
        };
    }
    let unwritten = |source| StoreError::Output {
        format: "file",
        source,
    };
    let mut out = BufWriter::new(file.file().map_err(unwritten)?);
    let rows = write(store, chosen, wanted, &mut out)?;
    out.flush().map_err(unwritten)?;
    Ok(rows)
}

fn write(
    store: &dyn Store,
    chosen: &Chosen,
    wanted: Wanted,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let experiments = &chosen.experiments[..];
    let Wanted { format, of } = wanted;
    match of {
        ExportContent::Changes(detector) => {
            return changes::write(store, experiments, format, detector, out);
        }
        ExportContent::Transfers => return transfers::write(store, experiments, format, out),
        ExportContent::Samples => return samples::write(store, experiments, format, out),
        ExportContent::Pings => return pings::write(store, &chosen.campaign, format, out),
        ExportContent::SingleFlows | ExportContent::Fleets => {}
    }
    match (format, experiments) {
        (FileFormat::Csv, _) if of == ExportContent::Fleets => {
            export_fleet_csv(store, experiments, out)
        }
        (FileFormat::Jsonl, _) if of == ExportContent::Fleets => {
            export_fleet_jsonl(store, experiments, out)
        }
        (FileFormat::Csv, _) => export_csv(store, experiments, out),
        (FileFormat::Jsonl, _) => export_jsonl(store, experiments, out),
        (FileFormat::LatencyTester, [experiment]) => {
            export_latency_tester_csv(store, experiment, out)
        }
        (FileFormat::LatencyTester, _) => {
            unreachable!("several experiments are written as a folder")
        }
        (FileFormat::Parquet, _) => unreachable!("a Parquet file is written by its path"),
    }
}
