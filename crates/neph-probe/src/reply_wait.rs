//! Stays awake around the expected moment of a reply.
//!
//! An idle core takes 10 to 20 us at the median and 40 to 120 us at p99 to wake for a reply and warm its
//! caches (measured). That would count as local delay. Owns the estimate of the reply's time and the wait
//! around it. Knows no protocol.

use std::io;

use neph_model::{FlowRole, Instant, Local, Span};
use neph_sys::ppoll::{self, Awaited};

use crate::spec::FlowSpec;
use crate::stamp_clock::now;

/// Time awake before the expected moment: the longest wake-up time.
const BEFORE: Span = Span::from_micros(40);
/// Time awake after it: replies of a quiet path differ by less.
const AFTER: Span = Span::from_micros(80);
/// A shorter interval would spend more than an eighth of the time awake. It needs that less, as its core
/// hardly idles.
const MIN_INTERVAL: Span = Span::from_millis(1);

/// The state of one flow.
///
/// Assumes that a reply comes as long after the latest send as the one before did. That is also valid for
/// paths longer than the interval, where the reply is to an earlier message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyWait {
    keeps_spinning: bool,
    sent: Instant<Local>,
    /// From the latest send to the latest reply.
    reply_time: Span,
    replies: u64,
    waiting: bool,
}

/// Begin and end of the time awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    start: Instant<Local>,
    end: Instant<Local>,
}

impl ReplyWait {
    /// Only for an experiment's main flow on a host with several cores. Two flows awake at once would delay a
    /// reflector on this host.
    pub(crate) fn for_flow(spec: &FlowSpec, now: Instant<Local>) -> Self {
        let other_cores = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
        let keeps_spinning = other_cores
            && spec.role == FlowRole::Main
            && spec.spin > Span::ZERO
            && spec.schedule.interval >= MIN_INTERVAL;
        Self::new(keeps_spinning, now)
    }

    const fn new(keeps_spinning: bool, now: Instant<Local>) -> Self {
        Self {
            keeps_spinning,
            sent: now,
            reply_time: Span::ZERO,
            replies: 0,
            waiting: false,
        }
    }

    /// A message is sent at `at`.
    pub(crate) const fn sent(&mut self, at: Instant<Local>) {
        self.sent = at;
        self.waiting = self.keeps_spinning;
    }

    /// Something was received at `at`; the flow has `replies` replies now.
    pub(crate) fn took_in(&mut self, replies: u64, at: Instant<Local>) {
        if self.waiting && replies > self.replies {
            self.reply_time = at - self.sent;
            self.waiting = false;
        }
        self.replies = replies;
    }

    /// When to be awake; `None` while nothing is expected any more.
    fn window(&self, now: Instant<Local>) -> Option<Window> {
        let expected = self.sent + self.reply_time;
        let (start, end) = (expected - BEFORE, expected + AFTER);
        (self.waiting && now < end).then_some(Window { start, end })
    }

    /// Waits until one of `poll_fds` is ready, or until `until`. Returns early when the time awake is over
    /// without a reply, so that the caller can do other work.
    ///
    /// # Errors
    /// Those of [`ppoll::wait`].
    pub(crate) fn wait(&self, poll_fds: &mut [Awaited], until: Instant<Local>) -> io::Result<()> {
        let Some(window) = self.window(now()) else {
            return sleep(poll_fds, until);
        };
        if until <= window.start {
            return sleep(poll_fds, until);
        }
        sleep(poll_fds, window.start)?;
        let until = until.min(window.end);
        while !poll_fds.iter().any(Awaited::has_something) && now() < until {
            sleep(poll_fds, now())?;
        }
        Ok(())
    }
}

fn sleep(poll_fds: &mut [Awaited], until: Instant<Local>) -> io::Result<()> {
    ppoll::wait(poll_fds, Some((until - now()).to_duration()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    const fn at(micros: i64) -> Instant<Local> {
        Instant::from_nanos(micros * 1000)
    }

    fn after_a_reply_of(micros: i64) -> ReplyWait {
        let mut reply_wait = ReplyWait::new(true, at(0));
        reply_wait.sent(at(10_000));
        reply_wait.took_in(1, at(10_000 + micros));
        reply_wait
    }

    #[test]
    fn the_next_reply_is_expected_after_the_last_rtt() {
        let mut reply_wait = after_a_reply_of(4000);
        assert_eq!(reply_wait.window(at(14_001)), None, "nothing is out");
        reply_wait.sent(at(20_000));
        let (start, end) = (at(23_960), at(24_080));
        assert_eq!(reply_wait.window(at(20_001)), Some(Window { start, end }));
        assert_eq!(
            reply_wait.window(at(24_080)),
            None,
            "it is late: back to sleep"
        );
    }

    #[test]
    fn a_reply_after_more_than_an_interval_is_expected_by_its_phase() {
        let mut reply_wait = ReplyWait::new(true, at(0));
        for (seq, sent) in (0_u32..6).zip((0..).step_by(10_000)) {
            reply_wait.sent(at(sent));
            // The reply to the message of 44 ms ago.
            reply_wait.took_in(u64::from(seq.saturating_sub(3)), at(sent + 4000));
        }
        reply_wait.sent(at(60_000));
        let start = reply_wait.window(at(60_000)).map(|window| window.start);
        assert_eq!(start, Some(at(63_960)));
    }

    #[test]
    fn data_without_a_reply_does_not_end_the_reply_wait() {
        let mut reply_wait = after_a_reply_of(4000);
        reply_wait.sent(at(20_000));
        reply_wait.took_in(1, at(20_100));
        assert!(reply_wait.window(at(20_200)).is_some());
    }

    #[test]
    fn a_flow_that_does_not_spin_has_no_reply_window() {
        let mut reply_wait = ReplyWait::new(false, at(0));
        reply_wait.sent(at(10_000));
        assert_eq!(reply_wait.window(at(10_000)), None);
    }

    #[test]
    fn the_reply_wait_ends_with_the_reply_or_with_its_window() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let mut poll_fds = [Awaited::readable(reader.as_fd())];
        let mut reply_wait = ReplyWait::new(true, now());
        let distant = now() + Span::from_secs(5);

        reply_wait.sent(now());
        reply_wait.wait(&mut poll_fds, distant).expect("the wait");
        assert!(
            !poll_fds[0].is_readable() && now() < distant,
            "given up early"
        );

        writer.write_all(b"x").expect("write");
        reply_wait.sent(now());
        reply_wait.wait(&mut poll_fds, distant).expect("the wait");
        assert!(poll_fds[0].is_readable());
    }
}
