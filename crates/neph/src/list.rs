//! `neph list`: the campaigns of a workspace, or the experiments of one campaign.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args as ClapArgs;
use neph_model::{
    Campaign, CampaignStatus, Experiment, ExperimentStatus, Scenario, ScenarioId, Span, Tally,
    UtcOffset, Wall,
};
use neph_store::Store;

use crate::exit::{Failure, Outcome};
use crate::p50::P50;
use crate::sheet::{Cell, Column, Format, Sheet};
use crate::when::Zone;
use crate::workspace::{Workspace, campaign, is_cut_off, short_length, short_length_in};
use crate::{output, when};

/// Options of `neph list`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// List this campaign's experiments: 'last', a name, an id or the beginning of one
    campaign: Option<String>,
    #[command(flatten)]
    workspace: Workspace,
    /// How to write the list
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    zone: Zone,
}

/// Lists.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let store = args.workspace.read()?;
    let sheet = match &args.campaign {
        None => campaigns(store.as_ref(), args.zone.offset)?,
        Some(name) => {
            let campaign = campaign(store.as_ref(), name)?;
            experiments(store.as_ref(), &campaign, args.zone.offset)?
        }
    };
    let mut out = output::data();
    sheet.write(args.format, &mut out)?;
    // Dropping the buffer would swallow a refusal.
    out.flush()?;
    if sheet.rows.is_empty() && args.format == Format::Text {
        output::say("neph list: nothing has been measured here yet");
    }
    Ok(Outcome::Done)
}

const CAMPAIGN_COLUMNS: [Column; 7] = [
    Column::left("ID", "id"),
    Column::left("NAME", "name"),
    Column::left("STARTED", "started_unix_ns"),
    Column::left("STATUS", "status"),
    Column::right("SCENARIOS", "scenarios"),
    Column::right("BLOCKS", "blocks"),
    Column::right("EXPERIMENTS", "experiments"),
];

fn campaigns(store: &dyn Store, offset: UtcOffset) -> Result<Sheet, Failure> {
    let all = store.campaigns().map_err(Failure::refused)?;
    let length = short_length(all.iter().map(|one| one.id));
    let mut sheet = Sheet::new(&CAMPAIGN_COLUMNS);
    for one in all {
        let scenarios = store.scenarios(one.id).map_err(Failure::refused)?.len();
        let experiments = store.experiments(one.id).map_err(Failure::refused)?.len();
        sheet.rows.push(vec![
            id(&one.id.to_string(), length),
            Cell::text(&one.name),
            moment(one.started, offset),
            campaign_status(store, &one)?,
            Cell::count(scenarios as u64),
            Cell::count(one.blocks.into()),
            Cell::count(experiments as u64),
        ]);
    }
    Ok(sheet)
}

/// How a campaign stands, with the way on where nobody carries it out any more.
pub(crate) fn campaign_status(store: &dyn Store, campaign: &Campaign) -> Result<Cell, Failure> {
    let is_running = campaign.status == CampaignStatus::Running;
    if !is_cut_off(store, is_running)? {
        return Ok(Cell::text(campaign.status.name()));
    }
    let interrupted = CampaignStatus::Interrupted.name();
    // Without a plan (neph flows --save) there is nothing to go on with, only something to look at.
    let way_on = if campaign.plan_text.is_empty() {
        format!("neph report {} --everything", campaign.id)
    } else {
        format!("neph resume {}", campaign.id)
    };
    let shown = format!("{interrupted} ({way_on})");
    Ok(Cell::new(shown, interrupted))
}

/// How many messages of these experiments are kept, whatever became of them.
pub(crate) fn kept<'e>(
    store: &dyn Store,
    experiments: impl IntoIterator<Item = &'e Experiment>,
) -> Result<u64, Failure> {
    let mut experiments = experiments.into_iter();
    experiments.try_fold(0, |sum, one| {
        // Those that have ended are counted already.
        Ok(sum + Seen::of(store, one, &mut 0)?.messages)
    })
}

/// How an experiment stands.
pub(crate) fn experiment_status(store: &dyn Store, one: &Experiment) -> Result<Cell, Failure> {
    let is_running = one.status == ExperimentStatus::Running;
    let status = if is_cut_off(store, is_running)? {
        ExperimentStatus::Interrupted
    } else {
        one.status
    };
    Ok(Cell::text(status.name()))
}

const EXPERIMENT_COLUMNS: [Column; 10] = [
    Column::left("ID", "id"),
    Column::left("STARTED", "started_unix_ns"),
    Column::right("BLOCK", "block"),
    Column::right("TRY", "attempt"),
    Column::left("SCENARIO", "scenario"),
    Column::left("STATUS", "status"),
    Column::right("N", "messages"),
    Column::right("LOST", "lost"),
    Column::right("P50", "response_p50_ns"),
    Column::left("FLAGS", "warnings"),
];

