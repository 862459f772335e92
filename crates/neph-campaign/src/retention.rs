//! How long messages are kept, and what replaces them: first a histogram of response times for each minute,
//! then the counts of the experiment alone.
//!
//! Owns the policy, which experiments are due, and the minutes of an experiment. The store replaces data.

use std::collections::BTreeMap;

use neph_model::{
    Campaign, CampaignStatus, Experiment, ExperimentId, ExperimentStatus, FleetMessage,
    FleetOutcome, FlowIndex, Message, Minute, Outcome, Span, Tally, Wall,
};
use neph_stats::{Histogram, quantile_needs};
use neph_store::{SentWithin, Store, StoreError};

const MINUTE_NS: i64 = 60_000_000_000;

/// How long what is kept; `None` is forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Messages.
    pub messages: Option<Span>,
    /// The histograms that replace them.
    pub minutes: Option<Span>,
}

impl Default for Retention {
    /// Messages for 30 days, histograms for a year.
    fn default() -> Self {
        let days = |days: i64| Some(Span::from_secs(days * 86_400));
        Self {
            messages: days(30),
            minutes: days(365),
        }
    }
}

/// What happens to an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionKind {
    /// Its messages are replaced by histograms.
    Messages,
    /// Its histograms are removed.
    Minutes,
}

/// An experiment that was kept long enough.
#[derive(Clone, Debug, PartialEq)]
pub struct DueReduction {
    /// The experiment.
    pub experiment: Experiment,
    /// What is due.
    pub kind: ReductionKind,
}

/// What is due of a campaign at `now`, in order of its experiments. One that runs, or was imported, is kept.
///
/// # Errors
/// The store refused.
pub fn due_reductions(
    store: &dyn Store,
    campaign: &Campaign,
    retention: Retention,
    now: Wall,
) -> Result<Vec<DueReduction>, StoreError> {
    if matches!(
        campaign.status,
        CampaignStatus::Running | CampaignStatus::Imported
    ) {
        return Ok(Vec::new());
    }
    let has_expired =
        |limit: Option<Span>, ended: Wall| limit.is_some_and(|span| ended + span <= now);
    let mut due_reductions = Vec::new();
    for experiment in store.experiments(campaign.id)? {
        let Some(ended) = experiment
            .ended
            .filter(|_| experiment.status != ExperimentStatus::Running)
        else {
            continue;
        };
        let kind = match store.reduction(experiment.id)? {
            None if has_expired(retention.messages, ended) => ReductionKind::Messages,
            Some(reduction)
                if reduction.minutes_removed.is_none() && has_expired(retention.minutes, ended) =>
            {
                ReductionKind::Minutes
            }
            _ => continue,
        };
        due_reductions.push(DueReduction { experiment, kind });
    }
    Ok(due_reductions)
}

/// Carries out what is due.
///
/// # Errors
/// The store refused; what it has is whole.
pub fn carry_out_reduction(
    store: &mut dyn Store,
    due: &DueReduction,
    now: Wall,
) -> Result<(), StoreError> {
    let id = due.experiment.id;
    match due.kind {
        ReductionKind::Messages => {
            let minutes = compute_minutes(store, &due.experiment)?;
            store.reduce(id, &minutes, now)
        }
        ReductionKind::Minutes => store.remove_minutes(id, now),
    }
}

#[derive(Debug, Default)]
struct MinuteTotals(BTreeMap<(u32, u32), (Tally, Histogram)>);

impl MinuteTotals {
    fn minute_entry(&mut self, flow: FlowIndex, send_nanos: i64) -> &mut (Tally, Histogram) {
        let minute = u32::try_from(send_nanos.max(0) / MINUTE_NS).unwrap_or(u32::MAX);
        self.0.entry((flow.0, minute)).or_default()
    }

    fn record_message(&mut self, message: &Message) {
        let send_nanos = message.marks.intended.nanos();
        let (tally, times) = self.minute_entry(message.flow, send_nanos);
        tally.count(message.outcome);
        tally.duplicates += u64::from(message.duplicates);
        tally.reordered += u64::from(message.reordered);
        if let Some(ledger) = message.ledger() {
            times.add(ledger.response_time().nanos().max(0).unsigned_abs());
        }
    }

