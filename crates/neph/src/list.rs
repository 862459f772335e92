//! `neph list`: the campaigns of a workspace, or the experiments of one campaign.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use clap::Args as ClapArgs;
use neph_campaign::plan;
use neph_campaign::retention::MergedMinutes;
use neph_documents::Format;
use neph_documents::rows::{self, Row};
use neph_documents::store_content::{CampaignRow, ExperimentRow, QuantityRow};
use neph_model::{
    Campaign, CampaignStatus, Experiment, ExperimentStatus, Quantities, Scenario, ScenarioId, Span,
    Tally, UtcOffset,
};
use neph_store::Store;
use neph_text::Source;

use crate::exit::{Failure, Outcome};
use crate::time_zone::Zone;
use crate::workspace::Workspace;
use crate::{format, output};
use neph_documents::p50::P50;
use neph_documents::wall_time::utc;
use neph_store::find::{campaign, is_cut_off, short_length, short_length_in};

/// Options of `neph list`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// List the experiments of this campaign: its id or the beginning of it, its name, or 'last'
    /// [default: list campaigns]
    campaign: Option<String>,
    #[command(flatten)]
    workspace: Workspace,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
    #[command(flatten)]
    zone: Zone,
}

/// Lists.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = args.workspace.read()?;
    match &args.campaign {
        None => {
            let rows = campaign_rows(store.as_ref(), args)?;
            write_rows(&rows, args.format, "nothing has been measured here yet")
        }
        Some(name) => {
            let campaign = campaign(store.as_ref(), name)?;
            let rows = experiment_rows(store.as_ref(), &campaign, args.zone.offset)?;
            write_rows(&rows, args.format, "this campaign has no experiment")
        }
    }
}

fn write_rows<R: Row>(rows: &[R], format: Format, if_empty: &str) -> Result<Outcome, Failure> {
    let mut out = output::data();
    rows::write(rows, format, &mut out)?;
    // Dropping the buffer would hide a write error.
    out.flush()?;
    if rows.is_empty() && format == Format::Text {
        output::say(&format!("neph list: {if_empty}"));
    }
    Ok(Outcome::Done)
}

fn campaign_rows(store: &dyn Store, args: &Args) -> Result<Vec<CampaignRow>, Failure> {
    let campaigns = store.campaigns()?;
    let id_length = short_length(campaigns.iter().map(|campaign| campaign.id));
    let to_row = |campaign: Campaign| {
        let scenarios = store.scenarios(campaign.id)?.len();
        let experiments = store.experiments(campaign.id)?;
        let mut incomplete = BTreeMap::new();
        for experiment in &experiments {
            if experiment.status != ExperimentStatus::Complete {
                *incomplete
                    .entry(experiment_status(store, experiment)?)
                    .or_default() += 1;
            }
        }
        let (status, next_command) = campaign_status(store, &campaign, &args.workspace)?;
        Ok(CampaignRow {
            id: campaign.id.to_string(),
            name: campaign.name,
            started_unix_ns: campaign.started,
            status: status.to_owned(),
            scenarios: scenarios as u64,
            blocks: campaign.blocks,
            experiments: experiments.len() as u64,
            incomplete,
            id_length,
            offset: args.zone.offset,
            resume_command: next_command,
        })
    };
    campaigns.into_iter().map(to_row).collect()
}

/// The status of a campaign, with the command that continues it if something of it is missing.
pub(crate) fn campaign_status(
    store: &dyn Store,
    campaign: &Campaign,
    workspace: &Workspace,
) -> Result<(&'static str, Option<String>), Failure> {
    let is_running = campaign.status == CampaignStatus::Running;
    let status = if is_cut_off(store, is_running)? {
        CampaignStatus::Interrupted
    } else {
        campaign.status
    };
    let is_incomplete = matches!(
        status,
        CampaignStatus::Interrupted | CampaignStatus::Incomplete
    );
    let option = workspace.option();
    let next_command = is_incomplete.then(|| {
        // A campaign without a plan (neph flows --save) cannot be continued, only shown.
        if campaign.plan_text.is_empty() {
            format!("neph report {}{option} --everything", campaign.id)
        } else {
            let control = controller_option(&campaign.plan_text);
            format!("neph resume {}{option}{control}", campaign.id)
        }
    });
    Ok((status.name(), next_command))
}

