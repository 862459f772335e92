//! Alarms on segments: which delays a rule counts, judged in the order of time.
//!
//! Owns the names of the subjects. Rules and their states are neph-model's.

use neph_model::alarm::{Alarm, Change, Paced, Rule};
use neph_model::{Span, Wall};

use super::passages::{Passages, segment_names};
use crate::Way;

/// Which delays; each segment and way that it names is judged by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Any, if none.
    segment: Option<usize>,
    /// Each, if none.
    way: Option<Way>,
}

impl Subject {
    /// Whether a segment and way are meant.
    pub fn is_of(self, segment: usize, way: Way) -> bool {
        self.segment.is_none_or(|one| one == segment) && self.way.is_none_or(|one| one == way)
    }
}

/// The rules.
#[derive(Clone, Debug)]
pub struct Rules(Vec<Rule<Subject>>);

/// A delay in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delay {
    /// When its packet came into the segment, in nanoseconds since the beginning.
    pub since: i64,
    /// In nanoseconds.
    pub took: i64,
    /// The most that it may be off.
    pub bound: i64,
}

/// A rule about one segment and way, and how it stands.
#[derive(Clone, Debug)]
pub struct Standing {
    segment: usize,
    way: Way,
    /// `a - b`
    name: String,
    alarm: Paced<Subject>,
    /// The most that a delay that was counted may be off.
    bound: i64,
}

/// What a rule found in a segment.
#[derive(Clone, Debug)]
pub struct Found {
    pub at: Wall,
    pub change: Change,
    /// `a - b`
    pub segment: String,
    pub way: Way,
    /// The most that a delay in this segment may be off.
    pub bound: i64,
}

/// What whole captures say.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// By time.
    pub found: Vec<Found>,
    /// Rules of which no segment had as many packets as they need.
    pub unjudged: Vec<String>,
}

impl Rules {
    /// These.
    pub const fn of(rules: Vec<Rule<Subject>>) -> Self {
        Self(rules)
    }

    /// The rules themselves.
    pub fn rules(&self) -> &[Rule<Subject>] {
        &self.0
    }

    /// Each rule for each segment and way that it names, of the segments that are meant; nothing is
    /// counted yet.
    pub fn standings(&self, points: &[String], is_meant: impl Fn(usize) -> bool) -> Vec<Standing> {
        let mut all = Vec::new();
        for (segment, name) in segment_names(points).iter().enumerate() {
            for way in [Way::There, Way::Back] {
                let rules = self
                    .0
                    .iter()
                    .filter(|rule| rule.subject.is_of(segment, way));
                all.extend(rules.filter(|_| is_meant(segment)).map(|rule| Standing {
                    segment,
                    way,
                    name: name.clone(),
                    alarm: Paced::new(Alarm::new(rule.clone())),
                    bound: 0,
                }));
            }
        }
        all
    }

    /// Whether any is about this segment.
    pub fn are_about(&self, segment: usize) -> bool {
        let mut subjects = self.0.iter().map(|rule| rule.subject.segment);
        subjects.any(|about| about.is_none_or(|one| one == segment))
    }

    /// What these packets raised and ended.
    pub fn judge(&self, passages: &Passages) -> Judged {
        let mut judged = Judged::default();
        let mut standings = self.standings(&passages.names, |_| true);
        let mut enough = Vec::new();
        let of_one = |a: &Standing, b: &Standing| (a.segment, a.way) == (b.segment, b.way);
        for standings in standings.chunk_by_mut(of_one) {
            let (segment, way) = (standings[0].segment, standings[0].way);
            let delays = delays(passages, segment, way);
            for standing in standings {
                let rule = standing.rule();
                if delays.len() as u64 >= rule.quantile.needs {
                    enough.push(rule.text.clone());
                }
                judged.found.extend(standing.judge(&delays, passages.began));
            }
        }
        judged.found.sort_by_key(|one| one.change.at);
        let few = self.0.iter().filter(|rule| !enough.contains(&rule.text));
        judged.unjudged.extend(few.map(too_few));
        judged
    }
}

impl Standing {
    pub fn is_of(&self, segment: usize, way: Way) -> bool {
        (self.segment, self.way) == (segment, way)
    }

    /// The rule.
    pub const fn rule(&self) -> &Rule<Subject> {
        self.alarm.alarm().rule()
    }

    /// The place of its segment in the path.
    pub const fn segment(&self) -> usize {
        self.segment
    }

    /// One more delay, in the order of time; what that changes, where everything began at `began`.
    pub fn count(&mut self, delay: Delay, began: i64) -> Option<Found> {
        let (since, took) = (Span::from_nanos(delay.since), Span::from_nanos(delay.took));
        self.bound = self.bound.max(delay.bound);
        let change = self.alarm.count(since, Some(took));
        change.map(|change| self.found(change, began))
    }

    /// No more come.
    fn finish(&mut self, began: i64) -> Option<Found> {
        let change = self.alarm.finish();
        change.map(|change| self.found(change, began))
    }

    /// What all of these delays say, which are in the order of time.
    pub fn judge(&mut self, delays: &[Delay], began: i64) -> Vec<Found> {
        self.bound = delays.iter().map(|delay| delay.bound).max().unwrap_or(0);
        let changes = delays.iter().filter_map(|delay| self.count(*delay, began));
        let mut found: Vec<Found> = changes.collect();
        found.extend(self.finish(began));
        found
    }

    fn found(&self, change: Change, began: i64) -> Found {
        Found {
            at: Wall::from_unix_nanos(began.saturating_add(change.at.nanos())),
            change,
            segment: self.name.clone(),
            way: self.way,
            bound: self.bound,
        }
    }
}

/// Every name of segments, of these points: `a - b`, `a - b back`, and `segment` for any.
pub fn subjects(points: &[String]) -> Vec<(String, Subject)> {
    let any = [("segment".to_owned(), None)];
    let each = segment_names(points).into_iter().zip(0..);
    let each = each.map(|(name, segment)| (name, Some(segment)));
    let segments: Vec<(String, Option<usize>)> = each.chain(any).collect();
    let mut subjects = Vec::new();
    for way in [None, Some(Way::There), Some(Way::Back)] {
        for (name, segment) in &segments {
            let way_word = way.map_or(String::new(), |way| format!(" {}", way.name()));
            let segment = *segment;
            subjects.push((format!("{name}{way_word}"), Subject { segment, way }));
        }
    }
    subjects
}

fn too_few(rule: &Rule<Subject>) -> String {
    let (text, needs, name) = (&rule.text, rule.quantile.needs, rule.quantile.name);
    format!("--alarm '{text}' is not judged: no segment told {needs} delays, which {name} needs")
}

/// Those of a segment and way, in the order of time; without those that have none.
fn delays(passages: &Passages, segment: usize, way: Way) -> Vec<Delay> {
    let rows = passages.rows().filter(|row| row.way == way);
    let mut delays: Vec<Delay> = rows
        .filter_map(|row| {
            let told = row.delays[segment]?;
            Some(Delay {
                since: passages.entered(&row.passage, way, segment)?.nanos(),
                took: told.delay.nanos(),
                bound: told.bound.nanos(),
            })
        })
        .collect();
    delays.sort_unstable();
    delays
}
