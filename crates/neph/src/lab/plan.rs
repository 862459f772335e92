//! `neph lab plan`: every step of starting a topology, before it runs.

use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_documents::lab::StepRow;
use neph_documents::{Format, rows};
use neph_lab::{Lab, Recording, UpOptions};

use super::{failure, lab_name};
use crate::exit::{Failure, Outcome};
use crate::{approval, format, output, topology};

/// Options of `neph lab plan`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Topology file (TOML): sites and links of the emulated network
    file: PathBuf,
    /// Name of the lab: a lower-case letter, then up to 15 of a-z, 0-9 and _ [default: from the name of FILE]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Also show the steps that `neph lab up --record FOLDER` adds
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
}

/// Writes the steps; adjacent steps in the same namespace share a heading.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let topology = topology::read(&args.file)?;
    let name = lab_name(args.name.as_deref(), &args.file);
    let mut options = UpOptions::with_name(name);
    options.truth = args.record.clone().map(|folder| Recording {
        folder,
        every: NonZeroU32::MIN,
    });
    approval::print_commands(&args.file.display().to_string(), [&topology]);
    let steps = Lab::plan(&topology, &options).map_err(failure)?;
    let mut out = output::data();
    if args.format == Format::Text {
        for namespace_steps in steps.chunk_by(|first, second| first.namespace == second.namespace) {
            writeln!(out, "# {}", namespace_steps[0].namespace)?;
            for step in namespace_steps {
                writeln!(out, "{}", step.line)?;
            }
        }
    } else {
        let steps: Vec<StepRow> = steps.iter().map(StepRow::from).collect();
        rows::write(&steps, args.format, &mut out)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}
