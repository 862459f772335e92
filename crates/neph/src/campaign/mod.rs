//! Plans and campaigns at the command line: check, plan, run, resume.

mod acknowledge;
mod alarming;
mod check;
mod ground;
mod locked;
mod outside;
mod power;
mod preview;
mod reachability;
mod real_clock;
mod run;
mod scenes;
mod unfinished;
mod watch;

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_campaign::{Plan, period, plan};
use neph_model::Campaign;
use neph_text::{Problems, Source};

pub(crate) use check::run as check;
pub(crate) use ground::check_agents;
pub(crate) use preview::run as preview;
pub(crate) use run::{ResumeArgs, RunArgs, Settings, carry_out, resume, run};
pub(crate) use scenes::Scene;
use scenes::Unread;

use crate::exit::Failure;
use crate::workspace::Workspace;
use crate::{output, report, text_file};

/// Options of `neph check` and `neph plan`.
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    /// The plan: a TOML file, or a settings file of the Latency Tester (YAML)
    pub(crate) plan: PathBuf,
}

/// What `neph plan` is asked besides.
#[derive(Debug, ClapArgs)]
pub(crate) struct PreviewArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) power: power::Wanted,
    /// Print which links the plan's circuits share, by the traceroutes of this campaign
    #[arg(long, value_name = "CAMPAIGN")]
    pub(crate) traces: Option<String>,
    #[command(flatten)]
    pub(crate) workspace: Workspace,
}

/// A plan and the text it was read from.
pub(crate) struct Read {
    pub(crate) source: Source,
    pub(crate) plan: Plan,
    /// The networks of its lab; none without a lab, and several where seasons have their own.
    pub(crate) scenes: Vec<Scene>,
}

impl Read {
    /// Itself, unless `check` finds problems in it.
    fn held_against(self, check: impl Fn(&Self, &Problems<'_>)) -> Result<Self, Failure> {
        let problems = Problems::new(&self.source);
        check(&self, &problems);
        match problems.verdict(Some(())) {
            Ok(()) => Ok(self),
            Err(found) => Err(Failure::Text(self.source, found)),
        }
    }
}

/// Reads a plan file, from which a campaign may begin.
pub(crate) fn read(path: &Path) -> Result<Read, Failure> {
    let where_it_is = "write its path as seen from this folder; plans/ in the source has examples";
    understand(text_file::read(text_file::PLAN, path, where_it_is)?)
}

/// Reads a plan from its text, and the topology file that it names. Reports missing objects of the
/// plan, and figures that its report cannot draw, before anything is measured.
pub(crate) fn understand(source: Source) -> Result<Read, Failure> {
    let here = |plan: &Plan, problems: &Problems<'_>| {
        outside::check(plan, problems);
        report::check_figures(&plan.plot, problems);
    };
    let read = read_both(source, &here, |_, file| crate::topology::load(&file))?;
    read.held_against(|read, problems| {
        here(&read.plan, problems);
        outside::check_sites(&read.plan, &read.scenes, problems);
        locked::check(read, problems);
        reachability::check(read, problems);
        period::check(&read.plan, problems);
    })
}

/// The text of a topology file that was kept with a campaign; `None` where the campaign had none of that
/// name. The text of a plan's only topology has no name.
pub(crate) fn kept_topology<'c>(campaign: &'c Campaign, file: &str) -> Option<&'c str> {
    let kept = campaign.topology_text.as_deref()?;
    scenes::of_kept(kept, file).or_else(|| scenes::is_one(kept).then_some(kept))
}

/// Reads the plan of a campaign, and the topology that was kept with it: later changes of the files
/// have no effect. The report lists figures that this version does not know.
fn understand_kept(campaign: &Campaign) -> Result<Read, Failure> {
    let source = Source::new(campaign.plan_path.clone(), campaign.plan_text.clone());
    let read = read_both(source, &outside::check, |written, file| {
        let name = file.display().to_string();
        if let Some(text) = &campaign.topology_text {
            let one = scenes::of_kept(text, written).unwrap_or(text);
            return Ok(Source::new(name, one.to_owned()));
        }
        output::say(&format!(
            "neph: campaign {} was begun by a version that kept no topology: {name} is read as it \
             is now",
            campaign.name
        ));
        crate::topology::load(&file)
    })?;
    read.held_against(|read, problems| {
        outside::check(&read.plan, problems);
        outside::check_sites(&read.plan, &read.scenes, problems);
    })
}

/// Reads a plan, and the topologies that it names from where `load` finds them. The mistakes of a plan
/// that has some come with those that it has `here` and in its lab; without, its reader looks at those.
fn read_both(
    source: Source,
    here: plan::Also<'_>,
    load: impl Fn(&str, PathBuf) -> Result<Source, String>,
) -> Result<Read, Failure> {
    let plan = match plan::read_with(&source, &|plan, problems| {
        if problems.is_empty() {
            return;
        }
        here(plan, problems);
        match scenes::read(plan, &load) {
            Ok(scenes) => outside::check_sites(plan, &scenes, problems),
            Err(Unread::File(fault)) => problems.add(fault.span, fault.value),
            // They are shown when the plan has none itself.
            Err(Unread::Mistakes(..)) => (),
        }
    }) {
        Ok(plan) => plan,
        Err(problems) => return Err(Failure::Text(source, problems)),
    };
    match scenes::read(&plan, load) {
        Ok(scenes) => Ok(Read {
            source,
            plan,
            scenes,
        }),
        Err(unread) => Err(unread.failure(source)),
    }
}