/// Of fleets whose median was not kept, so many messages are read for one sheet: more would take longer
/// than people wait.
pub(crate) const MOST_READ: u64 = 20_000_000;

/// One row for each experiment of `campaign`; the p50 is of response times, lost messages counted
/// as slower than all others. A fleet's is that of its network's round trips, as `neph run` tells it.
pub(crate) fn experiments(
    store: &dyn Store,
    campaign: &Campaign,
    offset: UtcOffset,
) -> Result<Sheet, Failure> {
    let labels = labels(&store.scenarios(campaign.id).map_err(Failure::refused)?);
    let all = store.experiments(campaign.id).map_err(Failure::refused)?;
    let length = short_length_in(store, &all)?;
    let mut sheet = Sheet::new(&EXPERIMENT_COLUMNS);
    let mut unread = MOST_READ;
    for one in &all {
        let warnings: Vec<String> = one.warnings.iter().map(ToString::to_string).collect();
        let seen = Seen::of(store, one, &mut unread)?;
        sheet.rows.push(vec![
            id(&one.id.to_string(), length),
            moment(one.started, offset),
            Cell::block(one.block),
            Cell::count(one.attempt.into()),
            labels
                .get(&one.scenario)
                .cloned()
                .unwrap_or_else(|| Cell::text(one.scenario.to_string())),
            experiment_status(store, one)?,
            Cell::count(seen.messages),
            lost(&seen),
            Cell::new(seen.p50.to_string(), seen.p50.time().map(Span::nanos)),
            Cell::text(warnings.join("; ")),
        ]);
    }
    Ok(sheet)
}

/// Scenarios by their identity.
pub(crate) fn by_id(scenarios: Vec<Scenario>) -> BTreeMap<ScenarioId, Scenario> {
    scenarios.into_iter().map(|one| (one.id, one)).collect()
}

/// The labels of a campaign's scenarios: for people without what all of them share, for programs whole.
fn labels(scenarios: &[Scenario]) -> BTreeMap<ScenarioId, Cell> {
    let apart = scenarios.iter().zip(Scenario::labels_apart(scenarios));
    apart
        .map(|(one, shown)| (one.id, Cell::new(shown, one.label())))
        .collect()
}

fn id(id: &str, length: usize) -> Cell {
    Cell::new(&id[..length.min(id.len())], id)
}

/// A moment at an offset from UTC; the number is the time in UTC whatever the offset.
pub(crate) fn moment(wall: Wall, offset: UtcOffset) -> Cell {
    Cell::new(when::at(wall, offset), wall.unix_nanos())
}

/// `3 (0.25 %)`: how many, and of how many.
fn lost(seen: &Seen) -> Cell {
    let shown = match seen.lost {
        0 => "0".to_owned(),
        lost => format!("{lost} ({})", share(lost, seen.messages)),
    };
    Cell::new(shown, seen.lost)
}

/// A part of a whole in percent.
#[expect(clippy::cast_precision_loss, reason = "display")]
pub(crate) fn share(part: u64, whole: u64) -> String {
    format!("{:.2} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// An experiment's main flow in numbers.
struct Seen {
    messages: u64,
    lost: u64,
    /// The median response time.
    p50: P50,
}

impl Seen {
    /// What has ended has been counted; of what has not, the messages recorded so far are.
    fn of(store: &dyn Store, experiment: &Experiment, unread: &mut u64) -> Result<Self, Failure> {
        if experiment.fleet.is_some() {
            return Self::of_fleet(store, experiment, unread);
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
            p50: P50::of(times, tally.without_response()),
        })
    }

    /// A fleet that has ended knows its median. Of the others the messages are read, of ended ones no
    /// more than `unread`.
    fn of_fleet(
        store: &dyn Store,
        experiment: &Experiment,
        unread: &mut u64,
    ) -> Result<Self, Failure> {
        let counted = experiment.tally;
        let kept = Self {
            messages: counted.messages,
            lost: counted.lost,
            p50: P50::kept(experiment.response_p50, &counted),
        };
        let is_over = experiment.status != ExperimentStatus::Running;
        let is_known = kept.p50 != P50::TooFew || counted.replies == 0;
        if is_over && (is_known || counted.messages > *unread) {
            return Ok(kept);
        }
        let read = neph_campaign::kept_fleet(store, experiment.id);
        let (tally, p50) = read.map_err(Failure::refused)?;
        let p50 = P50::kept(p50, &tally);
        *unread = unread.saturating_sub(tally.messages);
        if is_over {
            return Ok(Self { p50, ..kept });
        }
        Ok(Self {
            messages: tally.messages,
            lost: tally.lost,
            p50,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
