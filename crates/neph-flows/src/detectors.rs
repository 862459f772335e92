//! A fleet's path changes according to one detector, to compare detectors on the same messages.
//!
//! Owns which detector gets which messages; the detectors are those of `neph-stats`. A detector that
//! evaluates each flow separately keeps nothing of other flows.

use std::collections::{BTreeMap, VecDeque};

use neph_model::{ChangeId, Fleet, FleetMessage, Instant, Local, Slot, Span};
use neph_stats::{
    BaseLatency, ChangePenalty, Detection as Rule, StatsError, change_points, change_sample,
    window_minima,
};

use crate::digest::Digest;
use crate::settings::Settings;

/// Detectors of path changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detector {
    /// The source's rule, and the additional conditions of [`Digest`], which use all flows together.
    Guard,
    /// The source's rule alone, flow by flow.
    Rule,
    /// Change points of the window's minima, flow by flow, after the flow has ended.
    ChangePoints,
}

/// A path change according to a detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetectedChange {
    /// The flow's slot in the fleet.
    pub slot: Slot,
    /// Local source port.
    pub source_port: u16,
    /// When the first message with the new latency was sent.
    pub at: Instant<Local>,
    /// The reply that confirmed it; `None` for a retrospective detector.
    pub reported: Option<Instant<Local>>,
    /// The base latency before.
    pub before: Span,
    /// The base latency after it.
    pub after: Span,
}

impl DetectedChange {
    /// The identity of the change in its fleet.
    pub const fn id(&self) -> ChangeId {
        ChangeId {
            at: self.at,
            slot: self.slot,
            source_port: self.source_port,
        }
    }
}

/// The changes that a detector found in a fleet's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectedChanges {
    /// By time.
    pub changes: Vec<DetectedChange>,
    /// If more occurred than are kept: changes until this moment are missing.
    pub forgotten: Option<Instant<Local>>,
}

/// A detector that processes a fleet's messages; those of one flow must be in order. Memory grows with flows
/// and changes. [`Detector::ChangePoints`] also keeps 16 bytes per reply until its flow ends.
#[derive(Debug)]
pub struct DetectorRun(DetectorState);

#[derive(Debug)]
enum DetectorState {
    Guard(Box<Digest>),
    PerFlow(PerFlow),
}

/// A detector that evaluates each flow separately.
#[derive(Debug)]
struct PerFlow {
    rule: Rule,
    is_offline: bool,
    /// The current flow of each slot.
    slots: BTreeMap<Slot, FlowDetector>,
    changes: Vec<DetectedChange>,
}

#[derive(Debug)]
struct FlowDetector {
    source_port: u16,
    base: BaseLatency,
    /// Replies: when the request departed, and the round trip. All of them for change points, else as many as
    /// the rule's window holds.
    replies: VecDeque<(Instant<Local>, Span)>,
}

impl DetectorRun {
    /// A fleet without messages yet.
    ///
    /// # Errors
    /// When the numbers of the detection are inconsistent.
    pub fn new(fleet: &Fleet, settings: Settings, detector: Detector) -> Result<Self, StatsError> {
        if detector == Detector::Guard {
            let digest = Digest::new(fleet, settings)?.without_events();
            return Ok(Self(DetectorState::Guard(Box::new(digest))));
        }
        Ok(Self(DetectorState::PerFlow(PerFlow {
            rule: settings.detection.rule()?,
            is_offline: detector == Detector::ChangePoints,
            slots: BTreeMap::new(),
            changes: Vec::new(),
        })))
    }

    /// Adds the next message.
    pub fn push(&mut self, message: &FleetMessage) {
        match &mut self.0 {
            DetectorState::Guard(digest) => digest.push(message),
            DetectorState::PerFlow(flows) => flows.push(message),
        }
    }

    /// Ends the input and returns the result.
    pub fn finish(self) -> DetectedChanges {
        let (mut changes, forgotten): (Vec<DetectedChange>, _) = match self.0 {
            DetectorState::Guard(mut digest) => {
                digest.finish();
                let changes = digest.changes_by_time();
                (
                    changes.iter().map(DetectedChange::of).collect(),
                    digest.horizon(),
                )
            }
            DetectorState::PerFlow(flows) => (flows.finish(), None),
        };
        changes.sort_by_key(|change| (change.at, change.slot));
        DetectedChanges { changes, forgotten }
    }
}

impl DetectedChange {
    const fn of(change: &crate::view::PathChange) -> Self {
        Self {
            slot: change.slot,
            source_port: change.source_port,
            at: change.at,
            reported: Some(change.reported),
            before: change.before,
            after: change.after,
        }
    }
}

impl PerFlow {
    fn push(&mut self, message: &FleetMessage) {
        let Some(reply) = message.reply() else {
            return;
        };
        let slot = message.slot;
        let new_flow = || FlowDetector {
            source_port: message.source_port,
            base: BaseLatency::new(self.rule),
            replies: VecDeque::new(),
        };
        let flow = self.slots.entry(slot).or_insert_with(new_flow);
        if flow.source_port != message.source_port {
            let ended_flow = std::mem::replace(flow, new_flow());
            if self.is_offline {
                ended_flow.find_change_points(slot, &self.rule, &mut self.changes);
            }
        }
        flow.replies.push_back((message.sent, reply.network()));
        if self.is_offline {
            return;
        }
        if flow.replies.len() > self.rule.window() {
            flow.replies.pop_front();
        }
        self.changes.extend(flow.shift(slot));
    }

