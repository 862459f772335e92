//! Plans and campaigns at the command line: check, plan, run, resume.

mod acknowledge;
mod alarm_reporter;
mod check;
mod cut_off;
mod external_objects;
mod lab_topologies;
mod locked_congestion;
mod plan_executor;
mod power;
mod preview;
mod progress;
mod reachability;
mod real_clock;
mod run;
mod status;
mod unfinished;

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_campaign::{Plan, period, plan};
use neph_model::Campaign;
use neph_text::{Problems, Source};

pub(crate) use check::run as check;
pub(crate) use lab_topologies::LabTopology;
use lab_topologies::TopologyError;
pub(crate) use plan_executor::check_agents;
pub(crate) use preview::run as preview;
pub(crate) use run::{ResumeArgs, RunArgs, Settings, carry_out, resume, run};

use crate::exit::Failure;
use crate::workspace::Workspace;
use crate::{output, report, text_file};

/// Options of `neph check` and `neph plan`.
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    /// Plan file (TOML) that describes what to measure, or a settings file (YAML) of the program
    /// Latency Tester
    pub(crate) plan: PathBuf,
}

/// Options of `neph plan`.
#[derive(Debug, ClapArgs)]
pub(crate) struct PreviewArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) power: power::PowerArgs,
    /// Print the links that several circuits (site to endpoint) of the plan share, as found in the
    /// traceroutes of this earlier campaign
    #[arg(long, value_name = "CAMPAIGN")]
    pub(crate) traces: Option<String>,
    #[command(flatten)]
    pub(crate) workspace: Workspace,
}

/// A plan and its source text.
pub(crate) struct PlanSource {
    pub(crate) source: Source,
    pub(crate) plan: Plan,
    /// The topologies of its lab; none without a lab, several if seasons have different ones.
    pub(crate) lab_topologies: Vec<LabTopology>,
}

impl PlanSource {
    /// Returns the plan, unless `check` finds problems.
    fn validate_with(self, check: impl Fn(&Self, &Problems<'_>)) -> Result<Self, Failure> {
        let problems = Problems::new(&self.source);
        check(&self, &problems);
        match problems.verdict(Some(())) {
            Ok(()) => Ok(self),
            Err(mistakes) => Err(Failure::Text(self.source, mistakes)),
        }
    }
}

/// Reads a plan file for a new campaign.
pub(crate) fn load_plan(path: &Path) -> Result<PlanSource, Failure> {
    let path_hint = "write its path as seen from this folder; plans/ in the source has examples";
    parse_plan(text_file::read(text_file::PLAN, path, path_hint)?)
}

/// Reads a plan from its text, and its topology files. Reports before any measurement: missing
/// objects, and figures that the report cannot draw.
pub(crate) fn parse_plan(source: Source) -> Result<PlanSource, Failure> {
    let check_source = |plan: &Plan, problems: &Problems<'_>| {
        external_objects::check(plan, problems);
        report::check_figures(&plan.plot, problems);
    };
    let plan_source = parse_with_topologies(source, &check_source, |_, file| {
        crate::topology::load(&file)
    })?;
    plan_source.validate_with(|plan_source, problems| {
        check_source(&plan_source.plan, problems);
        external_objects::check_sites(&plan_source.plan, &plan_source.lab_topologies, problems);
        locked_congestion::check(plan_source, problems);
        reachability::check(plan_source, problems);
        period::check(&plan_source.plan, problems);
    })
}

/// The text of a topology file that was stored with a campaign; `None` if it was not. The text of a
/// plan's only topology has no name.
pub(crate) fn stored_topology_text<'c>(campaign: &'c Campaign, file: &str) -> Option<&'c str> {
    let topology_text = campaign.topology_text.as_deref()?;
    lab_topologies::find_stored(topology_text, file)
        .or_else(|| lab_topologies::is_single(topology_text).then_some(topology_text))
}

/// Reads the plan of a campaign, and the stored topology: later changes of the files have no
/// effect. The report lists figures that this version does not know.
fn parse_stored_plan(campaign: &Campaign) -> Result<PlanSource, Failure> {
    let source = Source::new(campaign.plan_path.clone(), campaign.plan_text.clone());
    let plan_source = parse_with_topologies(
        source,
        &external_objects::check,
        |file_name, file| {
            let name = file.display().to_string();
            if let Some(text) = &campaign.topology_text {
                let topology_source = lab_topologies::find_stored(text, file_name).unwrap_or(text);
                return Ok(Source::new(name, topology_source.to_owned()));
            }
            output::say(&format!(
                "neph: campaign {} was begun by a version that kept no topology: {name} is read as it \
             is now",
                campaign.name
            ));
            crate::topology::load(&file)
        },
    )?;
    plan_source.validate_with(|plan_source, problems| {
        external_objects::check(&plan_source.plan, problems);
        external_objects::check_sites(&plan_source.plan, &plan_source.lab_topologies, problems);
    })
}

/// Reads a plan, and its topologies through `load`. If the plan has mistakes, those found by
/// `check` and in its lab are added; otherwise the caller checks these.
fn parse_with_topologies(
    source: Source,
    check: plan::ExtraChecks<'_>,
    load: impl Fn(&str, PathBuf) -> Result<Source, String>,
) -> Result<PlanSource, Failure> {
    let plan = match plan::read_with(&source, &|plan, problems| {
        if problems.is_empty() {
            return;
        }
        check(plan, problems);
        match lab_topologies::read(plan, &load) {
            Ok(lab_topologies) => external_objects::check_sites(plan, &lab_topologies, problems),
            Err(TopologyError::File(fault)) => problems.add(fault.span, fault.value),
            // These mistakes are shown if the plan itself has none.
            Err(TopologyError::Mistakes(..)) => (),
        }
    }) {
        Ok(plan) => plan,
        Err(problems) => return Err(Failure::Text(source, problems)),
    };
    match lab_topologies::read(&plan, load) {
        Ok(lab_topologies) => Ok(PlanSource {
            source,
            plan,
            lab_topologies,
        }),
        Err(error) => Err(error.failure(source)),
    }
}
