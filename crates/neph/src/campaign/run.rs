//! `neph run` and `neph resume`: carry out a plan, and continue after an interruption.

use std::fmt::Display;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use neph_campaign::plan::TrustedCertificates;
use neph_campaign::{
    Build, CampaignProgress, Clock as _, Observer, Participants, Plan, RunError, expand, flow_sets,
};
use neph_documents::plan::notes;
use neph_model::{BlockOrder, Campaign, CampaignStatus, Fingerprint, Pins, Stop};
use neph_store::{Store, find};

use super::acknowledge::AcknowledgingObserver;
use super::alarm_reporter::{self, AlarmReporter};
use super::cut_off::CutOffCampaign;
use super::plan_executor::{Control, build_executor, check_lab_permission, reserve_agents};
use super::progress::ProgressReporter;
use super::real_clock::RealClock;
use super::{PlanSource, lab_topologies, load_plan, parse_stored_plan, status, unfinished};
use crate::approval::Approval;
use crate::exit::{Failure, Outcome};
use crate::interrupt::SecondInterruptMessage;
use crate::metrics::run::RunMetrics;
use crate::metrics::{BoundExporters, MetricsArgs};
use crate::operator::ControllerArgs;
use crate::workspace::Workspace;
use crate::{diagnose, interrupt, output, report, version};
use neph_export::Url;

/// The order of scenarios within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderChoice {
    /// Each block runs the scenarios in another random order
    Random,
    /// Each block runs the scenarios in the order of the plan file
    Sequential,
}

/// Options of `neph run`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// Plan file (TOML) that describes what to measure, or a settings file (YAML) of the program
    /// Latency Tester
    pub(crate) plan: PathBuf,
    /// Order of the scenarios in each block (one pass over all scenarios) [default: 'order' in the plan file]
    #[arg(long, value_enum)]
    pub(crate) order: Option<OrderChoice>,
    /// Accept any TLS certificate from all endpoints, without verification; overrides the plan file
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Trust the CA certificates in this file (PEM), as well as the public CAs, at all endpoints;
    /// overrides the plan file
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Accept only TLS certificates with these SHA-256 fingerprints (comma-separated, repeatable) from
    /// all endpoints; overrides the plan file
    #[arg(long, value_name = "SHA256", value_delimiter = ',', conflicts_with_all = ["insecure", "ca_file"])]
    pub(crate) pin: Vec<Fingerprint>,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

impl RunArgs {
    fn certificates(&self) -> Option<TrustedCertificates> {
        if let Some(pins) = Pins::new(self.pin.clone()) {
            return Some(TrustedCertificates::Pinned(pins));
        }
        let file = self.ca_file.as_ref();
        let file = file.map(|file| TrustedCertificates::SignedBy(file.display().to_string()));
        file.or_else(|| self.insecure.then_some(TrustedCertificates::Any))
    }
}

/// Options of `neph resume`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ResumeArgs {
    /// Campaign (one run of a plan) to continue: its id or the beginning of it, its name, or 'last'
    #[arg(default_value = "last")]
    pub(crate) campaign: String,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

/// Options of both commands.
#[derive(Debug, ClapArgs)]
pub(crate) struct Settings {
    #[command(flatten)]
    pub(crate) workspace: Workspace,
    /// Do not print the progress of the measurement
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Do not write the report (HTML page, figures, tables) at the end
    #[arg(long)]
    pub(crate) no_report: bool,
    /// Print nothing about the results: another command reads them.
    #[arg(skip)]
    pub(crate) is_silent: bool,
    /// After neph has stored a message, append a line to this file: experiment id, flow number (with
    /// many flows: slot/port), sequence number
    #[arg(long, value_name = "FILE")]
    pub(crate) acknowledge: Option<PathBuf>,
    /// Send the start and end of each alarm of the plan to this URL, as JSON by HTTP POST
    #[arg(long, value_name = "URL", value_parser = neph_export::url)]
    pub(crate) webhook: Option<Url>,
    #[command(flatten)]
    pub(crate) controller: ControllerArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) approval: Approval,
}

impl Settings {
    /// The controller whose agents measure.
    fn control(&self) -> Control<'_> {
        Control {
            folder: self.controller.control.as_deref(),
            operator: &self.controller.operator,
        }
    }

    /// The command that continues a campaign.
    fn resume_command(&self, campaign: impl Display) -> String {
        format!(
            "neph resume {campaign}{}{}",
            self.workspace.option(),
            self.controller.option_text()
        )
    }
}

