//! A fleet's path changes as one detector tells them, so that detectors can be held against each
//! other on the same messages.
//!
//! Owns who asks which detector: how each of them finds a change is `neph-stats`. A detector that
//! looks at each flow for itself keeps nothing of the others.

use std::collections::{BTreeMap, VecDeque};

use neph_model::{ChangeId, Fleet, FleetMessage, Instant, Lane, Own, Span};
use neph_stats::{
    BaseLatency, Detection as Rule, Price, StatsError, change_points, change_sample, window_minima,
};

use crate::digest::Digest;
use crate::settings::Settings;

/// Who tells path changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detector {
    /// The source's rule, and what [`Digest`] asks of a change beside it, from all flows together.
    Guard,
    /// The source's rule and no more, flow by flow.
    Rule,
    /// Change points of the window's minima, flow by flow and after the fact.
    ChangePoints,
}

/// A path change that a detector told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The flow's place in the fleet.
    pub lane: Lane,
    /// Our port.
    pub source_port: u16,
    /// When the first message of the new latency was sent.
    pub at: Instant<Own>,
    /// The reply that made it certain; none where it is told after the fact.
    pub told: Option<Instant<Own>>,
    /// The base latency before.
    pub before: Span,
    /// The base latency since.
    pub after: Span,
}

impl Detected {
    /// What tells it from the others of its fleet.
    pub const fn id(&self) -> ChangeId {
        ChangeId {
            at: self.at,
            lane: self.lane,
            source_port: self.source_port,
        }
    }
}

/// What a detector found in a fleet's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllDetected {
    /// By time.
    pub changes: Vec<Detected>,
    /// Where there were more than are kept: those up to this moment are left out.
    pub forgotten: Option<Instant<Own>>,
}

/// A fleet's messages on their way through a detector. Those of one flow come in the order of their
/// numbers. Memory grows with flows and changes; for [`Detector::ChangePoints`] with replies too, 16
/// bytes each, until their flow is over.
#[derive(Debug)]
pub struct Detecting(By);

#[derive(Debug)]
enum By {
    Guard(Box<Digest>),
    EachFlow(EachFlow),
}

/// A detector that looks at each flow for itself.
#[derive(Debug)]
struct EachFlow {
    rule: Rule,
    afterwards: bool,
    /// The flow that each lane has now.
    lanes: BTreeMap<Lane, OneFlow>,
    found: Vec<Detected>,
}

#[derive(Debug)]
struct OneFlow {
    source_port: u16,
    base: BaseLatency,
    /// Of replies: when the request left, and the round trip. All of them for change points, else as
    /// many as the rule's window holds.
    replies: VecDeque<(Instant<Own>, Span)>,
}

impl Detecting {
    /// A fleet of which nothing was seen yet.
    ///
    /// # Errors
    /// Where the numbers of the detection do not fit together.
    pub fn new(fleet: &Fleet, settings: Settings, detector: Detector) -> Result<Self, StatsError> {
        if detector == Detector::Guard {
            let digest = Digest::new(fleet, settings)?.without_news();
            return Ok(Self(By::Guard(Box::new(digest))));
        }
        Ok(Self(By::EachFlow(EachFlow {
            rule: settings.detection.rule()?,
            afterwards: detector == Detector::ChangePoints,
            lanes: BTreeMap::new(),
            found: Vec::new(),
        })))
    }

    /// The next message.
    pub fn push(&mut self, message: &FleetMessage) {
        match &mut self.0 {
            By::Guard(digest) => digest.push(message),
            By::EachFlow(flows) => flows.push(message),
        }
    }

    /// What was found when nothing more comes.
    pub fn finish(self) -> AllDetected {
        let (mut changes, forgotten): (Vec<Detected>, _) = match self.0 {
            By::Guard(mut digest) => {
                digest.finish();
                let changes = digest.changes_by_time();
                (changes.iter().map(Detected::of).collect(), digest.horizon())
            }
            By::EachFlow(flows) => (flows.finish(), None),
        };
        changes.sort_by_key(|change| (change.at, change.lane));
        AllDetected { changes, forgotten }
    }
}

impl Detected {
    const fn of(change: &crate::view::PathChange) -> Self {
        Self {
            lane: change.lane,
            source_port: change.source_port,
            at: change.at,
            told: Some(change.told),
            before: change.before,
            after: change.after,
        }
    }
}

impl EachFlow {
    fn push(&mut self, message: &FleetMessage) {
        let Some(reply) = message.reply() else {
            return;
        };
        let lane = message.lane;
        let begun = || OneFlow {
            source_port: message.source_port,
            base: BaseLatency::new(self.rule),
            replies: VecDeque::new(),
        };
        let flow = self.lanes.entry(lane).or_insert_with(begun);
        if flow.source_port != message.source_port {
            let over = std::mem::replace(flow, begun());
            if self.afterwards {
                over.look_back(lane, &self.rule, &mut self.found);
            }
        }
        flow.replies.push_back((message.sent, reply.network()));
        if self.afterwards {
            return;
        }
        if flow.replies.len() > self.rule.window() {
            flow.replies.pop_front();
        }
        self.found.extend(flow.shift(lane));
    }

