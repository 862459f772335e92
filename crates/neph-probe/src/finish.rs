//! When a flow's loop ends: everything possible is known, or it was stopped.
//!
//! Time is an argument. Does not know sessions: their drivers report their state.

use neph_model::{Instant, Local, Span, Stop};

/// How long replies to messages in flight are accepted after the last send: a message that was sent just
/// before the end is not lost.
const LAST_REPLIES: Span = Span::from_secs(1);

/// The end of one flow.
#[derive(Debug)]
pub(crate) struct Finish<'s> {
    stop: &'s Stop,
    /// How long to wait for the reflector's last timestamp.
    tail: Span,
    /// When a stopped flow accepts no more replies.
    deadline: Option<Instant<Local>>,
    done_since: Option<Instant<Local>>,
}

impl<'s> Finish<'s> {
    pub(crate) const fn new(stop: &'s Stop, tail: Span) -> Self {
        Self {
            stop,
            tail,
            deadline: None,
            done_since: None,
        }
    }

    /// Whether the flow was stopped and had its time for last replies. `end_schedule` is called once, when
    /// the stop is noticed.
    pub(crate) fn is_cut_off(&mut self, now: Instant<Local>, end_schedule: impl FnOnce()) -> bool {
        if !self.stop.is_set() {
            return false;
        }
        let deadline = *self.deadline.get_or_insert_with(|| {
            end_schedule();
            now + LAST_REPLIES
        });
        now >= deadline
    }

    /// Whether a flow whose messages are all decided need not wait any more.
    pub(crate) fn is_complete(&mut self, lacks_a_stamp: bool, now: Instant<Local>) -> bool {
        let since = *self.done_since.get_or_insert(now);
        !lacks_a_stamp || now >= since + self.tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: i64) -> Instant<Local> {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_stop_ends_the_schedule_once_and_waits_a_second_for_replies() {
        let stop = Stop::new();
        let mut finish = Finish::new(&stop, Span::ZERO);
        let mut end_count = 0;
        assert!(!finish.is_cut_off(at(0), || end_count += 1));
        stop.set();
        assert!(!finish.is_cut_off(at(5), || end_count += 1));
        assert!(!finish.is_cut_off(at(1_004), || end_count += 1));
        assert!(finish.is_cut_off(at(1_005), || end_count += 1));
        assert_eq!(end_count, 1);
    }

    #[test]
    fn the_wait_for_the_last_timestamp_is_bounded() {
        let stop = Stop::new();
        let mut finish = Finish::new(&stop, Span::from_millis(500));
        assert!(!finish.is_complete(true, at(10)));
        assert!(!finish.is_complete(true, at(509)));
        assert!(finish.is_complete(true, at(510)));
        assert!(Finish::new(&stop, Span::from_millis(500)).is_complete(false, at(10)));
    }
}
