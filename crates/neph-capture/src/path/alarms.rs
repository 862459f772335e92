//! Alarms on segments: the delays of each rule, evaluated in the order of time.
//!
//! Owns the names of the subjects. Does not own rules and their states (neph-model).

use neph_model::alarm::{Alarm, Change, DataTimeAlarm, Rule};
use neph_model::{Span, Wall};

use super::passages::{Passages, segment_names};
use crate::Direction;

/// The delays of a rule. Each of its segments and directions is evaluated separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// `None`: any.
    segment: Option<usize>,
    /// `None`: both.
    direction: Option<Direction>,
}

impl Subject {
    /// Whether a segment and direction are included.
    pub fn includes(self, segment: usize, direction: Direction) -> bool {
        self.segment
            .is_none_or(|rule_segment| rule_segment == segment)
            && self
                .direction
                .is_none_or(|rule_direction| rule_direction == direction)
    }
}

/// The rules.
#[derive(Clone, Debug)]
pub struct Rules(Vec<Rule<Subject>>);

/// A delay in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delay {
    /// When its packet entered the segment, in nanoseconds since the beginning.
    pub entered_nanos: i64,
    /// In nanoseconds.
    pub delay_nanos: i64,
    /// Its error bound.
    pub bound: i64,
}

/// A rule for one segment and direction, with its state.
#[derive(Clone, Debug)]
pub struct RuleState {
    segment: usize,
    direction: Direction,
    /// `a - b`
    name: String,
    alarm: DataTimeAlarm<Subject>,
    /// Largest error bound of its delays.
    bound: i64,
}

/// A change of a rule in a segment.
#[derive(Clone, Debug)]
pub struct SegmentChange {
    pub at: Wall,
    pub change: Change,
    /// `a - b`
    pub segment: String,
    pub direction: Direction,
    /// Largest error bound of a delay in this segment.
    pub bound: i64,
}

/// The result for whole captures.
#[derive(Clone, Debug, Default)]
pub struct AlarmResult {
    /// By time.
    pub changes: Vec<SegmentChange>,
    /// Messages about rules for which no segment had enough packets.
    pub not_evaluated: Vec<String>,
}

impl Rules {
    /// From these rules.
    pub const fn of(rules: Vec<Rule<Subject>>) -> Self {
        Self(rules)
    }

    /// The rules themselves.
    pub fn rules(&self) -> &[Rule<Subject>] {
        &self.0
    }

    /// Each rule for each of its segments and directions, of the included segments, without counts.
    pub fn rule_states(
        &self,
        points: &[String],
        is_included: impl Fn(usize) -> bool,
    ) -> Vec<RuleState> {
        let mut states = Vec::new();
        for (segment, name) in segment_names(points).iter().enumerate() {
            for direction in [Direction::Forward, Direction::Reverse] {
                let rules = self
                    .0
                    .iter()
                    .filter(|rule| rule.subject.includes(segment, direction));
                states.extend(
                    rules
                        .filter(|_| is_included(segment))
                        .map(|rule| RuleState {
                            segment,
                            direction,
                            name: name.clone(),
                            alarm: DataTimeAlarm::new(Alarm::new(rule.clone())),
                            bound: 0,
                        }),
                );
            }
        }
        states
    }

    /// Whether any rule is about this segment.
    pub fn has_rule_for(&self, segment: usize) -> bool {
        let mut subjects = self.0.iter().map(|rule| rule.subject.segment);
        subjects.any(|rule_segment| rule_segment.is_none_or(|rule_segment| rule_segment == segment))
    }

    /// The alarms that these packets raised and ended.
    pub fn evaluate(&self, passages: &Passages) -> AlarmResult {
        let mut result = AlarmResult::default();
        let mut states = self.rule_states(&passages.names, |_| true);
        let mut evaluated = Vec::new();
        let has_same_path =
            |a: &RuleState, b: &RuleState| (a.segment, a.direction) == (b.segment, b.direction);
        for states in states.chunk_by_mut(has_same_path) {
            let (segment, direction) = (states[0].segment, states[0].direction);
            let delays = delays(passages, segment, direction);
            for rule_state in states {
                let rule = rule_state.rule();
                if delays.len() as u64 >= rule.quantile.needs {
                    evaluated.push(rule.text.clone());
                }
                result
                    .changes
                    .extend(rule_state.evaluate(&delays, passages.first_packet_at));
            }
        }
        result
            .changes
            .sort_by_key(|segment_change| segment_change.change.at);
        let skipped = self.0.iter().filter(|rule| !evaluated.contains(&rule.text));
        result
            .not_evaluated
            .extend(skipped.map(not_evaluated_message));
        result
    }
}

