//! Wall-clock times in figures and on the page, at the offset from UTC that the settings have.
//!
//! Owns how much of a date a label needs: a campaign within a day needs none, one within a minute seconds.

use neph_model::{Span, UtcOffset, Wall};

use crate::data::ExperimentData;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;

/// `2026-11-21 21:30:05 UTC`.
pub fn moment(wall: Wall, offset: UtcOffset) -> String {
    format_time(wall, offset, "%Y-%m-%d %H:%M:%S").map_or_else(
        || "at an unknown time".to_owned(),
        |text| format!("{text} {offset}"),
    )
}

fn format_time(wall: Wall, offset: UtcOffset, format: &str) -> Option<String> {
    let seconds = wall.unix_nanos().div_euclid(SECOND) + i64::from(offset.seconds());
    let stamp = jiff::Timestamp::from_second(seconds).ok()?;
    Some(stamp.strftime(format).to_string())
}

/// How the times of labels that stand together are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockTimes {
    offset: UtcOffset,
    format: &'static str,
}

impl ClockTimes {
    /// For times between the first and the last of these: with the date where they span days, with seconds
    /// where two of them lie within a minute.
    pub fn over(times: impl IntoIterator<Item = Wall>, offset: UtcOffset) -> Self {
        let mut times: Vec<i64> = times.into_iter().map(Wall::unix_nanos).collect();
        times.sort_unstable();
        times.dedup();
        let day = |at: &i64| (at + i64::from(offset.seconds()) * SECOND).div_euclid(DAY);
        let needs_seconds = times.windows(2).any(|pair| pair[1] - pair[0] < MINUTE);
        let needs_date = times.first().map(day) != times.last().map(day);
        let format = match (needs_date, needs_seconds) {
            (false, false) => "%H:%M",
            (false, true) => "%H:%M:%S",
            (true, false) => "%b %-d %H:%M",
            (true, true) => "%b %-d %H:%M:%S",
        };
        Self { offset, format }
    }

    /// For when experiments started.
    pub fn of<'a>(
        experiments: impl IntoIterator<Item = &'a ExperimentData>,
        offset: UtcOffset,
    ) -> Self {
        let started = experiments
            .into_iter()
            .map(|experiment| experiment.experiment.started);
        Self::over(started, offset)
    }

    /// `14:05`, `14:05:03` or `Nov 25 14:05`; nothing where the clock was beyond all calendars.
    pub fn label(&self, wall: Wall) -> String {
        format_time(wall, self.offset, self.format).unwrap_or_default()
    }

    /// The zone's name: `UTC`, `UTC+02:00`.
    pub fn zone(&self) -> String {
        self.offset.to_string()
    }
}

/// A time on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockTick {
    /// Seconds since the axis began.
    pub at: f64,
    pub label: String,
}

/// Steps between ticks in seconds: what a clock divides into.
const STEPS: [i64; 17] = [
    10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800,
    604_800,
];

/// Round times of the clock within `seconds` from `start`, at most `max_ticks`; midnight shows the date.
#[expect(clippy::cast_precision_loss, reason = "seconds of a campaign")]
pub fn clock_ticks(
    start: Wall,
    seconds: f64,
    offset: UtcOffset,
    max_ticks: usize,
) -> Vec<ClockTick> {
    let begin = start.unix_nanos() as f64 / SECOND as f64 + f64::from(offset.seconds());
    let fits = |step: &&i64| seconds / **step as f64 <= max_ticks.max(1) as f64;
    let step = STEPS.iter().find(fits).copied().unwrap_or(604_800) as f64;
    let first = (begin / step).ceil();
    let positions = (0..max_ticks.max(1) * 2).map(|index| (first + index as f64) * step - begin);
    let within: Vec<f64> = positions.take_while(|at| *at <= seconds).collect();
    #[expect(clippy::cast_possible_truncation, reason = "a moment on a calendar")]
    let wall = |at: f64| start + Span::from_nanos((at * 1e9).round() as i64);
    let format = |at: f64| match at + begin {
        local if local.rem_euclid(86_400.0) < 0.5 => "%b %-d",
        _ if step < 60.0 => "%H:%M:%S",
        _ => "%H:%M",
    };
    let tick = |at: f64| ClockTick {
        at,
        label: format_time(wall(at), offset, format(at)).unwrap_or_default(),
    };
    within.into_iter().map(tick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2023-11-14 22:13:20 UTC.
    const START: i64 = 1_700_000_000;

    fn walls(later: &[i64]) -> Vec<Wall> {
        let wall = |later: &i64| Wall::from_unix_nanos((START + later) * SECOND);
        later.iter().map(wall).collect()
    }

    fn offset(text: &str) -> UtcOffset {
        text.parse().expect(text)
    }

    #[test]
    fn labels_have_the_date_and_the_seconds_only_where_they_need_them() {
        for (later, zone, label) in [
            (&[0, 3600][..], "UTC", "22:13"),
            (&[0, 20][..], "UTC", "22:13:20"),
            (&[0, 7200][..], "UTC", "Nov 14 22:13"),
            (&[0, 7200][..], "+02:00", "00:13"),
            (&[0, 20, 7200][..], "UTC", "Nov 14 22:13:20"),
        ] {
            let walls = walls(later);
            let times = ClockTimes::over(walls.iter().copied(), offset(zone));
            assert_eq!(times.label(walls[0]), label, "{later:?} {zone}");
        }
        let [start] = walls(&[0])[..] else { return };
        assert_eq!(
            moment(start, offset("-01:00")),
            "2023-11-14 21:13:20 UTC-01:00"
        );
    }

    #[test]
    fn clock_ticks_are_at_round_times_of_the_zone() {
        let [start] = walls(&[0])[..] else { return };
        let labels = |zone: &str, seconds: f64| {
            let ticks = clock_ticks(start, seconds, offset(zone), 6);
            let labels = ticks.iter().map(|tick| (tick.at, tick.label.clone()));
            labels.collect::<Vec<_>>()
        };
        let day = labels("UTC", 86_400.0);
        assert_eq!(day[0], (6400.0, "Nov 15".to_owned()));
        assert_eq!(day[1].1, "06:00");
        let shifted = labels("+05:30", 86_400.0);
        assert_eq!(shifted[0].1, "06:00");
        assert_eq!(labels("UTC", 1200.0)[0], (100.0, "22:15".to_owned()));
    }
}