    fn finish(mut self) -> Vec<Detected> {
        if self.afterwards {
            for (lane, flow) in &self.lanes {
                flow.look_back(*lane, &self.rule, &mut self.found);
            }
        }
        self.found
    }
}

impl OneFlow {
    /// What the rule says of the latest reply.
    fn shift(&mut self, lane: Lane) -> Option<Detected> {
        let &(sent, round_trip) = self.replies.back()?;
        let shift = self.base.push(round_trip.nanos())?;
        let newest = self.replies.len() - 1;
        let first = newest.saturating_sub(usize::from(shift.since));
        Some(Detected {
            lane,
            source_port: self.source_port,
            at: self.replies.get(first)?.0,
            told: Some(sent + round_trip),
            before: Span::from_nanos(shift.before?),
            after: Span::from_nanos(shift.after),
        })
    }

    /// What change points say of all replies.
    fn look_back(&self, lane: Lane, rule: &Rule, found: &mut Vec<Detected>) {
        let trips: Vec<i64> = self.replies.iter().map(|(_, trip)| trip.nanos()).collect();
        let minima = window_minima(&trips, rule.window());
        // Too few replies make no change.
        let Ok(stretches) = change_points(&minima, Price::of(rule)) else {
            return;
        };
        for pair in stretches.windows(2) {
            let (before, after) = (pair[0].level, pair[1].level);
            let first = change_sample(pair[1].from, rule.window(), after > before);
            let Some(&(at, _)) = self.replies.get(first) else {
                continue;
            };
            if (after - before).abs() > rule.tolerance() {
                found.push(Detected {
                    lane,
                    source_port: self.source_port,
                    at,
                    told: None,
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

    const ALL: [Detector; 3] = [Detector::Guard, Detector::Rule, Detector::ChangePoints];

    fn found(world: &World, detector: Detector) -> Vec<Detected> {
        let mut detecting =
            Detecting::new(&world.fleet(), Settings::default(), detector).expect("the source's");
        world.messages(&world.truth(), |message| detecting.push(message));
        detecting.finish().changes
    }

    #[test]
    fn on_a_quiet_network_all_detectors_tell_the_changes_that_there_were() {
        let world = World::default();
        let truth = world.truth();
        let made: usize = truth.iter().map(|steps| steps.len() - 1).sum();
        assert!(made > 100, "{made}");
        for detector in ALL {
            let found = found(&world, detector);
            assert_eq!(found.len(), made, "{detector:?}");
            for change in &found {
                let steps = &truth[change.lane.0 as usize];
                let is_it = steps.windows(2).any(|pair| {
                    let (late, [from, to]) = (
                        change.at.nanos() - pair[1].0,
                        [pair[0].1, pair[1].1].map(|path| Span::from_micros(world.paths[path])),
                    );
                    let near =
                        |base: Span, path: Span| (base - path).abs() < Span::from_micros(200);
                    (0..2 * world.interval.nanos()).contains(&late)
                        && near(change.before, from)
                        && near(change.after, to)
                });
                assert!(is_it, "{detector:?}: {change:?} and {steps:?}");
            }
        }
    }

    /// Four messages of one flow in a queue of 20 ms, which no other flow meets.
    #[test]
    fn the_rule_alone_takes_a_short_queue_for_a_path_and_the_guard_does_not() {
        let world = World {
            reshuffle: 0,
            jitter: 0.0,
            ..World::default()
        };
        let truth = world.truth();
        let told = |detector| {
            let mut detecting =
                Detecting::new(&world.fleet(), Settings::default(), detector).expect("numbers");
            world.messages(&truth, |sent| {
                let queue = sent.lane == Lane(3) && (100..104).contains(&sent.seq);
                let mut sent = *sent;
                if let (true, Some(reply)) = (queue, sent.reply()) {
                    let trip = reply.round_trip.nanos() + 20_000_000;
                    sent = message(3, sent.seq, sent.sent.nanos(), trip);
                }
                detecting.push(&sent);
            });
            detecting.finish().changes.len()
        };
        assert_eq!(ALL.map(told)[..2], [0, 2]);
    }

    #[test]
    fn a_renewed_flow_is_no_change_for_any_of_them() {
        let mut fleet = World::default().fleet();
        fleet.renewal = Some(Span::from_secs(4));
        for detector in ALL {
            let mut detecting =
                Detecting::new(&fleet, Settings::default(), detector).expect("numbers");
            for seq in 0..60_u32 {
                let renewed = seq / 20;
                let base = 70_000_000 + i64::from(renewed) * 4_000_000;
                let mut sent = message(0, seq % 20, i64::from(seq) * 200_000_000, base);
                sent.source_port += u16::try_from(renewed).expect("few");
                detecting.push(&sent);
            }
            assert_eq!(detecting.finish().changes, [], "{detector:?}");
        }
    }
}
