//! `neph lab status`: current state of the services, traffic and links of a lab.

use std::io::Write;

use clap::Args as ClapArgs;
use neph_documents::Format;
use neph_documents::lab::LabStatusDocument;
use neph_documents::rows::write_json;
use neph_lab::Lab;

use super::enter::select_lab;
use super::failure;
use crate::exit::{Failure, Outcome};
use crate::{format, output};

/// Options of `neph lab status`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Name of the running lab, as `neph lab list` prints it; needed if several labs run
    lab: Option<String>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::DOCUMENT))]
    format: Format,
}

/// Queries the lab, and writes the status. A lab without running processes has none.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let lab = select_lab(args.lab.as_deref())?;
    let status = Lab::status(&lab.name).map_err(failure)?;
    let document = LabStatusDocument::of(&lab, &status);
    let mut out = output::data();
    if args.format == Format::Text {
        out.write_all(document.text().as_bytes())?;
    } else {
        write_json(&document, &mut out)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}
