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
    /// [default: last; with --experiment: the campaign of that experiment]
    campaign: Option<String>,
    #[command(flatten)]
    workspace: Workspace,
    /// Format of the output file
    #[arg(long, value_enum)]
    format: FileFormat,
    /// Output file, or '-' for standard output (not for parquet). latency-tester needs a new folder, or
    /// with --experiment a file
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
    /// Export instead the path changes that this detector finds in fleets; one row per change
    #[arg(long, value_enum, value_name = "DETECTOR", conflicts_with = "flows")]
    changes: Option<changes::ChangeDetector>,
    /// Export the transfers that `neph flows --transfers` made instead, one row per transfer
    #[arg(long, conflicts_with_all = ["flows", "changes"])]
    transfers: bool,
    /// Export time series recorded in experiments (CPU, interfaces, TCP statistics) instead, one row
    /// per value
    #[arg(long, conflicts_with_all = ["flows", "changes", "transfers"])]
    samples: bool,
    /// Export the pings sent between blocks (each contains every scenario once) instead, one row per ping
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
struct ExportRequest {
    format: FileFormat,
    content: ExportContent,
}

/// The selected experiments.
struct Selection {
    campaign: Campaign,
    experiments: Vec<Experiment>,
    /// The number of omitted experiments: not complete, and not requested.
    omitted_count: usize,
}

/// Exports.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    args.check_format()?;
    let is_standard_output = args.output.as_os_str() == "-";
    if is_standard_output {
        args.check_standard_output()?;
    }
    let store = args.workspace.read()?;
    let selection = args.select(store.as_ref())?;
    let row_count = if is_standard_output {
        let mut out = output::data();
        let result = write_rows(store.as_ref(), &selection, args.request(), &mut out);
        let row_count = result.map_err(|error| match error {
            StoreError::Output { source, .. } => source.into(),
            other => Failure::refused(other),
        })?;
        out.flush()?;
        row_count
    } else {
        write_to_path(store.as_ref(), &selection, args)?
    };
    output::say(&export_summary(row_count, &selection, args));
    if args.request().content == ExportContent::SingleFlows && selection.has_fleets() {
        output::say("neph export: fleets were measured too; --flows writes their messages");
    }
    Ok(if row_count > 0 || selection.allows_no_rows(args) {
        Outcome::Done
    } else {
        Outcome::Nothing
    })
}

impl Selection {
    fn has_fleets(&self) -> bool {
        self.experiments.iter().any(|run| run.fleet.is_some())
    }

    /// No path change is a valid result.
    fn allows_no_rows(&self, args: &Args) -> bool {
        matches!(args.request().content, ExportContent::Changes(_)) && self.has_fleets()
    }
}

impl Args {
    const fn request(&self) -> ExportRequest {
        let content = match self.changes {
            Some(detector) => ExportContent::Changes(detector),
            None if self.transfers => ExportContent::Transfers,
            None if self.samples => ExportContent::Samples,
            None if self.pings => ExportContent::Pings,
            None if self.flows => ExportContent::Fleets,
            None => ExportContent::SingleFlows,
        };
        ExportRequest {
            format: self.format,
            content,
        }
    }

