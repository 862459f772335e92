//! Figures of one experiment while its messages pass by: the tally, lateness, round trips, alarms.
//!
//! Sits between the carrier and the store's recorder; keeps 16 bytes a message, not the
//! messages.

use std::sync::{Arc, Mutex, MutexGuard};

use neph_model::alarm::Quantile;
use neph_model::{
    Answers, Event, EventKind, ExperimentId, FleetMessage, FleetOutcome, FleetReply, FlowIndex,
    Message, Outcome, ReadBy, RecordError, Recorder, Records, Sample, Span, Tally,
};
use neph_stats::Precision;
use neph_store::{SentWithin, Store, StoreError};

use crate::alarm_evaluator::AlarmEvaluator;
use crate::residence_times::ResidenceTimes;
use crate::span_histogram::SpanHistogram;

/// The p99 of the sender's lateness uses nearest rank: below this many values it is the largest
/// value.
const MIN_P99_VALUES: usize = 100;
/// Running figures have three exact digits; those of an ended experiment are exact.
const RESPONSE_PRECISION: Precision = Precision::one_part_in(2_048);

/// What has been seen so far of an experiment's main flow.
#[derive(Debug)]
pub(crate) struct Meter {
    tally: Tally,
    /// Answers of messages without a valid reply.
    answers: Answers,
    /// Sender lateness, nanoseconds.
    lateness: Vec<i64>,
    /// Of a fleet, whose messages are too many to keep a number of each.
    fleet_lateness: Option<SpanHistogram>,
    /// Of a fleet's requests at its peer.
    residence_times: ResidenceTimes,
    /// Replied messages that lack a timestamp of their path, see [`lacks_timestamps`].
    unstamped_replies: u64,
    connections_lost: u32,
    /// Response times of replies.
    response: SpanHistogram,
    /// The same times, nanoseconds; none of a fleet.
    response_times: Vec<i64>,
    /// The peer is a reflector, so its receive timestamp is to be expected.
    is_reflector: bool,
    evaluator: AlarmEvaluator,
}

/// Running figures of a scenario's experiment, for people who watch. Response times count from the
/// scheduled send time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunningFigures {
    /// How the messages ended so far.
    pub tally: Tally,
    /// Least response time.
    pub min: Option<Span>,
    /// Median response time, lost messages counted as slower than all others; `None` where those
    /// decide.
    pub median: Option<Span>,
    /// 99th percentile, likewise, once there are the 299 messages that it needs.
    pub p99: Option<Span>,
    /// Greatest response time.
    pub max: Option<Span>,
}

impl Meter {
    pub(crate) fn new(is_reflector: bool) -> Self {
        Self {
            tally: Tally::default(),
            answers: Answers::default(),
            lateness: Vec::new(),
            fleet_lateness: None,
            residence_times: ResidenceTimes::default(),
            unstamped_replies: 0,
            connections_lost: 0,
            response: SpanHistogram::new(RESPONSE_PRECISION),
            response_times: Vec::new(),
            is_reflector,
            evaluator: AlarmEvaluator::default(),
        }
    }

    /// The same, with an experiment's alarms.
    pub(crate) fn with_evaluator(mut self, evaluator: AlarmEvaluator) -> Self {
        self.evaluator = evaluator;
        self
    }

    /// Its alarms.
    pub(crate) const fn evaluator(&mut self) -> &mut AlarmEvaluator {
        &mut self.evaluator
    }

    pub(crate) fn record_message(&mut self, message: &Message) {
        if message.flow != FlowIndex(0) {
            return;
        }
        self.evaluator.record_message(message);
        self.tally.count(message.outcome);
        if message.outcome != Outcome::Reply {
            self.answers.count(message.answer);
        }
        self.tally.duplicates += u64::from(message.duplicates);
        self.tally.reordered += u64::from(message.reordered);
        if message.outcome == Outcome::Reply {
            self.record_reply(message);
        }
        if let Some(begun) = message.marks.first_action() {
            self.lateness.push((begun - message.marks.intended).nanos());
        }
    }

    fn record_reply(&mut self, message: &Message) {
        self.unstamped_replies += u64::from(lacks_timestamps(message, self.is_reflector));
        if let Some(ledger) = message.ledger() {
            let response_time = ledger.response_time();
            self.response.record(response_time);
            self.response_times.push(response_time.nanos());
        }
    }