/// Carries out a plan.
pub(crate) fn run(args: &RunArgs) -> Result<Outcome, Failure> {
    let mut plan_source = load_plan(&args.plan)?;
    if let Some(certificates) = args.certificates()
        && plan_source.plan.trust(&certificates) == 0
    {
        return Err(Failure::usage(
            "--insecure, --ca-file and --pin have no effect: no endpoint of the plan has TLS; remove the \
             flag, or write wss:// or https:// in a url",
        ));
    }
    for note in notes(&plan_source.plan) {
        if !args.settings.quiet || note.starts_with("WARNING") {
            output::say(&format!("neph: {note}"));
        }
    }
    let order = args.order.map(|choice| match choice {
        OrderChoice::Random => BlockOrder::Random,
        OrderChoice::Sequential => BlockOrder::Sequential,
    });
    carry_out(&plan_source, order, None, &args.settings)
}

/// Continues a campaign.
pub(crate) fn resume(args: &ResumeArgs) -> Result<Outcome, Failure> {
    let (campaign, scenarios) = {
        let store = args.settings.workspace.open_existing()?;
        let campaign = find::campaign(store.as_ref(), &args.campaign)?;
        if campaign.status == CampaignStatus::Complete {
            let resume_command = |id| args.settings.resume_command(id);
            unfinished::report_complete(&campaign, &store.campaigns()?, resume_command);
            return Ok(Outcome::Done);
        }
        let scenarios = store.scenarios(campaign.id)?;
        (campaign, scenarios)
    };
    match campaign.status {
        CampaignStatus::Imported => {
            let name = &campaign.name;
            return Err(Failure::Usage(format!(
                "campaign {name} was imported: there is nothing to go on with"
            )));
        }
        _ if campaign.plan_text.is_empty() => {
            let name = &campaign.name;
            return Err(Failure::Usage(format!(
                "campaign {name} was measured without a plan, by neph flows: there is nothing to go on with"
            )));
        }
        CampaignStatus::Complete
        | CampaignStatus::Running
        | CampaignStatus::Interrupted
        | CampaignStatus::Incomplete => {}
    }
    let mut plan_source = parse_stored_plan(&campaign)?;
    plan_source.plan.restore_trust(&scenarios);
    carry_out(&plan_source, None, Some(&campaign), &args.settings)
}

/// Prepares the executor, runs or continues the campaign, and reports.
pub(crate) fn carry_out(
    plan_source: &PlanSource,
    order: Option<BlockOrder>,
    earlier_campaign: Option<&Campaign>,
    settings: &Settings,
) -> Result<Outcome, Failure> {
    check_webhook(&plan_source.plan, settings)?;
    let second_interrupt = SecondInterruptMessage::default();
    let stop = interrupt::stop_on_ctrl_c_with_message(&second_interrupt)?;
    check_permissions(plan_source, settings)?;
    let reserved_agents = reserve_agents(&plan_source.plan, &settings.control())?;
    let bound_exporters = settings.metrics.bind("neph run")?;
    let workspace = &settings.workspace;
    let mut store = workspace.write()?;
    store.recover()?;
    let season = next_season(plan_source, earlier_campaign, store.as_ref())?;
    let mut executor = build_executor(
        plan_source,
        season.as_deref(),
        reserved_agents,
        workspace,
        &stop,
    )?;
    let mut progress = start_progress(settings, bound_exporters)?;
    let mut acknowledging_observer;
    let observer: &mut dyn Observer = match &settings.acknowledge {
        None => &mut progress,
        Some(path) => {
            acknowledging_observer = AcknowledgingObserver::new(&mut progress, path)?;
            &mut acknowledging_observer
        }
    };
    let mut participants = Participants {
        store: store.as_mut(),
        executor: executor.as_mut(),
        observer,
        clock: &RealClock,
        stop: &stop,
    };
    let earlier_id = earlier_campaign.map(|campaign| campaign.id.to_string());
    let resume_command = settings.resume_command(earlier_id.as_deref().unwrap_or("last"));
    second_interrupt.set(Some(format!(
        "neph: ended at once; the results so far are kept: {resume_command} continues"
    )));
    let campaign_result = run_campaign(plan_source, order, earlier_campaign, &mut participants);
    second_interrupt.set(None);
    // The lab is removed before anything is reported.
    drop(executor);
    let result = match campaign_result {
        Ok(ended) => conclude(plan_source, store.as_ref(), ended, settings, &stop),
        Err(error) => {
            let cut_off_campaign = CutOffCampaign {
                id: progress.campaign(),
                store: store.as_mut(),
                is_new: earlier_campaign.is_none(),
                workspace,
                is_quiet: settings.quiet,
                resume_command: progress.campaign().map(|id| settings.resume_command(id)),
            };
            cut_off_campaign.report(&error, &stop)
        }
    };
    // Last: a slow webhook must not delay the report.
    progress.finish();
    result
}

/// A campaign that has ended, perhaps before it was complete.
struct EndedCampaign {
    campaign: Campaign,
    progress: CampaignProgress,
}

