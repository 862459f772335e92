//! `neph lab plan`: everything that bringing a topology up would do, before it is done.

use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_lab::{Lab, Recording, Step, UpOptions};

use super::{failure, name_of};
use crate::exit::{Failure, Outcome};
use crate::sheet::{Cell, Column, Format, Sheet};
use crate::{approval, output, topology};

/// Options of `neph lab plan`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// The topology file
    file: PathBuf,
    /// The lab's name; by default made from the file's
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// With the records that neph lab up would write in this folder
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// How to write the steps
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Writes the steps, neighbours in the same namespace under one heading.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let topology = topology::read(&args.file)?;
    let name = name_of(args.name.as_deref(), &args.file);
    let mut options = UpOptions::named(name);
    options.truth = args.record.clone().map(|folder| Recording {
        folder,
        every: NonZeroU32::MIN,
    });
    approval::note(&args.file.display().to_string(), [&topology]);
    let steps = Lab::plan(&topology, &options).map_err(failure)?;
    let mut out = output::data();
    if args.format == Format::Text {
        for alike in steps.chunk_by(|a, b| a.namespace == b.namespace) {
            writeln!(out, "# {}", alike[0].namespace)?;
            for step in alike {
                writeln!(out, "{}", step.line)?;
            }
        }
    } else {
        sheet(&steps).write(args.format, &mut out)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn sheet(steps: &[Step]) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("NAMESPACE", "namespace"),
        Column::left("STEP", "step"),
    ]);
    let row = |step: &Step| vec![Cell::text(&step.namespace), Cell::text(&step.line)];
    sheet.rows = steps.iter().map(row).collect();
    sheet
}
