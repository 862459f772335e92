//! Alarms on segments: which delays a rule counts, judged in the order of time.
//!
//! Owns the names of the subjects. Rules and states are neph-model's; who is told of what is told's.

use clap::Args as ClapArgs;
use neph_capture::Way;
use neph_model::alarm::{Alarm, Change, Paced, Rule};
use neph_model::{Span, Wall};

use crate::alarm::parse;
use crate::exit::Failure;
use neph_capture::path::passages::{Passages, segment_names};
use neph_documents::hops::way_word;
use neph_export::Url;

/// What is to be judged.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct Wanted {
    /// Say when packets were too long in a segment, and when no more: 'a - b > 2ms p99 for 30s', or
    /// 'segment > ...' for each of them; may be given more than once
    #[arg(long, value_name = "RULE")]
    alarm: Vec<String>,
    /// Tell each alarm to this address too, by a POST
    #[arg(long, value_name = "URL", value_parser = neph_export::url, requires = "alarm")]
    pub(super) webhook: Option<Url>,
}

/// Which delays; each segment and way that it names is judged by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subject {
    /// Any, if none.
    segment: Option<usize>,
    /// Each, if none.
    way: Option<Way>,
}

impl Subject {
    fn is_of(self, segment: usize, way: Way) -> bool {
        self.segment.is_none_or(|one| one == segment) && self.way.is_none_or(|one| one == way)
    }
}

/// The rules that were typed.
#[derive(Clone, Debug)]
pub(super) struct Rules(Vec<Rule<Subject>>);

/// A delay in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Delay {
    /// When its packet came into the segment, in nanoseconds since the beginning.
    pub(super) since: i64,
    /// In nanoseconds.
    pub(super) took: i64,
    /// The most that it may be off.
    pub(super) bound: i64,
}

/// A rule about one segment and way, and how it stands.
#[derive(Clone, Debug)]
pub(super) struct Standing {
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
pub(super) struct Found {
    pub(super) at: Wall,
    pub(super) change: Change,
    /// `a - b`
    pub(super) segment: String,
    pub(super) way: Way,
    /// The most that a delay in this segment may be off.
    pub(super) bound: i64,
}

/// What whole captures say.
#[derive(Clone, Debug, Default)]
pub(super) struct Judged {
    /// By time.
    pub(super) found: Vec<Found>,
    /// Rules of which no segment had as many packets as they need.
    pub(super) unjudged: Vec<String>,
}

impl Rules {
    /// Of points with these names.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub(super) fn parse(wanted: &Wanted, points: &[String]) -> Result<Self, Failure> {
        let subjects = subjects(points);
        let named: Vec<(&str, Subject)> = subjects
            .iter()
            .map(|(name, subject)| (name.as_str(), *subject))
            .collect();
        let rules = wanted.alarm.iter();
        let rules = rules.map(|text| parse(text, &named, |_| None));
        Ok(Self(rules.collect::<Result<_, _>>()?))
    }

    /// Each rule for each segment and way that it names, of the segments that are meant; nothing is
    /// counted yet.
    pub(super) fn standings(
        &self,
        points: &[String],
        is_meant: impl Fn(usize) -> bool,
    ) -> Vec<Standing> {
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
    pub(super) fn are_about(&self, segment: usize) -> bool {
        let mut subjects = self.0.iter().map(|rule| rule.subject.segment);
        subjects.any(|about| about.is_none_or(|one| one == segment))
    }

    /// What these packets raised and ended.
    pub(super) fn judge(&self, passages: &Passages) -> Judged {
        let mut judged = Judged::default();
        let mut standings = self.standings(&passages.names, |_| true);
        let mut enough = Vec::new();
        let of_one = |a: &Standing, b: &Standing| (a.segment, a.way) == (b.segment, b.way);
        for standings in standings.chunk_by_mut(of_one) {
            let (segment, way) = (standings[0].segment, standings[0].way);
            let delays = delays(passages, segment, way);
            for standing in standings {
                let rule = standing.alarm.alarm().rule();
                if delays.len() as u64 >= rule.quantile.needs {
                    enough.push(rule.text.clone());
                }
                judged
                    .found
                    .extend(found(standing, &delays, passages.began));
            }
        }
        judged.found.sort_by_key(|one| one.change.at);
        let few = self.0.iter().filter(|rule| !enough.contains(&rule.text));
        judged.unjudged.extend(few.map(too_few));
        judged
    }
}

impl Standing {
    pub(super) fn is_of(&self, segment: usize, way: Way) -> bool {
        (self.segment, self.way) == (segment, way)
    }

