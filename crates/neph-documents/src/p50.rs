//! The P50 of times, as tables and lines show it.
//!
//! Does not own the calculation: `neph_stats` calculates quantiles, and `Tally` counts the
//! population.

use std::fmt::{self, Display};

use neph_model::{Span, Tally, Unanswered};
use neph_stats::{Sorted, quantile};

/// A P50, or why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum P50 {
    /// This time.
    At(Span),
    /// It lies among the messages without a reply, above every reply. The word is their outcome.
    Censored(&'static str),
    /// There are fewer than 6 messages.
    TooFew,
}

impl P50 {
    /// The P50 of these times, and of the further messages of the population that have `none`.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "nanoseconds of a response time, exact to 104 days"
    )]
    pub fn of(times: impl IntoIterator<Item = Span>, unanswered: Unanswered) -> Self {
        let unanswered_count = usize::try_from(unanswered.count()).unwrap_or(usize::MAX);
        let times = times.into_iter().map(|time| time.nanos() as f64);
        let mut nanos: Vec<f64> = times.collect();
        let p50 =
            Sorted::sort(&mut nanos).and_then(|sorted| quantile(sorted, unanswered_count, 0.5));
        match p50.map(|p50| p50.value().number()) {
            Ok(Some(nanos)) => Self::At(Span::from_nanos(nanos.round() as i64)),
            Ok(None) => Self::Censored(unanswered.word()),
            Err(_) => Self::TooFew,
        }
    }

    /// The P50 of a fleet, as stored at its end. Messages without a reply rank above all others:
    /// the median lies among them if they outnumber the replies.
    pub fn of_fleet(stored_p50: Option<Span>, tally: &Tally) -> Self {
        let unanswered = tally.without_service();
        match stored_p50 {
            Some(time) => Self::At(time),
            None if tally.replies < unanswered.count() => Self::Censored(unanswered.word()),
            None => Self::TooFew,
        }
    }

    /// The time, if it is one.
    pub const fn time(self) -> Option<Span> {
        match self {
            Self::At(time) => Some(time),
            Self::Censored(_) | Self::TooFew => None,
        }
    }
}

impl Display for P50 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(time) => time.fmt(f),
            Self::Censored(word) => f.pad(word),
            Self::TooFew => f.pad("-"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_without_a_reply_are_slower_than_every_reply() {
        let p50_with_lost = |lost| {
            let unanswered = Unanswered {
                lost,
                ..Unanswered::default()
            };
            P50::of([3, 1, 2, 4].map(Span::from_millis), unanswered)
        };
        assert_eq!(p50_with_lost(1), P50::TooFew, "6 are needed");
        assert_eq!(
            p50_with_lost(2),
            P50::At(Span::from_micros(3_500)),
            "of 6, not of 4"
        );
        assert_eq!(p50_with_lost(3), P50::At(Span::from_millis(4)));
        assert_eq!(p50_with_lost(4), P50::Censored("lost"));
        assert_eq!(
            [p50_with_lost(1), p50_with_lost(4)].map(|p50| p50.to_string()),
            ["-", "lost"]
        );
    }
}
