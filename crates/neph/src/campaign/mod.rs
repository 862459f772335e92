//! Plans and campaigns at the command line: check, plan, run, resume.

mod acknowledge;
mod check;
mod preview;
mod run;
mod stage;
mod unfinished;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};

use neph_campaign::{Plan, plan};
use neph_text::Source;

pub(crate) use check::run as check;
pub(crate) use preview::run as preview;
pub(crate) use run::{ResumeArgs, RunArgs, Settings, carry_out, resume, run};

use crate::exit::Failure;
use crate::report;

/// Options of `neph check` and `neph plan`.
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    /// The plan: a TOML file, or a settings file of the Latency Tester (YAML)
    pub(crate) plan: PathBuf,
}

/// A plan and the text it was read from.
pub(crate) struct Read {
    pub(crate) source: Source,
    pub(crate) plan: Plan,
}

/// Reads a plan file, from which a campaign may begin: what its report cannot draw is told before
/// anything is measured.
pub(crate) fn read(path: &Path) -> Result<Read, Failure> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("plan {name} cannot be read: {error}")))?;
    let read = understand(Source::new(name, text))?;
    match report::check_figures(&read.plan.plot, &read.source) {
        Ok(()) => Ok(read),
        Err(problems) => Err(Failure::Text(read.source, problems)),
    }
}

/// Reads a plan from its text.
pub(crate) fn understand(source: Source) -> Result<Read, Failure> {
    match plan::read(&source) {
        Ok(plan) => Ok(Read { source, plan }),
        Err(problems) => Err(Failure::Text(source, problems)),
    }
}
