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
use neph_lab::Topology;
use neph_model::Campaign;
use neph_text::Source;

pub(crate) use check::run as check;
pub(crate) use preview::run as preview;
pub(crate) use run::{ResumeArgs, RunArgs, Settings, carry_out, resume, run};

use crate::exit::Failure;
use crate::{output, report};

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
    /// The topology of its lab, and that one's text.
    pub(crate) topology: Option<(Topology, Source)>,
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

/// Reads a plan from its text, and the topology file that it names.
pub(crate) fn understand(source: Source) -> Result<Read, Failure> {
    read_both(source, |file| crate::topology::load(&file))
}

/// Reads the plan of a campaign, and the topology that was kept with it: files that were changed
/// since change nothing.
fn understand_kept(campaign: &Campaign) -> Result<Read, Failure> {
    let source = Source::new(campaign.plan_path.clone(), campaign.plan_text.clone());
    read_both(source, |file| {
        let name = file.display().to_string();
        if let Some(text) = &campaign.topology_text {
            return Ok(Source::new(name, text.clone()));
        }
        output::say(&format!(
            "neph: campaign {} was begun by a version that kept no topology: {name} is read as it \
             is now",
            campaign.name
        ));
        crate::topology::load(&file)
    })
}

/// Reads a plan, and the topology that it names from where `load` finds it.
fn read_both(
    source: Source,
    load: impl FnOnce(PathBuf) -> Result<Source, Failure>,
) -> Result<Read, Failure> {
    let plan = match plan::read(&source) {
        Ok(plan) => plan,
        Err(problems) => return Err(Failure::Text(source, problems)),
    };
    let topology = match &plan.lab {
        None => None,
        Some(lab) => {
            let folder = Path::new(&plan.path).parent();
            let file = folder.map_or_else(PathBuf::new, Path::to_path_buf);
            let loaded = load(file.join(&lab.topology))?;
            Some(crate::topology::understand(loaded)?)
        }
    };
    Ok(Read {
        source,
        plan,
        topology,
    })
}
