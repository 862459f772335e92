//! The plan's `[[season]]`: times of the week, by name, within which experiments run, so that the
//! same is measured when a network is used little and when it is used much. All times are UTC.

use std::ops::Range;

use neph_model::{Span, Wall};
use neph_text::{Fault, Fields, Node, Problems, Take, choice, did_you_mean};

use super::meaning::Axes;
use super::parameter::word;
use super::typed::TypedAxes;

const MINUTE: i64 = 60 * 1_000_000_000;
const DAY: i64 = 24 * 60;
const WEEK: i64 = 7 * DAY;
/// 1970-01-01 was a Thursday; weeks begin on Monday here.
const EPOCH: i64 = 3 * DAY;

/// A time of the week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Season {
    /// Its name: a level of the factor `season`.
    pub name: String,
    /// Minutes of a day, from and until, UTC; over midnight if the first is the greater. `None`:
    /// the whole day.
    pub hours: Option<(u16, u16)>,
    /// Which days of the week, Monday first, by UTC's date.
    pub days: [bool; 7],
    /// Where the plan writes it.
    pub written_at: Range<usize>,
}

impl Season {
    /// Whether the minute of the week, from Monday 00:00, belongs to it.
    fn has(&self, minute: i64) -> bool {
        let minute = minute.rem_euclid(WEEK);
        let day = usize::try_from(minute / DAY).expect("a week has seven days");
        let of_day = minute % DAY;
        let within = self.hours.is_none_or(|(from, until)| {
            let (from, until) = (i64::from(from), i64::from(until));
            if from < until {
                (from..until).contains(&of_day)
            } else {
                of_day >= from || of_day < until
            }
        });
        self.days[day] && within
    }

    /// Whether it is open at `now` and stays so for `length`.
    pub fn holds(&self, now: Wall, length: Span) -> bool {
        let first = minute_of(now.unix_nanos());
        let rest = length.nanos().saturating_sub(1);
        let last = minute_of(now.unix_nanos().saturating_add(rest));
        // What is open for a week without a gap is open for ever.
        (first..=last.min(first + WEEK)).all(|minute| self.has(minute))
    }

    /// The next moment from `now` on when [`Self::holds`]; `None` if there is never one.
    pub fn next(&self, now: Wall, length: Span) -> Option<Wall> {
        if self.holds(now, length) {
            return Some(now);
        }
        let first = now.unix_nanos().div_euclid(MINUTE) + 1;
        let moments = (first..=first + WEEK).map(|minute| Wall::from_unix_nanos(minute * MINUTE));
        // Only where it opens: nothing that does not fit there fits a minute later.
        let opens = |at: &Wall| {
            let minute = minute_of(at.unix_nanos());
            self.has(minute) && !self.has(minute - 1)
        };
        moments
            .filter(opens)
            .find(|moment| self.holds(*moment, length))
    }

    /// `01:00-05:00 UTC on sat, sun`.
    pub fn when(&self) -> String {
        let clock = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
        let hours = self.hours.map_or_else(
            || "all day UTC".to_owned(),
            |(from, until)| format!("{}-{} UTC", clock(from), clock(until)),
        );
        let named = DAYS.iter().zip(self.days).filter(|(_, on)| *on);
        let days: Vec<&str> = named.map(|((name, _), _)| *name).collect();
        match (self.hours, days.len()) {
            (None, 7) => "at any time".to_owned(),
            (_, 7) => hours,
            _ => format!("{hours} on {}", days.join(", ")),
        }
    }
}

/// Minutes since a Monday 00:00 UTC.
fn minute_of(unix_nanos: i64) -> i64 {
    unix_nanos.div_euclid(MINUTE) + EPOCH
}

const DAYS: [(&str, usize); 7] = [
    ("mon", 0),
    ("tue", 1),
    ("wed", 2),
    ("thu", 3),
    ("fri", 4),
    ("sat", 5),
    ("sun", 6),
];