    pub(crate) fn record_event(&mut self, event: &Event) {
        if event.flow != FlowIndex(0) {
            return;
        }
        match event.kind {
            EventKind::LateReply => self.tally.late += 1,
            EventKind::ConnectionLost => self.connections_lost += 1,
            _ => {}
        }
    }

    /// Takes note of a fleet's messages. Its response time is the network's round trip.
    pub(crate) fn record_fleet(&mut self, messages: &[FleetMessage]) {
        self.evaluator.record_fleet(messages);
        for message in messages {
            self.tally.messages += 1;
            match &message.outcome {
                FleetOutcome::Reply(reply) => self.record_fleet_reply(reply),
                FleetOutcome::Lost => self.tally.lost += 1,
                FleetOutcome::Failed => self.tally.failed += 1,
            }
            self.fleet_lateness
                .get_or_insert_with(|| SpanHistogram::new(RESPONSE_PRECISION))
                .record(message.late);
        }
    }

    fn record_fleet_reply(&mut self, reply: &FleetReply) {
        self.tally.replies += 1;
        self.tally.duplicates += u64::from(reply.copies);
        self.unstamped_replies += u64::from(reply.read_by == ReadBy::Program);
        self.response.record(reply.network());
        self.residence_times.record_reply(reply);
    }

    /// What only the carrier counted: replies that came after their message was counted lost.
    pub(crate) const fn set_late_replies(&mut self, late: u64) {
        self.tally.late = late;
    }

    pub(crate) const fn tally(&self) -> Tally {
        self.tally
    }
    /// How often each answer came to messages without a valid reply.
    pub(crate) const fn answers(&self) -> &Answers {
        &self.answers
    }
    pub(crate) const fn connections_lost(&self) -> u32 {
        self.connections_lost
    }

    /// How long a fleet's requests stayed at their peer.
    pub(crate) const fn residence_times(&self) -> &ResidenceTimes {
        &self.residence_times
    }

    /// Share of replied messages that lack timestamps, percent; 0 without replies.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub(crate) fn unstamped_percent(&self) -> f64 {
        if self.tally.replies == 0 {
            return 0.0;
        }
        self.unstamped_replies as f64 * 100.0 / self.tally.replies as f64
    }

    /// Median and 99th percentile of the sender's lateness, by nearest rank; the greatest instead
    /// of the percentile below 100 messages.
    pub(crate) fn lateness(&self) -> Option<(Span, Span)> {
        if let Some(fleet) = &self.fleet_lateness {
            return fleet.at_permille(500).zip(fleet.at_permille(990));
        }
        let mut sorted = self.lateness.clone();
        sorted.sort_unstable();
        let last = *sorted.last()?;
        let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        let p99 = if sorted.len() < MIN_P99_VALUES {
            last
        } else {
            rank(99)
        };
        Some((Span::from_nanos(rank(50)), Span::from_nanos(p99)))
    }

    /// Interpolated between two messages (type 7), as in a report. Messages without a reply count as
    /// slower than all others. `None` if one of those decides.
    fn quantile(&self, percent: u64, of_rank: impl Fn(u128) -> Option<Span>) -> Option<Span> {
        let total = self.response.len() + self.messages_without_time();
        // Of a hundred parts of the way from one message to the next.
        let position = total.checked_sub(1)? * percent;
        let (rank, share) = (position / 100 + 1, position % 100);
        let low = of_rank(rank.into())?;
        if share == 0 {
            return Some(low);
        }
        let width = of_rank(u128::from(rank) + 1)? - low;
        let share = i64::try_from(share).unwrap_or(0);
        let (hundreds, remainder) = (width.nanos() / 100, width.nanos() % 100);
        Some(low + Span::from_nanos(hundreds * share + (remainder * share + 50) / 100))
    }

    /// Messages without a time, which rank above every reply. A fleet's time is the network's, so what
    /// was not sent does not belong to its population.
    const fn messages_without_time(&self) -> u64 {
        match self.fleet_lateness {
            None => self.tally.without_response_time(),
            Some(_) => self.tally.without_service_time(),
        }
    }

    /// Figures of an experiment under way.
    pub(crate) fn figures(&self) -> RunningFigures {
        self.figures_by(|rank| self.response.of_rank(rank))
    }

    /// Figures of an ended experiment: those of its stored messages, to the nanosecond. A fleet has too
    /// many messages for that.
    pub(crate) fn final_figures(&self) -> RunningFigures {
        if self.fleet_lateness.is_some() {
            return self.figures();
        }
        let mut times = self.response_times.clone();
        times.sort_unstable();
        self.figures_by(|rank| {
            let index = usize::try_from(rank.checked_sub(1)?).ok()?;
            times.get(index).copied().map(Span::from_nanos)
        })
    }

    fn figures_by(&self, of_rank: impl Fn(u128) -> Option<Span>) -> RunningFigures {
        let count = self.response.len() + self.messages_without_time();
        let has_enough_messages = count >= Quantile::P99.needs;
        RunningFigures {
            tally: self.tally,
            min: self.response.shortest(),
            median: self.quantile(50, &of_rank),
            p99: self.quantile(99, &of_rank).filter(|_| has_enough_messages),
            max: self.response.longest(),
        }
    }
}

