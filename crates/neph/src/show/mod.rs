//! `neph show`: everything that is known about a campaign or an experiment.

mod campaign;
mod document;
mod experiment;
mod found;
mod pings;

use std::io::Write;

use clap::{Args as ClapArgs, ValueEnum};

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::when::Zone;
use crate::workspace::{LAST, Subject, Workspace, subject};

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON document.
    Json,
}

/// Options of `neph show`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A campaign ('last', a name, an id or the beginning of one) or an experiment's id
    #[arg(default_value = LAST)]
    subject: String,
    #[command(flatten)]
    workspace: Workspace,
    /// How to write it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    zone: Zone,
}

/// Shows.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = args.workspace.read()?;
    let offset = args.zone.offset;
    let document = match subject(store.as_ref(), &args.subject)? {
        Subject::Campaign(one) => campaign::document(store.as_ref(), &one, offset)?,
        Subject::Experiment(both) => {
            experiment::document(store.as_ref(), (&both.0, &both.1), offset)?
        }
    };
    let mut out = output::data();
    match args.format {
        Format::Text => out.write_all(document.text().as_bytes())?,
        Format::Json => writeln!(out, "{:#}", document.json())?,
    }
    // Dropping the buffer would swallow a refusal.
    out.flush()?;
    Ok(Outcome::Done)
}
