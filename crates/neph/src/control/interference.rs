//! `neph control interference`: which circuits of a plan disturb each other, by measuring them alone and at
//! the same time.
//!
//! Owns the options. What is measured and what follows from it is neph-campaign's; a campaign carries it out.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_campaign::estimate::{estimate, in_words};
use neph_campaign::expand::scenarios;
use neph_campaign::interference::{Asked, Design, Reading, design, judge};
use neph_documents::Format;
use neph_documents::interference::InterferenceDocument;
use neph_model::{
    BitRate, ByteSize, Campaign, Experiment, ExperimentStatus, Quantity, Scenario, Span,
};
use neph_store::{Store, find};
use neph_text::Source;
use neph_text::counted::counted;

use crate::approval::Approval;
use crate::campaign::{self, Read, Settings};
use crate::exit::{Failure, Outcome};
use crate::metrics::MetricsArgs;
use crate::operator::ControllerArgs;
use crate::workspace::Workspace;
use crate::{format, output, value};

/// Options of `neph control interference`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The plan whose circuits are measured: a TOML file with sites that have agents
    #[arg(required_unless_present = "campaign")]
    plan: Option<PathBuf>,
    /// Measure nothing: read the results of this campaign, after neph resume for example
    #[arg(long, value_name = "CAMPAIGN", conflicts_with = "plan")]
    campaign: Option<String>,
    /// Blocks: each measures every circuit alone and every pair; as many as an answer takes, and one more, if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    blocks: Option<u32>,
    /// How long each transfer is
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, default_value = "5s")]
    duration: Span,
    /// Rate of each transfer at most; two that share a link are found if it carries less than twice as much
    #[arg(long, value_name = "RATE", value_parser = value::rate, default_value = "100Mbit/s")]
    rate: BitRate,
    /// Payload of all transfers together at most
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "50GB")]
    bytes: ByteSize,
    /// A circuit whose goodput falls by less than this share of its goodput alone is not disturbed
    #[arg(long, value_name = "SHARE", value_parser = value::share, default_value = "10%")]
    margin: f64,
    /// Print the plan that would be carried out, and measure nothing
    #[arg(long, conflicts_with = "campaign")]
    print_plan: bool,
    #[command(flatten)]
    controller: ControllerArgs,
    #[command(flatten)]
    workspace: Workspace,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
    /// How to write the answer
    #[arg(long, default_value = "text", value_parser = format::one_of(format::DOCUMENT))]
    format: Format,
}

/// Carries the command out.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.margin >= 1.0 {
        return Err(Failure::usage(
            "--margin: write a share below 100%, such as 10%",
        ));
    }
    let name = match (&args.plan, &args.campaign) {
        (_, Some(name)) => name.as_str(),
        (Some(plan), None) => match measure(args, plan)? {
            None => return Ok(Outcome::Done),
            Some(Outcome::Done | Outcome::Nothing) => "last",
            Some(other) => {
                output::say(
                    "neph control: after neph resume, neph control interference --campaign last reads the results",
                );
                return Ok(other);
            }
        },
        (None, None) => return Err(Failure::usage("name a plan, or a campaign with --campaign")),
    };
    let store = args.workspace.read()?;
    let campaign = find::campaign(store.as_ref(), name)?;
    answer(args, store.as_ref(), &campaign)
}

/// Carries the design out; `None` where it was only to be printed.
fn measure(args: &Args, path: &Path) -> Result<Option<Outcome>, Failure> {
    let read = campaign::read(path)?;
    let asked = Asked {
        blocks: args.blocks,
        duration: args.duration,
        rate: args.rate,
        bytes: args.bytes,
    };
    let design = design(&read.plan, &asked).map_err(Failure::usage)?;
    if args.print_plan {
        let mut out = output::data();
        out.write_all(design.text.as_bytes())?;
        out.flush()?;
        return Ok(None);
    }
    let designed = Source::new(path.display().to_string(), design.text.clone());
    let designed = campaign::understand(designed)?;
    if !args.quiet {
        report(&design, &designed);
    }
    let settings = Settings {
        workspace: args.workspace.clone(),
        quiet: args.quiet,
        no_report: true,
        is_silent: true,
        acknowledge: None,
        webhook: None,
        controller: args.controller.clone(),
        metrics: MetricsArgs::default(),
        approval: Approval::default(),
    };
    campaign::carry_out(&designed, None, None, &settings).map(Some)
}

/// What will be measured, and what not.
fn report(design: &Design, designed: &Read) {
    let plan = &designed.plan;
    let whole = estimate(plan, &scenarios(plan)).whole;
    output::say(&format!(
        "neph control: {} of circuits, each circuit alone and both at the same time: {}, up to {}, about {}",
        counted(design.pairs.len() as u64, "pair"),
        counted(design.blocks.into(), "block"),
        design.bytes,
        in_words(whole)
    ));
    if !design.apart.is_empty() {
        output::say(&format!(
            "neph control: {} not measured: the circuits share a host, or a link that the plan declares, and never \
             run at the same time",
            counted(design.apart.len() as u64, "pair")
        ));
    }
}

fn answer(args: &Args, store: &dyn Store, campaign: &Campaign) -> Result<Outcome, Failure> {
    let scenarios = store.scenarios(campaign.id)?;
    let experiments = store.experiments(campaign.id)?;
    let complete = experiments
        .iter()
        .filter(|one| one.status == ExperimentStatus::Complete);
    let readings: Vec<Reading> = complete
        .filter_map(|one| reading(one, &scenarios))
        .collect();
    let findings = judge(&readings, args.margin);
    let measured = scenarios.first().map(Scenario::measure);
    let Some(measured) = measured.filter(|_| !findings.is_empty()) else {
        return Err(Failure::usage(format!(
            "campaign {} has no circuits that were measured at the same time; neph control interference PLAN \
             measures them",
            campaign.name
        )));
    };
    let measure = measured.to_string();
    let document = InterferenceDocument::new(campaign.id, measure, args.margin, &findings);
    super::write_document(&document, InterferenceDocument::text, args.format)?;
    Ok(Outcome::Done)
}

/// What an experiment measured, if it is one of a design.
fn reading(experiment: &Experiment, scenarios: &[Scenario]) -> Option<Reading> {
    let mut all = scenarios.iter();
    let scenario = all.find(|scenario| scenario.id == experiment.scenario)?;
    let values = &experiment.quantities.as_ref()?.values;
    Some(Reading {
        circuit: scenario.parameters.circuit()?.clone(),
        network: scenario.parameters.network()?.clone(),
        block: experiment.block,
        from: experiment.started,
        until: experiment.ended?,
        goodput: *values.get(&Quantity::UpGoodput)?,
    })
}
