//! Whether a peer gets on with what it began: a request that it sends, a reply that it reads.
//!
//! Were any progress enough, a byte now and then would hold megabytes for days.

use neph_model::{Instant, Local, Span};

/// A line of 64 kbit/s does twice as much.
const MIN_BYTES_PER_SECOND: i64 = 4_000;
/// Progress is looked at over so long: a path that is down for a moment is no abuse.
pub(crate) const WINDOW: Span = Span::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    window: Span,
    since: Instant<Local>,
    from: u64,
}

impl Progress {
    /// Something was begun, of which `bytes` are done.
    pub(crate) const fn new(window: Span, bytes: u64, now: Instant<Local>) -> Self {
        Self {
            window,
            since: now,
            from: bytes,
        }
    }

    /// Whether a window is over in which too little was done; `bytes` are done by now.
    pub(crate) fn is_too_slow(&mut self, bytes: u64, now: Instant<Local>) -> bool {
        if now - self.since < self.window {
            return false;
        }
        if bytes.saturating_sub(self.from) < self.min_bytes() {
            return true;
        }
        (self.since, self.from) = (now, bytes);
        false
    }

    fn min_bytes(&self) -> u64 {
        let bytes = self.window.nanos().saturating_mul(MIN_BYTES_PER_SECOND) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at: i64) -> Instant<Local> {
        Instant::from_nanos(at * 1_000_000_000)
    }

    /// The first second in which a peer that does so many bytes a second is too slow.
    fn given_up(bytes_per_second: u64) -> Option<i64> {
        let mut progress = Progress::new(WINDOW, 0, second(0));
        (1..=3600)
            .zip(1..)
            .find(|(at, done)| progress.is_too_slow(done * bytes_per_second, second(*at)))
            .map(|(at, _)| at)
    }

    #[test]
    fn a_slow_connection_is_kept_and_a_trickling_one_closed() {
        assert_eq!(given_up(8_000), None, "64 kbit/s");
        assert_eq!(given_up(100), Some(10));
    }

    #[test]
    fn a_fast_start_gives_no_extra_time_for_the_last_bytes() {
        let mut progress = Progress::new(WINDOW, 0, second(0));
        assert!(!progress.is_too_slow(64 << 20, second(10)));
        assert!(!progress.is_too_slow(64 << 20, second(19)));
        assert!(progress.is_too_slow((64 << 20) + 10, second(20)));
    }
}