/// The median response time of a fleet's kept messages, as it was reported while they were
/// measured, and how they ended so far.
///
/// # Errors
/// The store refused.
pub fn stored_fleet_summary(
    store: &dyn Store,
    experiment: ExperimentId,
) -> Result<(Tally, Option<Span>), StoreError> {
    let mut meter = Meter::new(false);
    store.visit_fleet(experiment, SentWithin::ALL, &mut |batch| {
        meter.record_fleet(batch);
        Ok(())
    })?;
    Ok((meter.tally, meter.figures().median))
}

/// Whether a replied message lacks a kernel timestamp that its path should give: the two local ones, and
/// the reflector's receive timestamp. The reflector's send timestamp is not counted. It travels with the
/// next reply, so the last message of every connection always lacks it. A connection attempt has no
/// timestamps at all.
fn lacks_timestamps(message: &Message, is_reflector: bool) -> bool {
    let marks = &message.marks;
    if marks.app_send.is_none() {
        return false;
    }
    marks.nic_tx.is_none() || marks.nic_rx.is_none() || (is_reflector && marks.peer.rx.is_none())
}

/// A recorder that shows the meter what it records.
#[derive(Debug)]
pub(crate) struct MeteredRecorder {
    inner: Box<dyn Recorder>,
    meter: Arc<Mutex<Meter>>,
}

impl MeteredRecorder {
    pub(crate) fn new(inner: Box<dyn Recorder>, meter: Arc<Mutex<Meter>>) -> Self {
        Self { inner, meter }
    }
    /// The recorder it was made of.
    pub(crate) fn into_inner(self) -> Box<dyn Recorder> {
        self.inner
    }

    /// Records what was measured; it is safe when this returns.
    pub(crate) fn record_all(&mut self, records: &Records) -> Result<(), RecordError> {
        records.keep_in(self)
    }

    /// No message comes any more: what the alarms find then is recorded too.
    pub(crate) fn finish(&mut self) -> Result<(), RecordError> {
        lock(&self.meter).evaluator.finish();
        self.record_alarms()
    }

    /// Alarms that were raised or have ended are stored with the messages that caused them.
    fn record_alarms(&mut self) -> Result<(), RecordError> {
        let changes = lock(&self.meter).evaluator.take_unrecorded();
        for change in changes {
            self.inner.event(&Event {
                flow: FlowIndex(0),
                at: change.at.nanos(),
                kind: if change.is_raised {
                    EventKind::AlarmRaised
                } else {
                    EventKind::AlarmOver
                },
                text: change.to_text("round trip"),
            })?;
        }
        Ok(())
    }
}

/// The meter, also after a panic in another thread: its counts are whole after every call.
pub(crate) fn lock(meter: &Mutex<Meter>) -> MutexGuard<'_, Meter> {
    meter
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The meter counts what has been recorded, never more.
impl Recorder for MeteredRecorder {
    fn experiment(&self) -> ExperimentId {
        self.inner.experiment()
    }
    fn messages(&mut self, messages: &[Message]) -> Result<(), RecordError> {
        self.inner.messages(messages)?;
        let mut meter = lock(&self.meter);
        for message in messages {
            meter.record_message(message);
        }
        drop(meter);
        self.record_alarms()
    }
    fn fleet(&mut self, messages: &[FleetMessage]) -> Result<(), RecordError> {
        self.inner.fleet(messages)?;
        lock(&self.meter).record_fleet(messages);
        self.record_alarms()
    }
    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        self.inner.event(event)?;
        lock(&self.meter).record_event(event);
        Ok(())
    }
    fn sample(&mut self, sample: &Sample) -> Result<(), RecordError> {
        self.inner.sample(sample)
    }
}

#[cfg(test)]
mod tests;
