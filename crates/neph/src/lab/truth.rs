//! `neph lab truth`: records of links about their packets, as a summary or per packet.
//!
//! A file is read once, record by record, so the memory does not depend on its length.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_documents::Format;
use neph_documents::lab::{FlowPaths, FlowSegmentRow, RecordRow, RecordedFile, Tally, summary};
use neph_documents::rows::RowWriter;
use neph_lab::{FlowAccumulator, Record, TruthError, TruthFile};

use crate::exit::{Failure, Outcome};
use crate::{format, output};

/// Options of `neph lab truth`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Files LINK.truth of one or more links, which `neph lab up --record` writes
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Show for each flow when it took which path, and its reordered packets
    #[arg(long)]
    flows: bool,
    /// Output format: text is a summary; others list every record, or with --flows every period
    /// that a flow was on one path
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
}

/// Reads one file after the other.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut out = output::data();
    match (args.format, args.flows) {
        (Format::Text, false) => write_summaries(&args.files, &mut out)?,
        (Format::Text, true) => write_flow_texts(&args.files, &mut out)?,
        (format, has_flows) => {
            let write_rows = if has_flows {
                write_segments
            } else {
                write_records
            };
            write_all_rows(&args.files, format, write_rows, &mut out)?;
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Writes the rows of one file.
type WriteRows = fn(&Path, &mut RowWriter<'_>) -> Result<(), Failure>;

fn write_all_rows(
    files: &[PathBuf],
    format: Format,
    write_rows: WriteRows,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut rows = RowWriter::begin(format, out)?;
    let result = files
        .iter()
        .try_for_each(|path| write_rows(path, &mut rows));
    // Closes the list, so that records before a mistake can be used.
    rows.end()?;
    out.flush()?;
    result
}

fn write_records(path: &Path, rows: &mut RowWriter<'_>) -> Result<(), Failure> {
    rows.heading::<RecordRow>()?;
    let mut file = TruthFile::open(path).map_err(failure)?;
    let (name, link) = (path.display().to_string(), file.link().to_owned());
    for record in file.by_ref() {
        rows.row(&RecordRow::of(&name, &link, &record.map_err(failure)?))?;
    }
    report_truncation(path, file.cut_off());
    Ok(())
}

fn write_segments(path: &Path, rows: &mut RowWriter<'_>) -> Result<(), Failure> {
    rows.heading::<FlowSegmentRow>()?;
    let flows = read_flows(path)?;
    let name = path.display().to_string();
    flows.segments(&name).try_for_each(|row| rows.row(&row))?;
    Ok(())
}

fn write_flow_texts(files: &[PathBuf], out: &mut dyn Write) -> Result<(), Failure> {
    for (index, path) in files.iter().enumerate() {
        let flows = read_flows(path)?;
        write_separator(index, out)?;
        out.write_all(flows.text(&path.display().to_string()).as_bytes())?;
    }
    Ok(())
}

/// An empty line before each file but the first.
fn write_separator(index: usize, out: &mut dyn Write) -> io::Result<()> {
    if index > 0 { writeln!(out) } else { Ok(()) }
}

/// The flows of a link's record.
fn read_flows(path: &Path) -> Result<FlowPaths, Failure> {
    let mut file = TruthFile::open(path).map_err(failure)?;
    let mut flows = FlowAccumulator::default();
    let mut steps = 0;
    for record in file.by_ref() {
        let record = record.map_err(failure)?;
        steps += u64::from(matches!(record, Record::Step { .. }));
        flows.add_record(&record);
    }
    report_truncation(path, file.cut_off());
    Ok(FlowPaths {
        link: file.link().to_owned(),
        every: file.every(),
        flows: flows.finish().into_iter().collect(),
        steps,
    })
}

fn write_summaries(files: &[PathBuf], out: &mut dyn Write) -> Result<(), Failure> {
    for (index, path) in files.iter().enumerate() {
        write_separator(index, out)?;
        let mut file = TruthFile::open(path).map_err(failure)?;
        let mut tally = Tally::default();
        let result = file.by_ref().try_for_each(|record| {
            tally.add(&record?);
            Ok(())
        });
        let recorded_file = RecordedFile {
            path: &path.display().to_string(),
            link: file.link(),
            every: file.every(),
        };
        out.write_all(summary(&tally, recorded_file).as_bytes())?;
        result.map_err(failure)?;
        report_truncation(path, file.cut_off());
    }
    Ok(())
}

fn report_truncation(path: &Path, bytes: usize) {
    if bytes > 0 {
        output::say(&format!(
            "neph lab: {} ends within a record ({bytes} bytes of it are there): its lab was killed, \
             its disk was full, or it is still being written. The records before are complete",
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