    /// The rule, as it was typed.
    pub(super) const fn rule(&self) -> &str {
        self.alarm.alarm().rule().text.as_str()
    }

    /// What takes longer is counted.
    pub(super) const fn limit(&self) -> Span {
        self.alarm.alarm().rule().limit
    }

    /// One more delay, in the order of time; what that changes, where everything began at `began`.
    pub(super) fn count(&mut self, delay: Delay, began: i64) -> Option<Found> {
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

/// Every name of segments, of these points.
fn subjects(points: &[String]) -> Vec<(String, Subject)> {
    let any = [("segment".to_owned(), None)];
    let each = segment_names(points).into_iter().zip(0..);
    let each = each.map(|(name, segment)| (name, Some(segment)));
    let segments: Vec<(String, Option<usize>)> = each.chain(any).collect();
    let mut subjects = Vec::new();
    for way in [None, Some(Way::There), Some(Way::Back)] {
        for (name, segment) in &segments {
            let way_word = way.map_or(String::new(), |way| format!(" {}", way_word(way)));
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

/// What all of these say.
fn found(standing: &mut Standing, delays: &[Delay], began: i64) -> Vec<Found> {
    standing.bound = delays.iter().map(|delay| delay.bound).max().unwrap_or(0);
    let changes = delays
        .iter()
        .filter_map(|delay| standing.count(*delay, began));
    let mut found: Vec<Found> = changes.collect();
    found.extend(standing.finish(began));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Result<Rules, Failure> {
        let wanted = Wanted {
            alarm: texts.iter().map(ToString::to_string).collect(),
            webhook: None,
        };
        let names = ["client", "my host", "vm"].map(str::to_owned);
        Rules::parse(&wanted, &names)
    }

    #[test]
    fn a_rule_is_about_a_segment_as_it_is_told_or_about_each() {
        let rules = rules(&[
            "client - my host > 2ms p99 for 30s",
            "my host - vm back > 2ms p99",
            "segment>2ms p99",
        ]);
        let rules = rules.expect("rules").0;
        let of = |place: usize| {
            let each = [
                (0, Way::There),
                (0, Way::Back),
                (1, Way::There),
                (1, Way::Back),
            ];
            each.map(|(segment, way)| rules[place].subject.is_of(segment, way))
        };
        assert_eq!(of(0), [true, true, false, false]);
        assert_eq!(of(1), [false, false, false, true]);
        assert_eq!(of(2), [true; 4]);
    }

    #[test]
    fn a_segment_that_is_not_there_is_told_with_those_that_are() {
        match rules(&["client - vm > 2ms p99"]) {
            Err(Failure::Text(_, problems)) => {
                let told = problems[0].to_string();
                assert!(
                    told.starts_with("--alarm:1:1: 'client - vm' is not"),
                    "{told}"
                );
                assert!(told.contains("my host - vm"), "{told}");
            }
            other => panic!("{other:?}"),
        }
    }

    /// A packet each 10 ms for 40 s, in disorder by 20 ms; from 10 s to 20 s each takes 8 ms, else 1.
    #[test]
    fn a_segment_that_was_slow_for_some_seconds_raises_it_and_its_end_ends_it() {
        let rules = rules(&["segment > 5ms p99 for 4s"]).expect("rules");
        let mut delays: Vec<Delay> = (0..4_000)
            .map(|n: i64| {
                let since = (n ^ 1) * 10_000_000;
                let slow = (10_000_000_000..20_000_000_000).contains(&since);
                Delay {
                    since,
                    took: if slow { 8_000_000 } else { 1_000_000 },
                    bound: n,
                }
            })
            .collect();
        delays.sort_unstable();
        let names = ["client", "vm"].map(str::to_owned);
        let mut standings = rules.standings(&names, |_| true);
        let found = found(&mut standings[0], &delays, 7);
        let told: Vec<(bool, i64)> = found
            .iter()
            .map(|one| (one.change.is_raised, one.change.at.nanos() / 1_000_000_000))
            .collect();
        // p99 needs 299: stretches of 3 s, those from 9 s on over the limit and from 21 s on well.
        assert_eq!(told, [(true, 15), (false, 27)]);
        assert_eq!(
            (found[0].bound, found[0].segment.as_str(), found[0].way),
            (3_999, "client - vm", Way::There)
        );
        assert_eq!(found[0].at.unix_nanos(), 15_000_000_007);
    }
}