impl RuleState {
    pub fn includes(&self, segment: usize, direction: Direction) -> bool {
        (self.segment, self.direction) == (segment, direction)
    }

    /// The rule.
    pub const fn rule(&self) -> &Rule<Subject> {
        self.alarm.alarm().rule()
    }

    /// The place of its segment in the path.
    pub const fn segment(&self) -> usize {
        self.segment
    }

    /// Adds a delay, in the order of time. Returns the resulting change; all times count from
    /// `first_packet_at`.
    pub fn count(&mut self, delay: Delay, first_packet_at: i64) -> Option<SegmentChange> {
        let (entered_span, delay_span) = (
            Span::from_nanos(delay.entered_nanos),
            Span::from_nanos(delay.delay_nanos),
        );
        self.bound = self.bound.max(delay.bound);
        let change = self.alarm.record(entered_span, Some(delay_span));
        change.map(|change| self.segment_change(change, first_packet_at))
    }

    /// Ends the delays.
    fn finish(&mut self, first_packet_at: i64) -> Option<SegmentChange> {
        let change = self.alarm.finish();
        change.map(|change| self.segment_change(change, first_packet_at))
    }

    /// Evaluates all of these delays, which are in the order of time.
    pub fn evaluate(&mut self, delays: &[Delay], first_packet_at: i64) -> Vec<SegmentChange> {
        self.bound = delays.iter().map(|delay| delay.bound).max().unwrap_or(0);
        let changes = delays
            .iter()
            .filter_map(|delay| self.count(*delay, first_packet_at));
        let mut segment_changes: Vec<SegmentChange> = changes.collect();
        segment_changes.extend(self.finish(first_packet_at));
        segment_changes
    }

    fn segment_change(&self, change: Change, first_packet_at: i64) -> SegmentChange {
        SegmentChange {
            at: Wall::from_unix_nanos(first_packet_at.saturating_add(change.at.nanos())),
            change,
            segment: self.name.clone(),
            direction: self.direction,
            bound: self.bound,
        }
    }
}

/// Every name of segments, of these points: `a - b`, `a - b back`, and `segment` for any.
pub fn subjects(points: &[String]) -> Vec<(String, Subject)> {
    let any_segment = [("segment".to_owned(), None)];
    let named = segment_names(points).into_iter().zip(0..);
    let named = named.map(|(name, segment)| (name, Some(segment)));
    let segments: Vec<(String, Option<usize>)> = named.chain(any_segment).collect();
    let mut subjects = Vec::new();
    for direction in [None, Some(Direction::Forward), Some(Direction::Reverse)] {
        for (name, segment) in &segments {
            let suffix =
                direction.map_or(String::new(), |direction| format!(" {}", direction.name()));
            let segment = *segment;
            subjects.push((format!("{name}{suffix}"), Subject { segment, direction }));
        }
    }
    subjects
}

fn not_evaluated_message(rule: &Rule<Subject>) -> String {
    let (text, needs, name) = (&rule.text, rule.quantile.needs, rule.quantile.name);
    format!("--alarm '{text}' was not evaluated: no segment has {needs} delays, which {name} needs")
}

/// Delays of a segment and direction, in the order of time, without packets that have none.
fn delays(passages: &Passages, segment: usize, direction: Direction) -> Vec<Delay> {
    let rows = passages.rows().filter(|row| row.direction == direction);
    let mut delays: Vec<Delay> = rows
        .filter_map(|row| {
            let one_way = row.delays[segment]?;
            Some(Delay {
                entered_nanos: passages.entered(&row.passage, direction, segment)?.nanos(),
                delay_nanos: one_way.delay.nanos(),
                bound: one_way.bound.nanos(),
            })
        })
        .collect();
    delays.sort_unstable();
    delays
}