    fn finish(mut self) -> Vec<DetectedChange> {
        if self.is_offline {
            for (slot, flow) in &self.slots {
                flow.find_change_points(*slot, &self.rule, &mut self.changes);
            }
        }
        self.changes
    }
}

impl FlowDetector {
    /// The result of the rule for the latest reply.
    fn shift(&mut self, slot: Slot) -> Option<DetectedChange> {
        let &(sent, round_trip) = self.replies.back()?;
        let shift = self.base.push(round_trip.nanos())?;
        let last_index = self.replies.len() - 1;
        let first = last_index.saturating_sub(usize::from(shift.since));
        Some(DetectedChange {
            slot,
            source_port: self.source_port,
            at: self.replies.get(first)?.0,
            reported: Some(sent + round_trip),
            before: Span::from_nanos(shift.before?),
            after: Span::from_nanos(shift.after),
        })
    }

    /// The result of change points for all replies.
    fn find_change_points(&self, slot: Slot, rule: &Rule, changes: &mut Vec<DetectedChange>) {
        let round_trips: Vec<i64> = self
            .replies
            .iter()
            .map(|(_, round_trip)| round_trip.nanos())
            .collect();
        let minima = window_minima(&round_trips, rule.window());
        // With too few replies there is no change.
        let Ok(segments) = change_points(&minima, ChangePenalty::of(rule)) else {
            return;
        };
        for pair in segments.windows(2) {
            let (before, after) = (pair[0].level, pair[1].level);
            let first = change_sample(pair[1].from, rule.window(), after > before);
            let Some(&(at, _)) = self.replies.get(first) else {
                continue;
            };
            if (after - before).abs() > rule.tolerance() {
                changes.push(DetectedChange {
                    slot,
                    source_port: self.source_port,
                    at,
                    reported: None,
                    before: Span::from_nanos(before),
                    after: Span::from_nanos(after),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{World, message};

    const ALL_DETECTORS: [Detector; 3] = [Detector::Guard, Detector::Rule, Detector::ChangePoints];

    fn detected_changes(world: &World, detector: Detector) -> Vec<DetectedChange> {
        let mut run =
            DetectorRun::new(&world.fleet(), Settings::default(), detector).expect("the source's");
        world.messages(&world.truth(), |message| run.push(message));
        run.finish().changes
    }

    #[test]
    fn all_detectors_find_exactly_the_changes_of_a_quiet_network() {
        let world = World::default();
        let truth = world.truth();
        let true_change_count: usize = truth.iter().map(|steps| steps.len() - 1).sum();
        assert!(true_change_count > 100, "{true_change_count}");
        for detector in ALL_DETECTORS {
            let changes = detected_changes(&world, detector);
            assert_eq!(changes.len(), true_change_count, "{detector:?}");
            for change in &changes {
                let steps = &truth[change.slot.0 as usize];
                let is_match = steps.windows(2).any(|pair| {
                    let (delay, [from, to]) = (
                        change.at.nanos() - pair[1].0,
                        [pair[0].1, pair[1].1].map(|path| Span::from_micros(world.paths[path])),
                    );
                    let is_near =
                        |base: Span, path: Span| (base - path).abs() < Span::from_micros(200);
                    (0..2 * world.interval.nanos()).contains(&delay)
                        && is_near(change.before, from)
                        && is_near(change.after, to)
                });
                assert!(is_match, "{detector:?}: {change:?} and {steps:?}");
            }
        }
    }

    /// Four messages of one flow meet a queue of 20 ms, which no other flow meets.
    #[test]
    fn only_the_rule_without_guard_reports_a_short_queue_as_a_path_change() {
        let world = World {
            reshuffle_seconds: 0,
            jitter: 0.0,
            ..World::default()
        };
        let truth = world.truth();
        let changes_of = |detector| {
            let mut run =
                DetectorRun::new(&world.fleet(), Settings::default(), detector).expect("numbers");
            world.messages(&truth, |sent| {
                let is_in_queue = sent.slot == Slot(3) && (100..104).contains(&sent.seq);
                let mut sent = *sent;
                if let (true, Some(reply)) = (is_in_queue, sent.reply()) {
                    let round_trip = reply.round_trip.nanos() + 20_000_000;
                    sent = message(3, sent.seq, sent.sent.nanos(), round_trip);
                }
                run.push(&sent);
            });
            run.finish().changes.len()
        };
        assert_eq!(ALL_DETECTORS.map(changes_of)[..2], [0, 2]);
    }

    #[test]
    fn a_replaced_flow_is_no_path_change_for_any_detector() {
        let mut fleet = World::default().fleet();
        fleet.lifetime = Some(Span::from_secs(4));
        for detector in ALL_DETECTORS {
            let mut run = DetectorRun::new(&fleet, Settings::default(), detector).expect("numbers");
            for seq in 0..60_u32 {
                let flow_number = seq / 20;
                let base = 70_000_000 + i64::from(flow_number) * 4_000_000;
                let mut sent = message(0, seq % 20, i64::from(seq) * 200_000_000, base);
                sent.source_port += u16::try_from(flow_number).expect("few");
                run.push(&sent);
            }
            assert_eq!(run.finish().changes, [], "{detector:?}");
        }
    }
}
