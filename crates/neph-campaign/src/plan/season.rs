//! The plan's `[[season]]`: named times of the week in which experiments run. The same is measured
//! while a network has little load and while it has much. All times are UTC.

use std::ops::Range;

use neph_model::{Parameter, ParameterName, Span, Wall};
use neph_text::{Fault, Fields, FromNode, Node, Problems, Spanned, choice, did_you_mean};

use super::model::Axes;
use super::sections::Sections;
use super::single_line_text::single_line_text;
use super::typed::TypedAxes;

const MINUTE_NS: i64 = 60 * 1_000_000_000;
const DAY_MINUTES: i64 = 24 * 60;
const WEEK_MINUTES: i64 = 7 * DAY_MINUTES;
/// 1970-01-01 was a Thursday; weeks begin on Monday here.
const EPOCH_MINUTES: i64 = 3 * DAY_MINUTES;

/// A time of the week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Season {
    /// Its name: a level of the factor `season`.
    pub name: String,
    /// Minutes of a day, from and until, UTC; over midnight if the first is the greater. `None`:
    /// the whole day.
    pub hours: Option<(u16, u16)>,
    /// On which days of the week it opens, Monday first, by UTC's date.
    pub days: [bool; 7],
    /// The lab's topology in this season; `None`: the lab's own.
    pub topology: Option<Spanned<String>>,
    /// Where the plan writes it.
    pub span: Range<usize>,
}

impl Season {
    /// Whether the minute of the week, from Monday 00:00, belongs to it.
    fn includes(&self, minute: i64) -> bool {
        let minute = minute.rem_euclid(WEEK_MINUTES);
        let day = usize::try_from(minute / DAY_MINUTES).expect("a week has seven days");
        let minute_of_day = minute % DAY_MINUTES;
        let Some((from, until)) = self.hours else {
            return self.days[day];
        };
        let (from, until) = (i64::from(from), i64::from(until));
        if from < until {
            return self.days[day] && (from..until).contains(&minute_of_day);
        }
        // What is after midnight belongs to the day before, on which it opened.
        let previous_day = (day + 6) % 7;
        (self.days[day] && minute_of_day >= from)
            || (self.days[previous_day] && minute_of_day < until)
    }

    /// Whether it is open at `now` and stays so for `length`.
    pub fn is_open_for(&self, now: Wall, length: Span) -> bool {
        let first = minutes_since_monday(now.unix_nanos());
        let last_offset = length.nanos().saturating_sub(1);
        let last = minutes_since_monday(now.unix_nanos().saturating_add(last_offset));
        // What is open for a week without a gap is open for ever.
        (first..=last.min(first + WEEK_MINUTES)).all(|minute| self.includes(minute))
    }

    /// The next moment from `now` on when [`Self::is_open_for`]; `None` if there is never one.
    pub fn next_opening(&self, now: Wall, length: Span) -> Option<Wall> {
        if self.is_open_for(now, length) {
            return Some(now);
        }
        let first = now.unix_nanos().div_euclid(MINUTE_NS) + 1;
        let minutes = first..=first + WEEK_MINUTES;
        let moments = minutes.map(|minute| Wall::from_unix_nanos(minute * MINUTE_NS));
        // Only where it opens: nothing that does not fit there fits a minute later.
        let is_opening = |moment: &Wall| {
            let minute = minutes_since_monday(moment.unix_nanos());
            self.includes(minute) && !self.includes(minute - 1)
        };
        moments
            .filter(is_opening)
            .find(|moment| self.is_open_for(*moment, length))
    }

    /// Whether experiments never wait for it.
    pub fn is_always_open(&self) -> bool {
        self.hours.is_none() && self.days == [true; 7]
    }

    /// `01:00-05:00 UTC on sat, sun`.
    pub fn hours_text(&self) -> String {
        let clock = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
        let hours = self.hours.map_or_else(
            || "all day UTC".to_owned(),
            |(from, until)| format!("{}-{} UTC", clock(from), clock(until)),
        );
        let named_days = DAYS.iter().zip(self.days).filter(|(_, is_named)| *is_named);
        let days: Vec<&str> = named_days.map(|((name, _), _)| *name).collect();
        match (self.hours, days.len()) {
            (None, 7) => "at any time".to_owned(),
            (_, 7) => hours,
            _ => format!("{hours} on {}", days.join(", ")),
        }
    }
}

