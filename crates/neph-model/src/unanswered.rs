//! Messages of a population that have no time, and the word for a quantile that falls among them.

use std::iter::Sum;

/// Messages without a time, by how they ended. They rank above every reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// Answered, but not as expected.
    pub errors: u64,
    /// Sent, and not answered in time.
    pub lost: u64,
    /// Not sent.
    pub not_sent: u64,
}

impl Unanswered {
    /// How many there are.
    pub const fn count(self) -> u64 {
        self.errors + self.lost + self.not_sent
    }

    /// The text in place of a time, if a quantile lies among them: their outcome, or `no reply` for
    /// several outcomes.
    pub const fn word(self) -> &'static str {
        match self {
            Self {
                errors: 0,
                lost: 1..,
                not_sent: 0,
            } => "lost",
            Self {
                errors: 0,
                lost: 0,
                not_sent: 1..,
            } => "not sent",
            Self {
                errors: 1..,
                lost: 0,
                not_sent: 0,
            } => "error",
            Self { .. } => "no reply",
        }
    }
}

impl Sum for Unanswered {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::default(), |sum, unanswered| Self {
            errors: sum.errors + unanswered.errors,
            lost: sum.lost + unanswered.lost,
            not_sent: sum.not_sent + unanswered.not_sent,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_word_describes_how_all_requests_ended() {
        let of = |errors, lost, not_sent| {
            let counts = Unanswered {
                errors,
                lost,
                not_sent,
            };
            (counts.count(), counts.word())
        };
        assert_eq!(of(0, 3, 0), (3, "lost"));
        assert_eq!(of(0, 0, 14), (14, "not sent"));
        assert_eq!(of(2, 0, 0), (2, "error"));
        for (errors, lost, not_sent) in [(0, 1, 14), (1, 0, 1), (1, 1, 0), (1, 1, 1)] {
            assert_eq!(of(errors, lost, not_sent).1, "no reply");
        }
    }
}