/// The option that names the controller, if agents carry the plan out. The store does not have its folder.
fn controller_option(plan_text: &str) -> &'static str {
    match plan::parse(&Source::new("plan", plan_text)) {
        Ok(plan) if !plan.agents.is_empty() => " --control FOLDER",
        _ => "",
    }
}

/// The number of stored messages of these experiments, with any outcome.
pub(crate) fn count_stored_messages<'e>(
    store: &dyn Store,
    experiments: impl IntoIterator<Item = &'e Experiment>,
) -> Result<u64, Failure> {
    let mut experiments = experiments.into_iter();
    experiments.try_fold(0, |sum, experiment| {
        // Ended experiments have counts.
        Ok(sum + FlowNumbers::of(store, experiment, &mut 0)?.messages)
    })
}

/// The status of an experiment.
pub(crate) fn experiment_status(
    store: &dyn Store,
    experiment: &Experiment,
) -> Result<&'static str, Failure> {
    let is_running = experiment.status == ExperimentStatus::Running;
    let status = if is_cut_off(store, is_running)? {
        ExperimentStatus::Interrupted
    } else {
        experiment.status
    };
    Ok(status.name())
}

/// Maximum number of messages read for the medians of fleets without a stored median: more would
/// take too long.
pub(crate) const MAX_READ_MESSAGES: u64 = 20_000_000;

/// One row per experiment of `campaign`. The median of a fleet is its median RTT, as in `neph run`.
pub(crate) fn experiment_rows(
    store: &dyn Store,
    campaign: &Campaign,
    offset: UtcOffset,
) -> Result<Vec<ExperimentRow>, Failure> {
    let scenarios = store.scenarios(campaign.id)?;
    let labels = scenario_labels(&scenarios);
    let transfers = scenarios
        .iter()
        .filter(|scenario| scenario.measure().is_transfer());
    let transfers: BTreeSet<ScenarioId> = transfers.map(|scenario| scenario.id).collect();
    let experiments = store.experiments(campaign.id)?;
    let id_length = short_length_in(store, &experiments)?;
    let mut message_budget = MAX_READ_MESSAGES;
    let to_row = |experiment: &Experiment| {
        let mut warnings: Vec<String> = experiment
            .warnings
            .iter()
            .map(ToString::to_string)
            .collect();
        warnings.extend(removed_data_text(store, experiment)?);
        let flow_numbers = FlowNumbers::of(store, experiment, &mut message_budget)?;
        let unknown_labels = || {
            [
                experiment.scenario.to_string(),
                experiment.scenario.to_string(),
            ]
        };
        let label = labels.get(&experiment.scenario).cloned();
        let [scenario, scenario_shown] = label.unwrap_or_else(unknown_labels);
        Ok(ExperimentRow {
            id: experiment.id.to_string(),
            started_unix_ns: experiment.started,
            block: experiment.block,
            attempt: experiment.attempt,
            scenario,
            status: experiment_status(store, experiment)?.to_owned(),
            messages: flow_numbers.messages,
            lost: flow_numbers.lost,
            response_p50_ns: flow_numbers.p50.time(),
            quantities: QuantityRow::of_results(experiment.quantities.as_ref()),
            warnings: warnings.join("; "),
            errors: flow_numbers.errors,
            id_length,
            offset,
            scenario_shown,
            p50: flow_numbers.p50,
            is_transfer: transfers.contains(&experiment.scenario),
            transfer_result: experiment.quantities.as_ref().map(Quantities::in_a_line),
        })
    };
    experiments.iter().map(to_row).collect()
}

/// The median response time of an experiment.
pub(crate) fn median_of(store: &dyn Store, experiment: &Experiment) -> Result<P50, Failure> {
    let mut message_budget = MAX_READ_MESSAGES;
    Ok(FlowNumbers::of(store, experiment, &mut message_budget)?.p50)
}

