//! `neph run` and `neph resume`: carry a plan out, and go on after any interruption.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use neph_campaign::plan::Certificates;
use neph_campaign::{
    Build, Clock as _, Crew, Observer, Plan, RunError, Standing, expand, together,
};
use neph_documents::plan::notes;
use neph_model::{
    BlockOrder, Campaign, CampaignId, CampaignStatus, ExperimentStatus, Fingerprint, Pins,
};
use neph_store::Store;

use super::acknowledge::Acknowledging;
use super::alarming::{self, Alarming};
use super::ground::{Control, check_rights, executor};
use super::real_clock::RealClock;
use super::watch::Watch;
use super::{Read, read, scenes, understand_kept, unfinished};
use crate::approval::Approval;
use crate::exit::{Failure, Outcome};
use crate::metrics::run::RunMetrics;
use crate::metrics::{MetricsArgs, Ready};
use crate::operator::ControllerArgs;
use crate::workspace::Workspace;
use crate::{diagnose, interrupt, output, report, version};
use neph_export::Url;
use neph_store::find::{self};
use neph_text::counted::counted;

/// The order of scenarios within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderChoice {
    /// Shuffled anew in each block
    Random,
    /// As the plan lists them
    Sequential,
}

/// Options of `neph run`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// The plan: a TOML file, or a settings file of the Latency Tester (YAML)
    pub(crate) plan: PathBuf,
    /// The order within a block, whatever the plan says
    #[arg(long, value_enum)]
    pub(crate) order: Option<OrderChoice>,
    /// Accept any certificate at all endpoints, whatever the plan says
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Trust the certificate authorities of this file (PEM) instead of the public ones at all
    /// endpoints, whatever the plan says
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Accept only certificates with these SHA-256 fingerprints at all endpoints, instead of what the plan
    /// trusts; several with commas, or repeated
    #[arg(long, value_name = "SHA256", value_delimiter = ',', conflicts_with_all = ["insecure", "ca_file"])]
    pub(crate) pin: Vec<Fingerprint>,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

impl RunArgs {
    fn certificates(&self) -> Option<Certificates> {
        if let Some(pins) = Pins::new(self.pin.clone()) {
            return Some(Certificates::Pinned(pins));
        }
        let file = self.ca_file.as_ref();
        let file = file.map(|file| Certificates::SignedBy(file.display().to_string()));
        file.or_else(|| self.insecure.then_some(Certificates::Any))
    }
}

/// Options of `neph resume`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ResumeArgs {
    /// The campaign: its id, the beginning of it, its name, or the last one
    #[arg(default_value = "last")]
    pub(crate) campaign: String,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

/// What both share.
#[derive(Debug, ClapArgs)]
pub(crate) struct Settings {
    #[command(flatten)]
    pub(crate) workspace: Workspace,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// No report at the end
    #[arg(long)]
    pub(crate) no_report: bool,
    /// Not a word about the results: another command reads them.
    #[arg(skip)]
    pub(crate) is_silent: bool,
    /// Append 'experiment flow seq' to this file for each message that is safe in the store; a flow of
    /// a fleet is 'slot/port'
    #[arg(long, value_name = "FILE")]
    pub(crate) acknowledge: Option<PathBuf>,
    /// Tell each alarm of the plan to this address too, by a POST
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
    /// Whose agents measure.
    fn control(&self) -> Control<'_> {
        Control {
            folder: self.controller.control.as_deref(),
            operator: &self.controller.operator,
            workspace: &self.workspace,
        }
    }

    /// The command that goes on with a campaign.
    fn resume(&self, id: CampaignId) -> String {
        format!("neph resume {id}{}", self.controller.words())
    }
}

/// Carries a plan out.
pub(crate) fn run(args: &RunArgs) -> Result<Outcome, Failure> {
    let mut read = read(&args.plan)?;
    if let Some(certificates) = args.certificates()
        && read.plan.trust(&certificates) == 0
    {
        return Err(Failure::usage(
            "--insecure, --ca-file and --pin have no effect: no endpoint of the plan has TLS; remove the \
             flag, or write wss:// or https:// in a url",
        ));
    }
    for note in notes(&read.plan) {
        if !args.settings.quiet || note.starts_with("WARNING") {
            output::say(&format!("neph: {note}"));
        }
    }
    let order = args.order.map(|choice| match choice {
        OrderChoice::Random => BlockOrder::Random,
        OrderChoice::Sequential => BlockOrder::Sequential,
    });
    carry_out(&read, order, None, &args.settings)
}