/// Prints the status of an ended campaign, its report and the next step. If the status cannot be read,
/// the others are still shown.
fn conclude(
    plan_source: &PlanSource,
    store: &dyn Store,
    ended: EndedCampaign,
    settings: &Settings,
    stop: &Stop,
) -> Result<Outcome, Failure> {
    let EndedCampaign { campaign, progress } = ended;
    let status_result = status::print(store, &campaign, &settings.workspace, settings.quiet);
    let report_result = write_report(plan_source, store, &campaign, settings);
    let resume_command = settings.resume_command(campaign.id);
    let outcome = if stop.is_set() {
        output::say(&format!("neph: stopped; {resume_command} continues"));
        Outcome::Interrupted
    } else {
        campaign_outcome(plan_source, store, &campaign)?
    };
    if let Outcome::Nothing = outcome {
        unfinished::report(store, &campaign, progress, &resume_command)?;
    }
    status_result.and(report_result).map(|()| outcome)
}

/// Checks what the plan needs of this host, and asks before commands of a topology run.
fn check_permissions(plan_source: &PlanSource, settings: &Settings) -> Result<(), Failure> {
    check_lab_permission(&plan_source.plan)?;
    let labs = plan_source.lab_topologies.iter();
    let topologies = labs.map(|lab| &lab.topology);
    let approval = &settings.approval;
    approval.ask(plan_source.source.name(), topologies)?;
    check_open_file_limit(&plan_source.plan)
}

/// A webhook needs alarms.
fn check_webhook(plan: &Plan, settings: &Settings) -> Result<(), Failure> {
    if settings.webhook.is_some() && !plan.has_alarms() {
        return Err(Failure::usage(
            "--webhook has nothing to post: the plan has no alarm; add for example \
             alarm = \"round_trip > 2ms p99 for 30s\"",
        ));
    }
    Ok(())
}

/// Shows progress, and exports it.
fn start_progress(
    settings: &Settings,
    bound_exporters: BoundExporters,
) -> Result<ProgressReporter, Failure> {
    let metrics = RunMetrics::default();
    let running_exporters = bound_exporters.begin(metrics.clone())?;
    let progress_reporter =
        ProgressReporter::new(settings.quiet, AlarmReporter::new(settings.webhook.clone()));
    Ok(progress_reporter.with_metrics(metrics, running_exporters))
}

/// Checks that this process may open enough files for all fleets that the plan runs at the same time.
fn check_open_file_limit(plan: &Plan) -> Result<(), Failure> {
    let scenarios = expand::scenarios(plan);
    let groups = flow_sets::groups(plan, &scenarios);
    let grouped_scenarios = scenarios.iter().zip(groups);
    neph_agent::check_open_file_limit(grouped_scenarios, plan.timeout).map_err(Failure::usage)
}

fn write_report(
    plan_source: &PlanSource,
    store: &dyn Store,
    campaign: &Campaign,
    settings: &Settings,
) -> Result<(), Failure> {
    if settings.is_silent {
        Ok(())
    } else if settings.no_report {
        diagnose::report_after_run(store, campaign, &settings.workspace)
    } else {
        report::report_after_run(store, campaign, &plan_source.plan, &settings.workspace)
    }
}

/// The outcome of a campaign that was not stopped. An alarm requires complete measurements.
fn campaign_outcome(
    plan_source: &PlanSource,
    store: &dyn Store,
    campaign: &Campaign,
) -> Result<Outcome, Failure> {
    if campaign.status != CampaignStatus::Complete {
        return Ok(Outcome::Nothing);
    }
    if plan_source.plan.has_alarms() && alarm_reporter::was_raised(store, campaign)? {
        return Ok(Outcome::Alarmed);
    }
    Ok(Outcome::Done)
}

/// The season of the next experiments of an earlier campaign, from its experiments so far.
fn next_season(
    plan_source: &PlanSource,
    campaign: Option<&Campaign>,
    store: &dyn Store,
) -> Result<Option<String>, Failure> {
    let Some(campaign) = campaign else {
        return Ok(None);
    };
    let experiments = store.experiments(campaign.id)?;
    let now = RealClock.now();
    Ok(neph_campaign::next_season(
        &plan_source.plan,
        campaign,
        &experiments,
        now,
    ))
}

/// Runs or continues the campaign.
fn run_campaign(
    plan_source: &PlanSource,
    order: Option<BlockOrder>,
    earlier_campaign: Option<&Campaign>,
    participants: &mut Participants<'_>,
) -> Result<EndedCampaign, RunError> {
    let build = Build {
        version: version::VERSION.to_owned(),
        commit: version::COMMIT.to_owned(),
    };
    let plan = &plan_source.plan;
    let topology = lab_topologies::stored_topology(&plan_source.lab_topologies);
    let (campaign, progress) = match earlier_campaign {
        None => neph_campaign::start(plan, order, topology.as_deref(), &build, participants),
        Some(campaign) => neph_campaign::resume(plan, campaign, &build, participants),
    }?;
    Ok(EndedCampaign { campaign, progress })
}
