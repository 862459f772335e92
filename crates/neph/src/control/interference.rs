//! `neph control interference`: which circuits of a plan disturb each other, by measuring them alone and at
//! the same time.
//!
//! Owns the options. neph-campaign designs the measurement and evaluates the results; an ordinary
//! campaign carries it out.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_campaign::estimate::{estimate, to_text};
use neph_campaign::expand::scenarios;
use neph_campaign::interference::{
    Design, DesignRequest, TransferReading, create_design, evaluate_pairs,
};
use neph_documents::Format;
use neph_documents::interference::InterferenceDocument;
use neph_model::{
    BitRate, ByteSize, Campaign, Experiment, ExperimentStatus, Quantity, Scenario, Span,
};
use neph_store::{Store, find};
use neph_text::Source;
use neph_text::counted::counted;

use crate::approval::Approval;
use crate::campaign::{self, PlanSource, Settings};
use crate::exit::{Failure, Outcome};
use crate::metrics::MetricsArgs;
use crate::operator::ControllerArgs;
use crate::workspace::Workspace;
use crate::{format, output, value};

/// Options of `neph control interference`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Plan file (TOML) with the circuits (site to endpoint) to measure; each site needs an agent
    #[arg(required_unless_present = "campaign")]
    plan: Option<PathBuf>,
    /// Evaluate this stored campaign instead of measuring, for example after `neph resume`: id, name or 'last'
    #[arg(long, value_name = "CAMPAIGN", conflicts_with = "plan")]
    campaign: Option<String>,
    /// Number of blocks (passes over all circuits and pairs of circuits), 1 to 10000 [default: the
    /// number that a verdict needs, plus 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    blocks: Option<u32>,
    /// Duration of each transfer (throughput test)
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, default_value = "5s")]
    duration: Span,
    /// Maximum bit rate of each transfer; neph finds only shared links with less than twice this capacity
    #[arg(long, value_name = "RATE", value_parser = value::rate, default_value = "100Mbit/s")]
    rate: BitRate,
    /// Maximum payload of all transfers together; neph refuses to start if it could be exceeded
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "50GB")]
    bytes: ByteSize,
    /// Smallest loss of goodput that counts as interference, relative to the circuit alone
    #[arg(long, value_name = "SHARE", value_parser = value::share, default_value = "10%")]
    margin: f64,
    /// Print the plan file that neph would run for this measurement, and measure nothing
    #[arg(long, conflicts_with = "campaign")]
    print_plan: bool,
    #[command(flatten)]
    controller: ControllerArgs,
    #[command(flatten)]
    workspace: Workspace,
    /// Do not print the progress of the measurement
    #[arg(long, short)]
    quiet: bool,
    /// Output format
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
    print_findings(args, store.as_ref(), &campaign)
}

/// Carries out the design; `None` if it is only printed.
fn measure(args: &Args, path: &Path) -> Result<Option<Outcome>, Failure> {
    let plan_source = campaign::load_plan(path)?;
    let request = DesignRequest {
        blocks: args.blocks,
        duration: args.duration,
        rate: args.rate,
        bytes: args.bytes,
    };
    let design = create_design(&plan_source.plan, &request).map_err(Failure::usage)?;
    if args.print_plan {
        let mut out = output::data();
        out.write_all(design.text.as_bytes())?;
        out.flush()?;
        return Ok(None);
    }
    let design_source = Source::new(path.display().to_string(), design.text.clone());
    let designed_plan = campaign::parse_plan(design_source)?;
    if !args.quiet {
        print_design(&design, &designed_plan);
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
    campaign::carry_out(&designed_plan, None, None, &settings).map(Some)
}

/// Reports what is measured, and what is not.
fn print_design(design: &Design, plan_source: &PlanSource) {
    let plan = &plan_source.plan;
    let span = estimate(plan, &scenarios(plan)).total;
    output::say(&format!(
        "neph control: {} of circuits, each circuit by itself and both at the same time: {}, up to {}, about {}",
        counted(design.pairs.len() as u64, "pair"),
        counted(design.blocks.into(), "block"),
        design.bytes,
        to_text(span)
    ));
    if !design.separated_pairs.is_empty() {
        output::say(&format!(
            "neph control: {} not measured: the circuits share a host, or a link that the plan declares, and never \
             run at the same time",
            counted(design.separated_pairs.len() as u64, "pair")
        ));
    }
}

fn print_findings(args: &Args, store: &dyn Store, campaign: &Campaign) -> Result<Outcome, Failure> {
    let scenarios = store.scenarios(campaign.id)?;
    let experiments = store.experiments(campaign.id)?;
    let complete_experiments = experiments
        .iter()
        .filter(|experiment| experiment.status == ExperimentStatus::Complete);
    let readings: Vec<TransferReading> = complete_experiments
        .filter_map(|experiment| build_reading(experiment, &scenarios))
        .collect();
    let findings = evaluate_pairs(&readings, args.margin);
    let scenario_measure = scenarios.first().map(Scenario::measure);
    let Some(scenario_measure) = scenario_measure.filter(|_| !findings.is_empty()) else {
        return Err(Failure::usage(format!(
            "campaign {} has no circuits that were measured at the same time; neph control interference PLAN \
             measures them",
            campaign.name
        )));
    };
    let measure = scenario_measure.to_string();
    let document = InterferenceDocument::new(campaign.id, measure, args.margin, &findings);
    super::write_document(&document, InterferenceDocument::text, args.format)?;
    Ok(Outcome::Done)
}

/// The result of an experiment, if it belongs to a design.
fn build_reading(experiment: &Experiment, scenarios: &[Scenario]) -> Option<TransferReading> {
    let mut entries = scenarios.iter();
    let scenario = entries.find(|scenario| scenario.id == experiment.scenario)?;
    let values = &experiment.quantities.as_ref()?.values;
    Some(TransferReading {
        circuit: scenario.parameters.circuit()?.clone(),
        network: scenario.parameters.network()?.clone(),
        block: experiment.block,
        from: experiment.started,
        until: experiment.ended?,
        goodput_bit_s: *values.get(&Quantity::UpGoodput)?,
    })
}
