//! Alarms on segments: which delays a rule counts, judged in the order of time once all are known.
//!
//! Owns the names of the subjects. Rules and states are neph-campaign's.

use clap::Args as ClapArgs;
use neph_campaign::alarm::{Alarm, Change, Paced, Rule};
use neph_capture::Way;
use neph_model::{Span, Wall};
use serde_json::{Value, json};

use super::passages::{Passages, segment_names};
use crate::alarm::webhook::{self, Url, Webhook};
use crate::alarm::{document, parse, sentence};
use crate::clock::words;
use crate::exit::Failure;
use crate::output;

/// What is counted.
const NOUN: &str = "packet";

/// What is to be judged.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct Wanted {
    /// Say when packets were too long in a segment, and when no more: 'a - b > 2ms p99 for 30s', or
    /// 'segment > ...' for each of them; may be given more than once
    #[arg(long, value_name = "RULE")]
    alarm: Vec<String>,
    /// Tell each alarm to this address too, by a POST
    #[arg(long, value_name = "URL", value_parser = webhook::url, requires = "alarm")]
    webhook: Option<Url>,
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
struct Delay {
    /// When its packet passed its first point, in nanoseconds since the beginning.
    since: i64,
    /// In nanoseconds.
    took: i64,
    /// The most that it may be off.
    bound: i64,
}

/// What a rule found in a segment.
#[derive(Clone, Debug)]
struct Found {
    change: Change,
    /// `a - b, there`
    place: String,
    /// The most that a delay in this segment may be off.
    bound: i64,
}

/// What was found, by time.
#[derive(Clone, Debug, Default)]
pub(super) struct Alarms {
    found: Vec<Found>,
    /// Rules of which no segment had as many packets as they need.
    unjudged: Vec<String>,
    /// When the first point saw its first packet, by its clock.
    began: i64,
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

    /// What these packets raised and ended.
    pub(super) fn judge(&self, passages: &Passages) -> Alarms {
        let mut alarms = Alarms {
            began: passages.began,
            ..Alarms::default()
        };
        if self.0.is_empty() {
            return alarms;
        }
        let names = segment_names(&passages.names);
        let mut most = vec![0; self.0.len()];
        for (segment, name) in names.iter().enumerate() {
            for way in [Way::There, Way::Back] {
                let is_wanted = |rule: &Rule<Subject>| rule.subject.is_of(segment, way);
                if !self.0.iter().any(is_wanted) {
                    continue;
                }
                let delays = delays(passages, segment, way);
                let place = format!("{name}, {}", words_of(way));
                for (rule, most) in self.0.iter().zip(&mut most) {
                    if is_wanted(rule) {
                        *most = delays.len().max(*most);
                        alarms.found.extend(found(rule, &delays, &place));
                    }
                }
            }
        }
        alarms.found.sort_by_key(|one| one.change.at);
        let judged = self.0.iter().zip(most);
        let few = judged.filter(|(rule, most)| (*most as u64) < rule.quantile.needs);
        alarms.unjudged.extend(few.map(|(rule, _)| too_few(rule)));
        alarms
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
            let way_word = way.map_or(String::new(), |way| format!(" {}", words_of(way)));
            let segment = *segment;
            subjects.push((format!("{name}{way_word}"), Subject { segment, way }));
        }
    }
    subjects
}

const fn words_of(way: Way) -> &'static str {
    match way {
        Way::There => "there",
        Way::Back => "back",
    }
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
                since: row.since?.nanos(),
                took: told.delay.nanos(),
                bound: told.bound.nanos(),
            })
        })
        .collect();
    delays.sort_unstable();
    delays
}

fn found(rule: &Rule<Subject>, delays: &[Delay], place: &str) -> Vec<Found> {
    let mut alarm = Paced::new(Alarm::new(rule.clone()));
    let mut changes = Vec::new();
    for delay in delays {
        let (since, took) = (Span::from_nanos(delay.since), Span::from_nanos(delay.took));
        changes.extend(alarm.count(since, Some(took)));
    }
    changes.extend(alarm.finish());
    let bound = delays.iter().map(|delay| delay.bound).max().unwrap_or(0);
    let found = changes.into_iter().map(|change| Found {
        change,
        place: place.to_owned(),
        bound,
    });
    found.collect()
}

impl Alarms {
    /// For programs.
    pub(super) fn json(&self) -> Vec<Value> {
        let found = self.found.iter();
        found.map(|one| self.document(one)).collect()
    }

    fn at(&self, change: &Change) -> Wall {
        Wall::from_unix_nanos(self.began.saturating_add(change.at.nanos()))
    }

    fn document(&self, found: &Found) -> Value {
        let mut told = document(self.at(&found.change), &found.change, "packets");
        told["segment"] = json!(found.place);
        told["since_ns"] = json!(found.change.at.nanos());
        told["bound_ns"] = json!(found.bound);
        told
    }

    /// Says each, and to the webhook. Whether any was raised.
    pub(super) fn tell(&self, wanted: &Wanted) -> bool {
        let url = wanted.webhook.clone().filter(|_| !self.found.is_empty());
        let webhook = url.map(|url| Webhook::begin(url, "neph hops"));
        for found in &self.found {
            let said = sentence(self.at(&found.change), &found.change, NOUN);
            let (place, bound) = (&found.place, words::up(found.bound));
            output::say(&format!("{said} [{place}; ± {bound}]"));
            if let Some(webhook) = &webhook {
                webhook.tell(&self.document(found));
            }
        }
        for unjudged in &self.unjudged {
            output::say(&format!("neph hops: {unjudged}"));
        }
        if let Some(webhook) = webhook {
            webhook.finish();
        }
        self.found.iter().any(|found| found.change.is_raised)
    }
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
        let found = found(&rules.0[0], &delays, "client - vm, there");
        let told: Vec<(bool, i64)> = found
            .iter()
            .map(|one| (one.change.is_raised, one.change.at.nanos() / 1_000_000_000))
            .collect();
        // p99 needs 299: stretches of 3 s, those from 9 s on over the limit and from 21 s on well.
        assert_eq!(told, [(true, 15), (false, 27)]);
        assert_eq!(found[0].bound, 3_999);
    }
}
