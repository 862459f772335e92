//! The state of one flow: its base latency, order of packets, witnesses. Its size does not grow with
//! messages. Its path changes are stored with those of all flows.

use neph_model::{FleetMessage, FleetOutcome, Instant, Local, ProbeKind, Slot, Span};

use crate::changes::{ChangeNumber, PathChangeHistory};
use crate::counts::Counts;
use crate::flow_tally::FlowTally;
use crate::loss_by_base::{OutcomeCounts, Silence};
use crate::order::Order;
use crate::recent_outcomes::RecentOutcomes;
use crate::settings::Settings;
use crate::skew::Drift;
use crate::unexplained::Row;
use crate::view::{FlowHistory, PathChange, Segment};
use crate::witness::{Claim, Witness, WitnessConditions};

/// A flow's base latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// When the first message of its first base latency was sent.
    start: Instant<Local>,
    /// The current base latency.
    base: Span,
}

/// Conditions for the evaluation of a flow's message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions<'a> {
    pub(crate) probe: ProbeKind,
    pub(crate) interval: Span,
    /// The drift that all flows shared when it was sent.
    pub(crate) shared_drift: Span,
    pub(crate) settings: &'a Settings,
}

/// A flow that has ended, or a snapshot of a running one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSnapshot {
    slot: Slot,
    source_port: u16,
    until: Instant<Local>,
    level: Option<Level>,
    latest_change: Option<ChangeNumber>,
    tally: Counts,
    recent: RecentOutcomes,
}

impl FlowSnapshot {
    /// Whether it had a base latency at a moment.
    pub(crate) fn has_base_at(&self, at: Instant<Local>) -> bool {
        self.level.is_some_and(|level| level.start <= at)
    }

    /// Like [`Flow::correct`], for a correction after the flow has ended.
    pub(crate) fn correct(
        &mut self,
        after: Span,
        settings: &Settings,
        changes: &mut PathChangeHistory,
    ) -> Option<PathChange> {
        let level = self.level.as_mut()?;
        correct(level, &mut self.latest_change, after, settings, changes)
    }

    /// Its slot in the fleet.
    pub(crate) const fn slot(&self) -> Slot {
        self.slot
    }

    /// When its last message was sent.
    pub(crate) const fn until(&self) -> Instant<Local> {
        self.until
    }

    /// The history of the flow; its classes are not known yet.
    pub(crate) fn history(&self, changes: &PathChangeHistory) -> FlowHistory {
        FlowHistory {
            slot: self.slot,
            source_port: self.source_port,
            segments: self.segments(changes),
            tally: self.tally.to_tally(),
            last: self.recent.to_last_messages(),
        }
    }

    /// Segments between changes, since the first base latency or since the horizon.
    fn segments(&self, changes: &PathChangeHistory) -> Vec<Segment> {
        let Some(level) = self.level else {
            return Vec::new();
        };
        if Some(self.until) <= changes.complete_since() {
            return Vec::new();
        }
        let flow_changes = changes.changes_of_flow(self.latest_change);
        let first_start = changes
            .complete_since()
            .map_or(level.start, |complete_since| {
                complete_since.max(level.start)
            });
        let starts = [first_start]
            .into_iter()
            .chain(flow_changes.iter().map(|change| change.at));
        let ends = flow_changes.iter().map(|change| (change.at, change.before));
        starts
            .zip(ends.chain([(self.until, level.base)]))
            .map(|(from, (until, base))| Segment {
                from,
                until: until.max(from),
                base,
                class: None,
            })
            .collect()
    }
}

/// A new base latency of a flow, from the detector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    /// When the first message with the new latency was sent.
    pub(crate) at: Instant<Local>,
    /// When it was confirmed.
    pub(crate) reported: Instant<Local>,
    /// The latency before, in full precision at its end.
    pub(crate) before: Option<Span>,
    /// The new latency.
    pub(crate) after: Span,
}

/// A running flow.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    source_port: u16,
    nth: u32,
    silence: Silence,
    /// Its latest path change.
    latest_change: Option<ChangeNumber>,
    last: Instant<Local>,
    level: Option<Level>,
    order: Order,
    witness: Witness,
}

/// The surroundings of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangeContext<'a> {
    pub(crate) slot: Slot,
    /// Time between two messages of a flow.
    pub(crate) interval: Span,
    pub(crate) settings: &'a Settings,
    /// Drift of the peer's clock.
    pub(crate) drift: Drift,
}

