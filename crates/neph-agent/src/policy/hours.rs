//! The hours of a day in which an agent may work.

use std::fmt;
use std::str::FromStr;

use neph_model::Wall;

const MINUTES_A_DAY: u16 = 24 * 60;
const MINUTE_NANOS: i64 = 60_000_000_000;

/// From one minute of the day (UTC) to another; the second may be on the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    from: u16,
    until: u16,
}

impl Hours {
    /// Whether they include the moment.
    pub fn include(self, wall: Wall) -> bool {
        let minute_of_day = (wall.unix_nanos() / MINUTE_NANOS).rem_euclid(i64::from(MINUTES_A_DAY));
        let (from, until) = (i64::from(self.from), i64::from(self.until));
        if from < until {
            (from..until).contains(&minute_of_day)
        } else {
            minute_of_day >= from || minute_of_day < until
        }
    }
}

fn minute_of_day(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let is_two_digits =
        |text: &str| text.len() == 2 && text.bytes().all(|digit| digit.is_ascii_digit());
    if !is_two_digits(hours) || !is_two_digits(minutes) {
        return None;
    }
    let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
    let is_valid = hours < 24 && minutes < 60 || hours == 24 && minutes == 0;
    is_valid.then_some(hours * 60 + minutes)
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, until] =
            [self.from, self.until].map(|minute_of_day| (minute_of_day / 60, minute_of_day % 60));
        write!(
            f,
            "{:02}:{:02}-{:02}:{:02}",
            from.0, from.1, until.0, until.1
        )
    }
}

impl FromStr for Hours {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (from, until) = text.split_once('-').ok_or(())?;
        let (from, until) = (
            minute_of_day(from).ok_or(())?,
            minute_of_day(until).ok_or(())?,
        );
        if from == until || from == MINUTES_A_DAY {
            return Err(());
        }
        Ok(Self { from, until })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time_of_day(hours: i64, minutes: i64) -> Wall {
        let day = 20_000 * i64::from(MINUTES_A_DAY);
        Wall::from_unix_nanos((day + hours * 60 + minutes) * MINUTE_NANOS)
    }

    #[test]
    fn hours_exclude_their_end_minute_and_may_cross_midnight() {
        let day: Hours = "08:00-18:30".parse().expect("hours");
        for (moment, is_included) in [
            (time_of_day(8, 0), true),
            (time_of_day(18, 29), true),
            (time_of_day(18, 30), false),
            (time_of_day(7, 59), false),
        ] {
            assert_eq!(day.include(moment), is_included, "{moment:?}");
        }
        let night: Hours = "22:00-06:00".parse().expect("hours");
        for (moment, is_included) in [
            (time_of_day(23, 0), true),
            (time_of_day(0, 0), true),
            (time_of_day(5, 59), true),
            (time_of_day(6, 0), false),
        ] {
            assert_eq!(night.include(moment), is_included, "{moment:?}");
        }
        let hours: Hours = "00:00-24:00".parse().expect("hours");
        assert!(hours.include(time_of_day(0, 0)) && hours.include(time_of_day(23, 59)));
    }

    #[test]
    fn invalid_times_of_day_are_refused() {
        for text in [
            "",
            "8-18",
            "08:00",
            "08:00-08:00",
            "25:00-26:00",
            "08:60-09:00",
            "24:00-01:00",
            "+8:00-09:00",
        ] {
            assert_eq!(text.parse::<Hours>(), Err(()), "{text}");
        }
    }
}