    fn record_fleet(&mut self, message: &FleetMessage) {
        let (tally, times) = self.minute_entry(FlowIndex(0), message.sent.nanos());
        match &message.outcome {
            FleetOutcome::Reply(reply) => {
                tally.count(Outcome::Reply);
                tally.duplicates += u64::from(reply.copies);
                times.add(reply.network().nanos().max(0).unsigned_abs());
            }
            FleetOutcome::Lost => tally.count(Outcome::Lost),
            FleetOutcome::Failed => tally.count(Outcome::Failed),
        }
    }

    fn minutes(self) -> Vec<Minute> {
        let minutes = self.0.into_iter();
        minutes
            .map(|((flow, minute), (tally, times))| Minute {
                flow: FlowIndex(flow),
                minute,
                tally,
                times: times.to_bytes(),
            })
            .collect()
    }
}

/// The minutes of an experiment whose messages are there.
///
/// # Errors
/// The store refused.
pub fn compute_minutes(
    store: &dyn Store,
    experiment: &Experiment,
) -> Result<Vec<Minute>, StoreError> {
    let mut totals = MinuteTotals::default();
    if experiment.fleet.is_none() {
        store.visit_messages(experiment.id, &mut |batch| {
            for message in batch {
                totals.record_message(message);
            }
            Ok(())
        })?;
    } else {
        store.visit_fleet(experiment.id, SentWithin::ALL, &mut |batch| {
            for message in batch {
                totals.record_fleet(message);
            }
            Ok(())
        })?;
    }
    Ok(totals.minutes())
}

/// The main flow of a reduced experiment: all of its minutes together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedMinutes {
    /// How its messages ended.
    pub tally: Tally,
    /// Response times of its replies; of a fleet, round trips of the network.
    times: Histogram,
    /// How many of its minutes there are.
    pub minutes: u64,
    /// Times of a fleet do not count messages that could not be sent.
    is_fleet: bool,
}

impl MergedMinutes {
    /// The minutes of an experiment together.
    ///
    /// # Errors
    /// The store refused.
    pub fn load(store: &dyn Store, experiment: &Experiment) -> Result<Self, StoreError> {
        let mut merged = Self {
            is_fleet: experiment.fleet.is_some(),
            ..Self::default()
        };
        let minutes = store.minutes(experiment.id)?.into_iter();
        for minute in minutes.filter(|minute| minute.flow == FlowIndex(0)) {
            merged.add(experiment.id, &minute)?;
        }
        Ok(merged)
    }

    fn add(&mut self, experiment: ExperimentId, minute: &Minute) -> Result<(), StoreError> {
        let times = Histogram::from_bytes(&minute.times).ok_or(StoreError::Minute {
            experiment,
            minute: minute.minute,
        })?;
        self.times.merge(&times);
        self.minutes += 1;
        let (tally, added) = (&mut self.tally, &minute.tally);
        tally.messages += added.messages;
        tally.replies += added.replies;
        tally.errors += added.errors;
        tally.lost += added.lost;
        tally.failed += added.failed;
        tally.duplicates += added.duplicates;
        tally.reordered += added.reordered;
        Ok(())
    }

    /// The quantile of so many thousandths, to one part in 512. Messages without a reply rank above all
    /// replies: `None` where it lies among them, or where there are too few messages for it.
    pub fn quantile(&self, permille: u32) -> Option<Span> {
        let without_time = if self.is_fleet {
            self.tally.without_service_time()
        } else {
            self.tally.without_response_time()
        };
        let count = self.times.n() + without_time;
        let min_count = quantile_needs(f64::from(permille) / 1000.0).ok()?;
        if count < min_count as u64 {
            return None;
        }
        let rank = (u128::from(count) * u128::from(permille)).div_ceil(1000);
        let nanos = self.times.of_rank(rank)?;
        i64::try_from(nanos).ok().map(Span::from_nanos)
    }

    /// The shortest time, exactly.
    pub fn min(&self) -> Option<Span> {
        let nanos = self.times.min()?;
        i64::try_from(nanos).ok().map(Span::from_nanos)
    }

    /// The longest time, exactly.
    pub fn max(&self) -> Option<Span> {
        let nanos = self.times.max()?;
        i64::try_from(nanos).ok().map(Span::from_nanos)
    }
}

#[cfg(test)]
mod tests;