impl Flow {
    /// The flow that begins with this message; its slot had `nth` flows before.
    pub(crate) fn from_first_message(message: &FleetMessage, nth: u32) -> Self {
        Self {
            source_port: message.source_port,
            nth,
            silence: Silence::default(),
            latest_change: None,
            last: message.sent,
            level: None,
            order: Order::default(),
            witness: Witness::default(),
        }
    }

    /// Whether a message belongs to this flow, and not to the next one on its slot.
    pub(crate) const fn owns(&self, message: &FleetMessage) -> bool {
        self.source_port == message.source_port
    }

    /// Number of flows that its slot had before.
    pub(crate) const fn nth(&self) -> u32 {
        self.nth
    }

    /// Adds the next message; returns what it adds to the tally.
    pub(crate) fn push(
        &mut self,
        message: &FleetMessage,
        conditions: Conditions<'_>,
        drift: &mut Drift,
    ) -> FlowTally {
        let Conditions {
            probe,
            interval,
            shared_drift,
            settings,
        } = conditions;
        let tally = self.order.push(message, probe, interval);
        if let Some(reply) = message.reply() {
            self.last = self.last.max(message.sent);
            let witness_conditions = WitnessConditions {
                base: self.level.map(|level| level.base),
                shared_drift,
                tolerance: settings.detection.tolerance,
                window: settings.detection.window,
            };
            self.witness.push(message, reply, witness_conditions, drift);
        }
        tally
    }

    /// Outcomes that the next message adds at the flow's base latency; `None` without one.
    pub(crate) fn outcome_counts(
        &mut self,
        outcome: &FleetOutcome,
        silence_length: u64,
    ) -> Option<(Span, OutcomeCounts)> {
        let outcome_counts = self.silence.push(outcome, silence_length);
        self.level.map(|level| (level.base, outcome_counts))
    }

    /// New messages, since the last call, at levels that were not reported.
    pub(crate) fn take_unexplained(&mut self) -> impl Iterator<Item = Row> + use<> {
        self.witness.take_unexplained()
    }

    /// Sets a new base latency; every one but the first is a path change.
    pub(crate) fn shift(
        &mut self,
        shift: Shift,
        context: ChangeContext<'_>,
        changes: &mut PathChangeHistory,
    ) -> Option<PathChange> {
        let Shift {
            at,
            reported,
            after,
            ..
        } = shift;
        let Some(level) = &mut self.level else {
            self.witness.settle();
            self.level = Some(Level {
                start: at,
                base: after,
            });
            return None;
        };
        // In full precision at its end.
        let before = shift.before.unwrap_or(level.base);
        level.base = after;
        let change = PathChange {
            slot: context.slot,
            source_port: self.source_port,
            at,
            reported,
            before,
            after,
            evidence: self.witness.collect_evidence(&Claim {
                at,
                before,
                after,
                tolerance: context.settings.detection.tolerance,
                window: context.settings.detection.window,
                interval: context.interval,
                overtaking: self.order.overtaking(),
                drift: context.drift,
            }),
        };
        self.latest_change = Some(changes.push(change, self.latest_change));
        Some(change)
    }

    /// Withdraws the latest level: the flow had this latency all along. If it equals the level before, the
    /// change is withdrawn and returned.
    pub(crate) fn correct(
        &mut self,
        after: Span,
        settings: &Settings,
        changes: &mut PathChangeHistory,
    ) -> Option<PathChange> {
        self.witness.settle();
        let level = self.level.as_mut()?;
        correct(level, &mut self.latest_change, after, settings, changes)
    }

    /// A snapshot as if it ended now; `base` is its base latency in full precision.
    pub(crate) fn snapshot(&self, slot: Slot, base: Option<Span>) -> FlowSnapshot {
        let level = self.level.map(|level| Level {
            base: base.unwrap_or(level.base),
            ..level
        });
        FlowSnapshot {
            slot,
            source_port: self.source_port,
            until: self.last,
            level,
            latest_change: self.latest_change,
            tally: self.order.tally(),
            recent: self.order.outcomes(),
        }
    }
}

/// Corrects a flow's level and the link to its latest change, for [`Flow::correct`].
fn correct(
    level: &mut Level,
    latest_number: &mut Option<ChangeNumber>,
    after: Span,
    settings: &Settings,
    changes: &mut PathChangeHistory,
) -> Option<PathChange> {
    level.base = after;
    let number = (*latest_number)?;
    let before = changes.get(number)?.before;
    if (before - after).abs() > settings.detection.tolerance {
        changes.set_latency_after(number, after);
        return None;
    }
    level.base = before;
    let (change, previous) = changes.withdraw(number)?;
    *latest_number = previous;
    Some(change)
}
