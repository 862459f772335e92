//! `neph export`: a campaign's messages as CSV, JSON lines, Parquet, or a Latency Tester's CSV.
//!
//! A file appears under its name only when it is whole.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use neph_model::Experiment;
use neph_store::{
    Store, StoreError, export_csv, export_jsonl, export_latency_tester_csv, export_parquet,
};

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::workspace::{LAST, Workspace, campaign, experiment};

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line a message, a column a stage.
    Csv,
    /// A JSON object a message.
    Jsonl,
    /// The columns as they are stored.
    Parquet,
    /// The Latency Tester's three columns; replied messages only.
    LatencyTester,
}

/// Options of `neph export`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The campaign: 'last', a name, an id or the beginning of one
    #[arg(default_value = LAST)]
    campaign: String,
    #[command(flatten)]
    workspace: Workspace,
    /// What to write
    #[arg(long, value_enum)]
    format: Format,
    /// The file; '-' is standard output (not for Parquet)
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Only this experiment: its id or the beginning of one
    #[arg(long, value_name = "ID")]
    experiment: Option<String>,
}

/// Exports.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let to_standard_output = args.output.as_os_str() == "-";
    if to_standard_output && args.format == Format::Parquet {
        return Err(Failure::usage(
            "Parquet ends with its table of contents and needs a file; give --output FILE",
        ));
    }
    let store = args.workspace.read()?;
    let campaign = campaign(store.as_ref(), &args.campaign)?;
    let experiments = match &args.experiment {
        Some(id) => vec![experiment(store.as_ref(), &campaign, id)?],
        None => store.experiments(campaign.id).map_err(Failure::refused)?,
    };
    let rows = if to_standard_output {
        let mut out = output::data();
        let rows = write(store.as_ref(), &experiments, (args.format, &mut out))?;
        out.flush()?;
        rows
    } else {
        to_file(store.as_ref(), &experiments, args)?
    };
    let (count, name) = (experiments.len(), &campaign.name);
    output::say(&format!(
        "neph export: {rows} messages of {count} experiments of '{name}' written to {}",
        args.output.display()
    ));
    Ok(if rows > 0 {
        Outcome::Done
    } else {
        Outcome::Nothing
    })
}

/// Writes beside the file, then renames: whoever reads it never sees half of it.
fn to_file(store: &dyn Store, experiments: &[Experiment], args: &Args) -> Result<u64, Failure> {
    let path = &args.output;
    let Some(name) = path.file_name() else {
        let path = path.display();
        return Err(Failure::usage(format!("'{path}' names no file; give one")));
    };
    if path.is_dir() {
        let path = path.display();
        return Err(Failure::usage(format!(
            "{path} is a folder; give the name of a file in it"
        )));
    }
    let mut partial = name.to_owned();
    partial.push(".partial");
    let partial = path.with_file_name(partial);
    let written = write_partial(store, experiments, (args.format, &partial)).and_then(|rows| {
        fs::rename(&partial, path).map_err(|error| refused("rename", &partial, &error))?;
        Ok(rows)
    });
    if written.is_err() {
        // What failed is said already; a file that was never made cannot be removed.
        let _ = fs::remove_file(&partial);
    }
    written
}

fn write_partial(
    store: &dyn Store,
    experiments: &[Experiment],
    (format, path): (Format, &Path),
) -> Result<u64, Failure> {
    if format == Format::Parquet {
        return export_parquet(store, experiments, path).map_err(Failure::refused);
    }
    let file = File::create(path).map_err(|error| refused("create", path, &error))?;
    let mut out = BufWriter::new(file);
    let rows = write(store, experiments, (format, &mut out))?;
    out.flush()
        .map_err(|error| refused("write", path, &error))?;
    Ok(rows)
}

fn write(
    store: &dyn Store,
    experiments: &[Experiment],
    (format, out): (Format, &mut dyn Write),
) -> Result<u64, Failure> {
    let rows = match format {
        Format::Csv => export_csv(store, experiments, out),
        Format::Jsonl => export_jsonl(store, experiments, out),
        Format::LatencyTester => export_latency_tester_csv(store, experiments, out),
        Format::Parquet => unreachable!("a Parquet file is written by its path"),
    };
    rows.map_err(|error| match error {
        StoreError::Output { source, .. } => source.into(),
        other => Failure::refused(other),
    })
}

fn refused(operation: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::refused(format!("{operation} {}: {error}", path.display()))
}