/// Minutes since a Monday 00:00 UTC.
fn minutes_since_monday(unix_nanos: i64) -> i64 {
    unix_nanos.div_euclid(MINUTE_NS) + EPOCH_MINUTES
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
        let span = table.span();
        let name = table.required_with("name", single_line_text);
        let hours = table.optional_with("hours", hours);
        let days = table.one_or_list_with("days", |node| choice(node, &DAYS));
        let topology = table.optional_with("topology", single_line_text);
        if let Some(name) = name {
            if seasons.iter().any(|other| other.name == name.value) {
                let message = format!("two seasons are called '{}'", name.value);
                table.fault(name.span.clone(), message, "give each its own name");
            }
            let listed_days = days.as_ref();
            let is_open_on = |day: usize| {
                listed_days.is_none_or(|days| days.iter().any(|listed| listed.value == day))
            };
            seasons.push(Season {
                name: name.value,
                hours: hours.map(|hours| hours.value),
                days: std::array::from_fn(is_open_on),
                topology,
                span,
            });
        }
        table.finish();
    }
    seasons
}

/// `01:00-05:00`.
fn hours(node: &Node) -> Result<(u16, u16), Fault> {
    let text = String::from_node(node)?;
    let minute_of_clock = |text: &str| -> Option<u16> {
        let (hour, minute) = text.trim().split_once(':')?;
        let is_two_digits =
            |text: &str| text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        if !is_two_digits(hour) || !is_two_digits(minute) {
            return None;
        }
        let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
        let is_valid = (hour < 24 && minute < 60) || (hour, minute) == (24, 0);
        is_valid.then_some(hour * 60 + minute)
    };
    let parts = text.split_once('-');
    let bounds =
        parts.and_then(|(from, until)| Some((minute_of_clock(from)?, minute_of_clock(until)?)));
    match bounds {
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
pub(crate) fn check(sections: &Sections, axes: &[&TypedAxes], problems: &Problems<'_>) {
    check_topologies(sections, problems);
    let seasons = &sections.seasons;
    let season_names: Vec<&str> = seasons.iter().map(|season| season.name.as_str()).collect();
    let season = ParameterName::Season;
    let written = axes.iter().filter_map(|axes| axes.parameters.get(&season));
    for value in written.flatten() {
        let name = value.value.season();
        if let Some(name) = name.filter(|name| !season_names.contains(&name.as_str())) {
            let message = format!("there is no season '{name}'");
            let remedy = match season_names.as_slice() {
                [] => "add a [[season]] of that name".to_owned(),
                season_names => did_you_mean(name, season_names),
            };
            problems.add(value.span.clone(), Fault::new(message, remedy));
        }
    }
}

/// A season's own topology needs a lab. What is measured once per block would be of one season, and
/// it is not known of which.
fn check_topologies(sections: &Sections, problems: &Problems<'_>) {
    let season_topology = |season: &Season| season.topology.clone();
    let Some(topology) = sections.seasons.iter().find_map(season_topology) else {
        return;
    };
    let fault = if !sections.has_lab {
        Fault::new("a season has a topology, but there is no lab", "add [lab]")
    } else if sections.throughput.is_some() || sections.traceroute.is_some() {
        let message = "throughput checks and traceroutes run once per block, in the topology that is up at that time";
        Fault::new(
            message,
            "remove them, or give each topology a plan of its own",
        )
    } else {
        return;
    };
    problems.add(topology.span, fault);
}

/// An endpoint that names no season is measured in all; each must be open long enough for an
/// experiment.
pub(crate) fn apply(
    axes: &mut Axes,
    seasons: &[Season],
    pause: Span,
    endpoint_span: &Range<usize>,
    problems: &Problems<'_>,
) {
    if seasons.is_empty() {
        return;
    }
    let parameters = seasons
        .iter()
        .map(|season| Parameter::Season(season.name.clone()));
    let selected = axes.parameters.entry(ParameterName::Season);
    let selected = selected.or_insert_with(|| parameters.collect());
    let selected: Vec<&String> = selected.iter().filter_map(Parameter::season).collect();
    for season in seasons
        .iter()
        .filter(|season| selected.contains(&&season.name))
    {
        let lengths = axes.intervals.iter().map(|interval| {
            let count = axes.length.messages(*interval);
            interval.times(i64::try_from(count).unwrap_or(i64::MAX))
        });
        let Some(max_length) = lengths.max() else {
            return;
        };
        let epoch = Wall::from_unix_nanos(0);
        if season.next_opening(epoch, max_length + pause).is_none() {
            let message = format!(
                "an experiment of {} is longer than the season '{}' is open",
                max_length.exact(),
                season.name
            );
            let fault = Fault::new(message, "write a shorter duration, or more blocks of it");
            problems.add(endpoint_span.clone(), fault);
        }
    }
}

#[cfg(test)]
mod tests;
