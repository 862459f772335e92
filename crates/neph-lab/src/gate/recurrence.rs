//! When something happens that is counted from the lab's cue: once, for a while, or again and again.

use neph_model::Span;

/// The times of an entry of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recurrence {
    /// When it begins, after the cue.
    pub(crate) at: Span,
    /// When it ends, after the cue; for ever if none. Later than [`Self::at`].
    pub(crate) until: Option<Span>,
    /// After how long it begins again; longer than it lasts.
    pub(crate) every: Option<Span>,
}

impl Recurrence {
    /// How often it has begun by `time` after the cue.
    pub(crate) fn begin_count(&self, time: Span) -> i64 {
        self.count(self.at, time)
    }

    /// How often it has ended by `time` after the cue.
    pub(crate) fn end_count(&self, time: Span) -> i64 {
        self.until.map_or(0, |until| self.count(until, time))
    }

    /// Whether it holds at `time` after the cue.
    pub(crate) fn is_active_at(&self, time: Span) -> bool {
        self.begin_count(time) > self.end_count(time)
    }

    /// When it begins or ends next after `time`.
    pub(crate) fn next_after(&self, time: Span) -> Option<Span> {
        let next_time = |first: Span| match self.every {
            _ if time < first => Some(first),
            None => None,
            Some(every) => Some(first + every.times(self.count(first, time))),
        };
        let next_begin = next_time(self.at);
        let next_end = self.until.and_then(next_time);
        next_begin.into_iter().chain(next_end).min()
    }

    /// When it began last, by `time` after the cue; none before its first time.
    pub(crate) fn last_begin(&self, time: Span) -> Option<Span> {
        let latest = self
            .begin_count(time)
            .checked_sub(1)
            .filter(|latest| *latest >= 0)?;
        Some(self.at + self.every.unwrap_or_default().times(latest))
    }

    /// How often what is first at `first` has been by `time`.
    fn count(&self, first: Span, time: Span) -> i64 {
        match self.every {
            _ if time < first => 0,
            None => 1,
            Some(every) => 1 + (time - first).nanos() / every.nanos().max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: i64) -> Span {
        Span::from_secs(secs)
    }

    #[test]
    fn a_periodic_change_has_a_last_begin_and_an_active_time() {
        let recurrence = Recurrence {
            at: secs(10),
            until: Some(secs(15)),
            every: Some(secs(30)),
        };
        for (time, last_begin, is_active) in [
            (9, None, false),
            (10, Some(10), true),
            (15, Some(10), false),
            (40, Some(40), true),
            (69, Some(40), false),
        ] {
            assert_eq!(
                recurrence.last_begin(secs(time)),
                last_begin.map(secs),
                "{time} s"
            );
            assert_eq!(recurrence.is_active_at(secs(time)), is_active, "{time} s");
        }
        assert_eq!(Recurrence::default().last_begin(secs(7)), Some(Span::ZERO));
    }
}