/// The data of an experiment that a retention policy has removed.
fn removed_data_text(
    store: &dyn Store,
    experiment: &Experiment,
) -> Result<Option<String>, Failure> {
    let reduction = store.reduction(experiment.id)?;
    Ok(reduction.map(|reduction| match reduction.minutes_removed {
        None => {
            let day = utc(reduction.at);
            format!("messages replaced by a histogram for each minute on {day}")
        }
        Some(at) => format!("messages and histograms removed on {}", utc(at)),
    }))
}

/// Scenarios by id.
pub(crate) fn scenarios_by_id(scenarios: Vec<Scenario>) -> BTreeMap<ScenarioId, Scenario> {
    scenarios
        .into_iter()
        .map(|scenario| (scenario.id, scenario))
        .collect()
}

/// The labels of each scenario: complete, and without the common part.
fn scenario_labels(scenarios: &[Scenario]) -> BTreeMap<ScenarioId, [String; 2]> {
    let labels = scenarios.iter().zip(Scenario::labels_apart(scenarios));
    labels
        .map(|(scenario, shown)| (scenario.id, [scenario.label(), shown]))
        .collect()
}

/// Numbers of an experiment's main flow.
struct FlowNumbers {
    messages: u64,
    lost: u64,
    errors: u64,
    /// The median response time.
    p50: P50,
}

impl FlowNumbers {
    /// The stored counts of an ended experiment; otherwise the messages recorded so far are counted.
    fn of(
        store: &dyn Store,
        experiment: &Experiment,
        message_budget: &mut u64,
    ) -> Result<Self, Failure> {
        if store.reduction(experiment.id)?.is_some() {
            return Self::from_minutes(store, experiment);
        }
        if experiment.fleet.is_some() {
            return Self::from_store(store, experiment, message_budget);
        }
        let mut tally = Tally::default();
        let mut times: Vec<Span> = Vec::new();
        store
            .visit_messages(experiment.id, &mut |batch| {
                for message in batch.iter().filter(|message| message.flow.0 == 0) {
                    tally.count(message.outcome);
                    times.extend(message.ledger().map(|ledger| ledger.response_time()));
                }
                Ok(())
            })
            .map_err(Failure::refused)?;
        if experiment.status != ExperimentStatus::Running {
            tally = experiment.tally;
        }
        Ok(Self {
            messages: tally.messages,
            lost: tally.lost,
            errors: tally.errors,
            p50: P50::of(times, tally.without_response()),
        })
    }

    /// If the messages were reduced: the stored counts, and the median from the histograms per minute.
    fn from_minutes(store: &dyn Store, experiment: &Experiment) -> Result<Self, Failure> {
        let stored_tally = experiment.tally;
        let histogram = MergedMinutes::load(store, experiment)?;
        let p50 = histogram.quantile(500).or(experiment.response_p50);
        Ok(Self {
            messages: stored_tally.messages,
            lost: stored_tally.lost,
            errors: stored_tally.errors,
            p50: P50::of_fleet(p50, &stored_tally),
        })
    }

    /// The stored median of an ended fleet. Otherwise the messages are read, for ended fleets at
    /// most `message_budget`.
    fn from_store(
        store: &dyn Store,
        experiment: &Experiment,
        message_budget: &mut u64,
    ) -> Result<Self, Failure> {
        let stored_tally = experiment.tally;
        let flow_numbers = Self {
            messages: stored_tally.messages,
            lost: stored_tally.lost,
            errors: stored_tally.errors,
            p50: P50::of_fleet(experiment.response_p50, &stored_tally),
        };
        let is_over = experiment.status != ExperimentStatus::Running;
        let is_known = flow_numbers.p50 != P50::TooFew || stored_tally.replies == 0;
        if is_over && (is_known || stored_tally.messages > *message_budget) {
            return Ok(flow_numbers);
        }
        let result = neph_campaign::stored_fleet_summary(store, experiment.id);
        let (tally, p50) = result.map_err(Failure::refused)?;
        let p50 = P50::of_fleet(p50, &tally);
        *message_budget = message_budget.saturating_sub(tally.messages);
        if is_over {
            return Ok(Self {
                p50,
                ..flow_numbers
            });
        }
        Ok(Self {
            messages: tally.messages,
            lost: tally.lost,
            errors: tally.errors,
            p50,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
