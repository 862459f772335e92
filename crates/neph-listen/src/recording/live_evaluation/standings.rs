//! Which segments and rules are evaluated during the recording, and which at its end.
//!
//! Owns the choice, and the messages about it.

use neph_capture::path::alarms::{RuleState, Rules};
use neph_capture::path::passages::segment_names;

use super::super::{Point, Sampling};
use super::WAITED_MOST;

/// What is evaluated during the recording.
#[derive(Debug)]
pub(super) struct LiveStandings {
    pub(super) standings: Vec<RuleState>,
    /// The names of the segments by their index in the path; `None` for one that is evaluated at
    /// the end.
    pub(super) segments: Vec<Option<String>>,
}

/// What is evaluated at the end or by samples.
#[derive(Debug, Default)]
pub(super) struct FinalEvaluation {
    /// Segments with rules, evaluated at the end.
    pub(super) segments: Vec<String>,
    /// Rules about other segments, evaluated at the end, as typed.
    pub(super) rules: Vec<String>,
    /// Segments with rules, evaluated by samples.
    pub(super) sampled: Vec<String>,
}

/// Divides the rules for these points.
pub(super) fn divide(points: &[Point], rules: &Rules) -> (LiveStandings, FinalEvaluation) {
    let names: Vec<String> = points.iter().map(|point| point.name.clone()).collect();
    // Alarms have times of the first point's clock; clocks of points over ssh are not known yet.
    let is_live = |segment: usize| !points[..=segment + 1].iter().any(Point::is_remote);
    let is_sampled = |segment: usize| points[segment..=segment + 1].iter().any(Point::is_at_agent);
    let (mut left, mut segments) = (FinalEvaluation::default(), Vec::new());
    for (segment, name) in segment_names(&names).into_iter().enumerate() {
        let deferred_segments = match (is_live(segment), is_sampled(segment)) {
            (false, _) => Some(&mut left.segments),
            (true, true) => Some(&mut left.sampled),
            (true, false) => None,
        };
        if let Some(deferred_segments) = deferred_segments.filter(|_| rules.has_rule_for(segment)) {
            deferred_segments.push(name.clone());
        }
        segments.push(is_live(segment).then_some(name));
    }
    let mut standings = rules.rule_states(&names, is_live);
    standings.retain(|rule_state| {
        let rule = rule_state.rule();
        let is_late = rule.limit >= WAITED_MOST;
        if is_late && !left.rules.contains(&rule.text) {
            left.rules.push(rule.text.clone());
        }
        !is_late
    });
    let live = LiveStandings {
        standings,
        segments,
    };
    (live, left)
}

impl FinalEvaluation {
    pub(super) fn print(&self, say: fn(&str)) {
        if !self.segments.is_empty() {
            say(&format!(
                "neph hops: alarms on {} are judged when the recording is over: until then the clocks of points \
                 over ssh are not known",
                self.segments.join(", ")
            ));
        }
        for rule in &self.rules {
            say(&format!(
                "neph hops: --alarm '{rule}' is judged when the recording is over: while it lasts no packet is \
                 waited for longer than {} s",
                WAITED_MOST.nanos() / 1_000_000_000
            ));
        }
        if !self.sampled.is_empty() {
            say(&format!(
                "neph hops: while points record, alarms on {} are evaluated on a sample of about {} packets per second; with two clocks a delay counts with its minimum",
                self.sampled.join(", "),
                Sampling::PACKETS
            ));
        }
    }
}