/// Reads every `[[season]]` of a plan.
pub(crate) fn read(fields: &mut Fields<'_>) -> Vec<Season> {
    let mut seasons: Vec<Season> = Vec::new();
    for mut table in fields.tables("season") {
        let written_at = table.span();
        let name = table.required_with("name", word);
        let hours = table.optional_with("hours", hours);
        let days = table.one_or_list_with("days", |node| choice(node, &DAYS));
        if let Some(name) = name {
            if seasons.iter().any(|other| other.name == name.value) {
                let what = format!("two seasons are called '{}'", name.value);
                table.fault(name.span.clone(), what, "give each its own name");
            }
            let listed = days.as_ref();
            let on = |day: usize| {
                listed.is_none_or(|days| days.iter().any(|listed| listed.value == day))
            };
            seasons.push(Season {
                name: name.value,
                hours: hours.map(|hours| hours.value),
                days: std::array::from_fn(on),
                written_at,
            });
        }
        table.finish();
    }
    seasons
}

/// `01:00-05:00`.
fn hours(node: &Node) -> Result<(u16, u16), Fault> {
    let text = String::take(node)?;
    let clock = |text: &str| -> Option<u16> {
        let (hour, minute) = text.trim().split_once(':')?;
        let digits = |text: &str| text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(hour) || !digits(minute) {
            return None;
        }
        let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
        let fine = (hour < 24 && minute < 60) || (hour, minute) == (24, 0);
        fine.then_some(hour * 60 + minute)
    };
    let both = text.split_once('-');
    let both = both.and_then(|(from, until)| Some((clock(from)?, clock(until)?)));
    match both {
        Some((from, until)) if from % 1440 != until % 1440 && from < 1440 => Ok((from, until)),
        Some(_) => Err(Fault::new(
            "these hours begin and end at the same time",
            "write two times; without 'hours' it is the whole day",
        )),
        None => Err(Fault::new(
            format!("\"{text}\" are no hours"),
            "write for example \"01:00-05:00\" (UTC)",
        )),
    }
}

/// What `season` names must be there; without it, each endpoint is measured in every season.
pub(crate) fn check(seasons: &[Season], axes: &[&TypedAxes], problems: &Problems<'_>) {
    let known: Vec<&str> = seasons.iter().map(|season| season.name.as_str()).collect();
    let written = axes.iter().filter_map(|axes| axes.parameters.get("season"));
    for name in written.flatten() {
        if !known.contains(&name.value.as_str()) {
            let what = format!("there is no season '{}'", name.value);
            let remedy = match known.as_slice() {
                [] => "add a [[season]] of that name".to_owned(),
                known => did_you_mean(&name.value, known),
            };
            problems.add(name.span.clone(), Fault::new(what, remedy));
        }
    }
}