/// Goes on with a campaign.
pub(crate) fn resume(args: &ResumeArgs) -> Result<Outcome, Failure> {
    let (campaign, measured) = {
        let store = args.settings.workspace.existing()?;
        let campaign = find::campaign(store.as_ref(), &args.campaign)?;
        let measured = store.scenarios(campaign.id)?;
        (campaign, measured)
    };
    match campaign.status {
        CampaignStatus::Complete => {
            output::say(&format!(
                "neph: campaign {} is complete already",
                campaign.name
            ));
            return Ok(Outcome::Done);
        }
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
        CampaignStatus::Running | CampaignStatus::Interrupted | CampaignStatus::Incomplete => {}
    }
    let mut read = understand_kept(&campaign)?;
    read.plan.trust_as_in(&measured);
    carry_out(&read, None, Some(&campaign), &args.settings)
}

/// Sets the stage, carries out or goes on, and reports.
pub(crate) fn carry_out(
    read: &Read,
    order: Option<BlockOrder>,
    earlier: Option<&Campaign>,
    settings: &Settings,
) -> Result<Outcome, Failure> {
    if settings.webhook.is_some() && !read.plan.has_alarms() {
        return Err(Failure::usage(
            "--webhook has nothing to post: the plan has no alarm; add for example \
             alarm = \"round_trip > 2ms p99 for 30s\"",
        ));
    }
    let stop = interrupt::stop_on_ctrl_c()?;
    check_rights(&read.plan)?;
    let topologies = read.scenes.iter().map(|scene| &scene.topology);
    settings.approval.ask(read.source.name(), topologies)?;
    check_files(&read.plan)?;
    let exporters = settings.metrics.bind("neph run")?;
    let mut store = settings.workspace.write()?;
    store.recover()?;
    let season = match earlier {
        None => None,
        Some(campaign) => season_of_next(read, campaign, store.as_ref())?,
    };
    let mut executor = executor(read, season.as_deref(), &settings.control(), &stop)?;
    let mut watch = watch(settings, exporters)?;
    let mut acknowledging;
    let observer: &mut dyn Observer = match &settings.acknowledge {
        None => &mut watch,
        Some(path) => {
            acknowledging = Acknowledging::new(&mut watch, path)?;
            &mut acknowledging
        }
    };
    let mut crew = Crew {
        store: store.as_mut(),
        executor: executor.as_mut(),
        observer,
        clock: &RealClock,
        stop: &stop,
    };
    let conducted = conduct(read, order, earlier, &mut crew);
    // The lab is removed before anything is reported.
    drop(executor);
    let resume = watch.campaign().map(|id| settings.resume(id));
    let conducted =
        conducted.map_err(|error| Failure::refused(with_the_way_on(&error, resume.clone())));
    let ended = conducted.and_then(|(campaign, standing)| {
        // If the store cannot report the status, the report and the next step are still shown.
        let stood = stand(store.as_ref(), &campaign, settings);
        let reported = report(read, store.as_ref(), &campaign, settings);
        let resume = settings.resume(campaign.id);
        let outcome = if stop.is_set() {
            output::say(&format!("neph: stopped; {resume} goes on"));
            Outcome::Interrupted
        } else {
            outcome(read, store.as_ref(), &campaign)?
        };
        if let Outcome::Nothing = outcome {
            unfinished::report(store.as_ref(), &campaign, standing, &resume)?;
        }
        stood.and(reported).map(|()| outcome)
    });
    // Last: a slow webhook must not delay the report.
    watch.finish();
    ended
}

/// Shows progress, and exports it.
fn watch(settings: &Settings, exporters: Ready) -> Result<Watch, Failure> {
    let metrics = RunMetrics::default();
    let exporting = exporters.begin(metrics.clone())?;
    let watch = Watch::new(settings.quiet, Alarming::new(settings.webhook.clone()));
    Ok(watch.exporting(metrics, exporting))
}

/// Whether this process may open the files of all fleets that the plan runs at the same time.
fn check_files(plan: &Plan) -> Result<(), Failure> {
    let scenarios = expand::scenarios(plan);
    let groups = together::groups(plan, &scenarios);
    let grouped = scenarios.iter().zip(groups);
    neph_agent::check_files(grouped, plan.timeout).map_err(Failure::usage)
}

