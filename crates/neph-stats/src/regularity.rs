//! The regularity of a sequence of timestamps: the skew of sends and of a server's timestamps.
//!
//! The skew of a timestamp is its distance from the one before it minus the scheduled distance. It uses only
//! differences of one clock's timestamps, so a clock offset has no effect.

use crate::casts::nanos_to_f64;
use crate::describe::{Description, describe};
use crate::error::StatsError;
use crate::sorted::{Sorted, refuse_fewer};

/// One timestamp of a numbered message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendTime {
    /// The message's number. Missing messages leave gaps in the numbers.
    pub sequence: u64,
    /// When, in nanoseconds of any one clock.
    pub nanos: i64,
}

/// How far a gap was from its nominal length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    /// The message that ends the gap.
    pub sequence: u64,
    /// Gap minus nominal gap in nanoseconds; negative when the message came early.
    pub nanos: i64,
}

/// The regularity of a sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Regularity {
    /// Summary of the skews, one for each gap, in nanoseconds.
    pub skew: Description,
    /// How far the last timestamp is behind the schedule of the first, in nanoseconds: 0 for a sender with an
    /// absolute schedule.
    pub drift: i64,
    /// The drift as a share of the time the schedule took; 1e-6 is 1 us per second.
    pub drift_rate: f64,
}

/// The skew of every gap of `send_times`, whose numbers ascend, against `interval` nanoseconds per message.
/// A gap over missing messages is compared with as many intervals.
///
/// # Errors
/// [`StatsError::TooFew`] for fewer than 2 timestamps; [`StatsError::NotAscending`] for a number that does
/// not ascend; [`StatsError::OutOfRange`] unless the interval is above 0.
pub fn skews(send_times: &[SendTime], interval: i64) -> Result<Vec<Skew>, StatsError> {
    refuse_fewer("skew", 2, send_times.len())?;
    if interval <= 0 {
        let (subject, value) = ("interval", nanos_to_f64(interval));
        return Err(StatsError::OutOfRange {
            subject,
            value,
            wanted: "above 0",
        });
    }
    if let Some(before) = send_times
        .windows(2)
        .position(|w| w[1].sequence <= w[0].sequence)
    {
        return Err(StatsError::NotAscending {
            subject: "message numbers",
            index: before + 1,
        });
    }
    let skew_of = |w: &[SendTime]| {
        let nanos = w[1]
            .nanos
            .saturating_sub(w[0].nanos)
            .saturating_sub(nominal(w[0], w[1], interval));
        Skew {
            sequence: w[1].sequence,
            nanos,
        }
    };
    Ok(send_times.windows(2).map(skew_of).collect())
}

/// Summarises [`skews`], with the same errors.
pub fn regularity(send_times: &[SendTime], interval: i64) -> Result<Regularity, StatsError> {
    let skews = skews(send_times, interval)?;
    let mut nanos: Vec<f64> = skews.iter().map(|s| nanos_to_f64(s.nanos)).collect();
    let drift = skews
        .iter()
        .fold(0_i64, |sum, s| sum.saturating_add(s.nanos));
    let planned = nominal(send_times[0], send_times[send_times.len() - 1], interval);
    Ok(Regularity {
        skew: describe(Sorted::sort(&mut nanos)?)?,
        drift,
        drift_rate: nanos_to_f64(drift) / nanos_to_f64(planned),
    })
}

/// The scheduled time between two messages.
fn nominal(first: SendTime, last: SendTime, interval: i64) -> i64 {
    i64::try_from(last.sequence - first.sequence)
        .unwrap_or(i64::MAX)
        .saturating_mul(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn send_times(of: &[(u64, i64)]) -> Vec<SendTime> {
        of.iter()
            .map(|&(sequence, nanos)| SendTime { sequence, nanos })
            .collect()
    }

    #[test]
    fn one_late_message_gives_two_skews_and_no_drift() {
        let late = send_times(&[(0, 0), (1, MS), (2, 2 * MS + 70), (3, 3 * MS), (4, 4 * MS)]);
        let nanos: Vec<i64> = skews(&late, MS).unwrap().iter().map(|s| s.nanos).collect();
        assert_eq!(nanos, [0, 70, -70, 0]);
        assert_eq!(regularity(&late, MS).unwrap().drift, 0);
    }

    #[test]
    fn missing_messages_are_not_lateness_and_a_slow_clock_is_drift() {
        let gap = send_times(&[(0, 0), (1, MS), (5, 5 * MS + 3)]);
        assert_eq!(
            skews(&gap, MS).unwrap()[1],
            Skew {
                sequence: 5,
                nanos: 3
            }
        );
        let slow: Vec<(u64, i64)> = (0..1000_u32)
            .map(|i| (i.into(), i64::from(i) * (MS + 20)))
            .collect();
        let r = regularity(&send_times(&slow), MS).unwrap();
        assert_eq!((r.drift, r.skew.n), (19_980, 999));
        assert!((r.drift_rate - 2e-5).abs() < 1e-12 && r.skew.sd.unwrap() < 1e-9);
    }

    #[test]
    fn inputs_without_a_skew_are_refused() {
        assert!(skews(&send_times(&[(0, 0)]), MS).is_err());
        assert!(skews(&send_times(&[(1, 0), (1, 5)]), MS).is_err());
        assert!(skews(&send_times(&[(0, 0), (1, 5)]), 0).is_err());
    }

    /// A server's timestamps come from outside: absurd ones must not stop the report.
    #[test]
    fn extreme_timestamps_saturate() {
        let absurd = send_times(&[(0, i64::MIN), (u64::MAX, i64::MAX)]);
        assert_eq!(skews(&absurd, MS).unwrap()[0].nanos, 0);
        assert!(regularity(&absurd, MS).is_ok());
    }
}
