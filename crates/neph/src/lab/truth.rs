//! `neph lab truth`: what links wrote down about their packets, as a summary or packet by packet.
//!
//! Owns the order of reading. A file is read once, record by record: a long one needs no more
//! memory than a short one.

mod flows;
mod rows;
mod summary;
mod tally;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use neph_lab::{TruthError, TruthFile};

use crate::exit::{Failure, Outcome};
use crate::output;
use rows::Rows;
use tally::Tally;

/// How a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A summary for people
    Text,
    /// Every record, in one list
    Json,
    /// Every record, an object a line
    Ndjson,
    /// Every record, a line each
    Csv,
}

/// Options of `neph lab truth`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The records: LINK.truth of one or more links
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Flow by flow: which path each was on when, and what overtook what
    #[arg(long)]
    flows: bool,
    /// A summary, or every record; with --flows every time on a path
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Reads one file after the other.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut out = output::data();
    if args.flows {
        flows::write(&args.files, args.format, &mut out)?;
        out.flush()?;
        return Ok(Outcome::Done);
    }
    let shape = match args.format {
        Format::Text => None,
        Format::Json => Some(rows::Shape::List),
        Format::Ndjson => Some(rows::Shape::Lines),
        Format::Csv => Some(rows::Shape::Csv),
    };
    match shape {
        None => summaries(&args.files, &mut out)?,
        Some(shape) => {
            let mut rows = Rows::begin(shape, &mut out)?;
            let mut files = args.files.iter();
            let read = files.try_for_each(|path| every_record(path, &mut rows));
            // A list that was begun is closed: what was read before a mistake can be used.
            rows.end()?;
            out.flush()?;
            read?;
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn summaries(files: &[PathBuf], out: &mut dyn Write) -> Result<(), Failure> {
    for (number, path) in files.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let mut file = TruthFile::open(path).map_err(failure)?;
        let mut tally = Tally::default();
        let read = file.by_ref().try_for_each(|record| {
            tally.take(&record?);
            Ok(())
        });
        summary::write(&tally, (path, &file), out)?;
        read.map_err(failure)?;
        tell_cut(path, file.cut_off());
    }
    Ok(())
}

fn every_record(path: &Path, rows: &mut Rows<'_>) -> Result<(), Failure> {
    let mut file = TruthFile::open(path).map_err(failure)?;
    let names = (path.display().to_string(), file.link().to_owned());
    for record in file.by_ref() {
        rows.write(&names, &record.map_err(failure)?)?;
    }
    tell_cut(path, file.cut_off());
    Ok(())
}

fn tell_cut(path: &Path, bytes: usize) {
    if bytes > 0 {
        output::say(&format!(
            "neph lab: {} ends within a record ({bytes} bytes of it are there): its lab was killed, \
             its disk was full, or it is still being written; what came before is whole",
            path.display()
        ));
    }
}

fn failure(error: TruthError) -> Failure {
    match error {
        TruthError::Unreadable { .. } => Failure::Usage(format!(
            "{error}; name the LINK.truth files of neph lab up --record"
        )),
        TruthError::Damaged { .. } => Failure::refused(error),
        _ => Failure::usage(error),
    }
}