/// Prints the status of a campaign, unless the output is quiet.
fn stand(store: &dyn Store, campaign: &Campaign, settings: &Settings) -> Result<(), Failure> {
    if !settings.quiet {
        output::say(&stands(store, campaign)?);
    }
    Ok(())
}

/// How a campaign stands, and how many of its experiments are flagged.
fn stands(store: &dyn Store, campaign: &Campaign) -> Result<String, Failure> {
    let mut all = store.experiments(campaign.id)?;
    all.retain(|one| one.status == ExperimentStatus::Complete);
    let experiments = counted(all.len() as u64, "experiment");
    let flagged = all.iter().filter(|one| !one.warnings.is_empty()).count();
    let flagged = match flagged {
        0 => "none flagged".to_owned(),
        some => format!("{some} with warnings; neph list {} shows them", campaign.id),
    };
    let status = campaign.status.name();
    Ok(format!("campaign {status}: {experiments}, {flagged}"))
}

fn report(
    read: &Read,
    store: &dyn Store,
    campaign: &Campaign,
    settings: &Settings,
) -> Result<(), Failure> {
    if settings.is_silent {
        Ok(())
    } else if settings.no_report {
        diagnose::after_run(store, campaign)
    } else {
        report::after_run(store, campaign, &read.plan, &settings.workspace)
    }
}

/// How a campaign ended that was not stopped. What raised an alarm was measured as a whole.
fn outcome(read: &Read, store: &dyn Store, campaign: &Campaign) -> Result<Outcome, Failure> {
    if campaign.status != CampaignStatus::Complete {
        return Ok(Outcome::Nothing);
    }
    if read.plan.has_alarms() && alarming::was_raised(store, campaign)? {
        return Ok(Outcome::Alarmed);
    }
    Ok(Outcome::Done)
}

/// The season of what a campaign goes on with, by its experiments so far.
fn season_of_next(
    read: &Read,
    campaign: &Campaign,
    store: &dyn Store,
) -> Result<Option<String>, Failure> {
    let past = store.experiments(campaign.id)?;
    let now = RealClock.now();
    Ok(neph_campaign::next_season(&read.plan, campaign, &past, now))
}

/// Carries out or goes on.
fn conduct(
    read: &Read,
    order: Option<BlockOrder>,
    earlier: Option<&Campaign>,
    crew: &mut Crew<'_>,
) -> Result<(Campaign, Standing), RunError> {
    let build = Build {
        version: version::VERSION.to_owned(),
        commit: version::COMMIT.to_owned(),
    };
    let plan = &read.plan;
    let topology = scenes::kept(&read.scenes);
    let topology = topology.as_deref();
    match earlier {
        None => neph_campaign::start(plan, order, topology, &build, crew),
        Some(campaign) => neph_campaign::resume(plan, campaign, &build, crew),
    }
}

/// Why a campaign that has begun was cut off, and how it goes on.
fn with_the_way_on(error: &RunError, resume: Option<String>) -> String {
    match (error, resume) {
        (RunError::MatrixDiffers { .. }, _) | (_, None) => error.to_string(),
        (_, Some(resume)) if error.is_disk_full() => {
            format!("{error}; what was measured is kept: free space, then {resume}")
        }
        (_, Some(resume)) => format!("{error}; what was measured is kept: {resume} goes on"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use neph_store::StoreError;

    use super::*;

    fn refused(source: io::Error) -> RunError {
        RunError::Store {
            operation: "finish an experiment",
            source: StoreError::Output {
                format: "CSV",
                source,
            },
        }
    }

    #[test]
    fn a_campaign_that_the_store_cut_off_is_told_with_the_way_on() {
        let id = CampaignId::new();
        let full = refused(io::ErrorKind::StorageFull.into());
        let resume = Some(format!("neph resume {id}"));
        let reported = with_the_way_on(&full, resume.clone());
        let way = format!("; what was measured is kept: free space, then neph resume {id}");
        assert!(reported.ends_with(&way), "{reported}");
        assert_eq!(with_the_way_on(&full, None), full.to_string());
        let other = with_the_way_on(&refused(io::ErrorKind::PermissionDenied.into()), resume);
        assert!(
            other.ends_with(&format!("neph resume {id} goes on")),
            "{other}"
        );
    }
}