/// An endpoint that names no season is measured in all; each must be open long enough for an
/// experiment.
pub(crate) fn apply(
    axes: &mut Axes,
    (seasons, pause): (&[Season], Span),
    endpoint: &Range<usize>,
    problems: &Problems<'_>,
) {
    if seasons.is_empty() {
        return;
    }
    let all = || seasons.iter().map(|season| season.name.clone()).collect();
    let wanted = axes
        .parameters
        .entry("season".to_owned())
        .or_insert_with(all);
    for season in seasons.iter().filter(|one| wanted.contains(&one.name)) {
        let lengths = axes.intervals.iter().map(|interval| {
            let count = axes.length.messages(*interval);
            interval.times(i64::try_from(count).unwrap_or(i64::MAX))
        });
        let Some(longest) = lengths.max() else { return };
        let epoch = Wall::from_unix_nanos(0);
        if season.next(epoch, longest + pause).is_none() {
            let what = format!(
                "an experiment of {} is longer than the season '{}' is open",
                longest.exact(),
                season.name
            );
            let fault = Fault::new(what, "write a shorter duration, or more blocks of it");
            problems.add(endpoint.clone(), fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_text::Source;

    use super::*;
    use crate::plan::parse;

    const PLAN: &str = r#"
version = 1
name = "p"
interval = "1s"
duration = "30min"
[[endpoint]]
name = "a"
url = "udp://10.0.0.1"
"#;

    fn seasons(text: &str) -> Vec<Season> {
        let plan = parse(&Source::new("p.toml", format!("{PLAN}{text}"))).expect("a good plan");
        plan.seasons
    }

    /// A moment of the week that begins on Monday, 16 November 2026.
    fn moment(day: i64, hour: i64, minute: i64) -> Wall {
        const MONDAY: i64 = 1_794_787_200;
        Wall::from_unix_nanos((MONDAY + day * 86_400 + hour * 3_600 + minute * 60) * 1_000_000_000)
    }

    fn half_an_hour() -> Span {
        Span::from_secs(1_800)
    }

    #[test]
    fn a_season_is_open_in_its_hours_on_its_days() {
        let text =
            "[[season]]\nname = \"low\"\nhours = \"01:00-05:00\"\ndays = [\"sat\", \"sun\"]\n";
        let low = &seasons(text)[0];
        assert_eq!(low.when(), "01:00-05:00 UTC on sat, sun");
        assert!(low.holds(moment(5, 1, 0), half_an_hour()));
        assert!(low.holds(moment(6, 4, 30), half_an_hour()));
        assert!(
            !low.holds(moment(6, 4, 31), half_an_hour()),
            "it ends too late"
        );
        assert!(!low.holds(moment(4, 2, 0), half_an_hour()), "a Friday");
        let next = |from| low.next(from, half_an_hour());
        assert_eq!(next(moment(0, 12, 7)), Some(moment(5, 1, 0)));
        assert_eq!(next(moment(5, 4, 45)), Some(moment(6, 1, 0)));
        assert_eq!(next(moment(6, 2, 3)), Some(moment(6, 2, 3)));
        assert_eq!(next(moment(6, 4, 45)), Some(moment(12, 1, 0)));
        assert_eq!(low.next(moment(0, 0, 0), Span::from_secs(5 * 3_600)), None);
    }

    #[test]
    fn hours_may_go_over_midnight_and_a_season_without_any_is_always() {
        let text =
            "[[season]]\nname = \"night\"\nhours = \"22:00-05:00\"\n[[season]]\nname = \"any\"\n";
        let all = seasons(text);
        assert!(all[0].holds(moment(2, 23, 50), half_an_hour()));
        assert!(!all[0].holds(moment(2, 21, 50), half_an_hour()));
        assert_eq!(
            all[0].next(moment(2, 6, 0), half_an_hour()),
            Some(moment(2, 22, 0))
        );
        assert_eq!(all[1].when(), "at any time");
        assert!(all[1].holds(moment(2, 6, 0), Span::from_secs(100 * 86_400)));
    }

    #[test]
    fn every_endpoint_is_measured_in_every_season_unless_it_says_which() {
        let text =
            "[[season]]\nname = \"low\"\nhours = \"01:00-05:00\"\n[[season]]\nname = \"high\"\n";
        let labels = |plan: &str| -> Vec<String> {
            let plan = parse(&Source::new("p.toml", format!("{plan}{text}"))).expect("good");
            let scenarios = crate::expand::scenarios(&plan);
            scenarios.iter().map(neph_model::Scenario::label).collect()
        };
        assert_eq!(
            labels(PLAN),
            [
                "a · every 1 s · 64 B · season low",
                "a · every 1 s · 64 B · season high"
            ]
        );
        let only = format!("{PLAN}season = \"low\"\n");
        assert_eq!(labels(&only), ["a · every 1 s · 64 B"]);
    }

    #[test]
    fn what_is_no_season_is_told_where_it_stands() {
        let told = |text: &str| {
            let found = parse(&Source::new("p.toml", format!("{PLAN}{text}"))).expect_err("wrong");
            let told: Vec<String> = found.iter().map(ToString::to_string).collect();
            told.join("\n")
        };
        let season = "[[season]]\nname = \"low\"\n";
        for (text, part) in [
            (
                "season = \"low\"\n".to_owned(),
                "there is no season 'low'; add a [[season]]",
            ),
            (
                format!("season = \"lwo\"\n{season}"),
                "there is no season 'lwo'; did you mean 'low'",
            ),
            (format!("{season}{season}"), "two seasons are called 'low'"),
            (format!("{season}hours = \"1-5\"\n"), "\"1-5\" are no hours"),
            (
                format!("{season}hours = \"05:00-05:00\"\n"),
                "begin and end at the same time",
            ),
            (format!("{season}hours = \"25:00-05:00\"\n"), "are no hours"),
            (format!("{season}days = \"someday\"\n"), "someday"),
            (
                format!("{season}hours = \"01:00-01:20\"\n"),
                "an experiment of 1800 s is longer than the season 'low' is open",
            ),
        ] {
            let told = told(&text);
            assert!(told.contains(part), "{part} in {told}");
        }
    }
}