    fn check_format(&self) -> Result<(), Failure> {
        let ExportRequest { format, content } = self.request();
        let reason = match (format, content) {
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

    fn select(&self, store: &dyn Store) -> Result<Selection, Failure> {
        let name = self.campaign.as_deref();
        if let Some(id) = &self.experiment {
            let (campaign, experiment) = experiment(store, name, id)?;
            return Ok(Selection {
                experiments: vec![experiment],
                campaign,
                omitted_count: 0,
            });
        }
        let campaign = campaign(store, name.unwrap_or(LAST))?;
        let mut experiments = store.experiments(campaign.id)?;
        let total = experiments.len();
        experiments.retain(|experiment| {
            self.everything || experiment.status == ExperimentStatus::Complete
        });
        Ok(Selection {
            omitted_count: total - experiments.len(),
            campaign,
            experiments,
        })
    }
}

fn export_summary(row_count: u64, selection: &Selection, args: &Args) -> String {
    let row_noun = match args.request().content {
        ExportContent::SingleFlows | ExportContent::Fleets => "message",
        ExportContent::Changes(_) => "path change",
        ExportContent::Transfers => "transfer",
        ExportContent::Samples => "sample",
        ExportContent::Pings => "ping",
    };
    let is_written = row_count > 0 || selection.allows_no_rows(args);
    let is_file = args.output.as_os_str() != "-";
    let negation = if is_written || !is_file {
        ""
    } else {
        ": nothing is"
    };
    let (row_text, campaign) = (counted(row_count, row_noun), &selection.campaign.name);
    let output = args.output.display();
    if args.pings {
        // Pings belong to no experiment, so none is omitted.
        return format!("neph export: {row_text} of '{campaign}'{negation} written to {output}");
    }
    let experiments = counted(selection.experiments.len() as u64, "experiment");
    let mut line = format!(
        "neph export: {row_text} of {experiments} of '{campaign}'{negation} written to {output}"
    );
    match selection.omitted_count {
        0 => {}
        1 => line.push_str("; 1 that is not complete left out (--everything takes it)"),
        several => line.push_str(&format!(
            "; {several} that are not complete left out (--everything takes them)"
        )),
    }
    line
}

fn write_to_path(store: &dyn Store, selection: &Selection, args: &Args) -> Result<u64, Failure> {
    let path = &args.output;
    if args.is_folder() {
        return write_to_folder(store, selection, path);
    }
    let failure = |error: &io::Error| sink::failure(path, error);
    let file = WholeFile::at(path, args.force.existing()).map_err(|error| failure(&error))?;
    let row_count =
        write_file(store, selection, args.request(), &file).map_err(|error| match error {
            StoreError::Output { source, .. } => failure(&source),
            StoreError::File { path, source, .. } if path == file.temporary() => failure(&source),
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
    if row_count > 0 || selection.allows_no_rows(args) {
        file.finish().map_err(|error| failure(&error))?;
    }
    Ok(row_count)
}

/// The folder must be new or empty: files of an earlier export would be read with these.
fn write_to_folder(store: &dyn Store, selection: &Selection, path: &Path) -> Result<u64, Failure> {
    let to_failure = |error: io::Error| sink::failure(path, &error);
    let is_new = !path.is_symlink()
        && match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
    if !is_new {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path} is there already; give the name of a new folder"
        )));
    }
    let staging = alongside(path).map_err(to_failure)?;
    fs::create_dir(&staging).map_err(to_failure)?;
    let result =
        export_latency_tester_folder(store, &selection.campaign, &selection.experiments, &staging)
            .map_err(Failure::refused)
            .and_then(|rows| match rows {
                0 => Ok(0),
                _ => fs::rename(&staging, path)
                    .map_err(to_failure)
                    .map(|()| rows),
            });
    if !matches!(result, Ok(1..)) {
        // This process created it: no folder of that name existed before.
        let _ = fs::remove_dir_all(&staging);
    }
    result
}

/// Writes all rows to `file`.
fn write_file(
    store: &dyn Store,
    selection: &Selection,
    request: ExportRequest,
    file: &WholeFile,
) -> Result<u64, StoreError> {
    let experiments = &selection.experiments[..];
    if request.format == FileFormat::Parquet {
        return match request.content {
            ExportContent::Fleets => export_fleet_parquet(store, experiments, file),
            ExportContent::SingleFlows => export_parquet(store, experiments, file),
            content => unreachable!("{content:?} is not written as Parquet"),
        };
    }
    let output_error = |source| StoreError::Output {
        format: "file",
        source,
    };
    let mut out = BufWriter::new(file.file().map_err(output_error)?);
    let row_count = write_rows(store, selection, request, &mut out)?;
    out.flush().map_err(output_error)?;
    Ok(row_count)
}

fn write_rows(
    store: &dyn Store,
    selection: &Selection,
    request: ExportRequest,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let experiments = &selection.experiments[..];
    let ExportRequest { format, content } = request;
    match content {
        ExportContent::Changes(detector) => {
            return changes::write(store, experiments, format, detector, out);
        }
        ExportContent::Transfers => return transfers::write(store, experiments, format, out),
        ExportContent::Samples => return samples::write(store, experiments, format, out),
        ExportContent::Pings => return pings::write(store, &selection.campaign, format, out),
        ExportContent::SingleFlows | ExportContent::Fleets => {}
    }
    match (format, experiments) {
        (FileFormat::Csv, _) if content == ExportContent::Fleets => {
            export_fleet_csv(store, experiments, out)
        }
        (FileFormat::Jsonl, _) if content == ExportContent::Fleets => {
            export_fleet_jsonl(store, experiments, out)
        }
        (FileFormat::Csv, _) => export_csv(store, experiments, out),
        (FileFormat::Jsonl, _) => export_jsonl(store, experiments, out),
        (FileFormat::LatencyTester, [experiment]) => {
            export_latency_tester_csv(store, experiment, out)
        }
        (FileFormat::LatencyTester, _) => {
            unreachable!("several experiments become a folder")
        }
        (FileFormat::Parquet, _) => unreachable!("a Parquet file is written by its path"),
    }
}
