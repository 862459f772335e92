//! How far this machine's wall clock may be off, as STAMP tells it (RFC 8762, 4.2.1).

use neph_model::{Instant, Own, Span};
use neph_sys::clock::{self, SyncStatus};
use neph_wire::stamp::{ErrorEstimate, Format};

/// The kernel's word changes once a second.
const FRESH: Span = Span::from_secs(1);
/// What reading the clock adds.
const READING_ERROR_NANOS: u64 = 1_000;
/// What the kernel itself says of a clock that nobody keeps (`NTP_PHASE_LIMIT`).
const UNKNOWN_MICROS: i64 = 16_000_000;

#[derive(Debug)]
pub(crate) struct Synchrony {
    asked: Instant<Own>,
    estimate: ErrorEstimate,
}

impl Synchrony {
    /// As of now.
    pub(crate) fn new(now: Instant<Own>) -> Self {
        Self {
            asked: now,
            estimate: estimate(clock::sync_status()),
        }
    }

    /// Asks the kernel again if its latest word is old.
    pub(crate) fn refresh(&mut self, now: Instant<Own>) {
        if now - self.asked >= FRESH {
            *self = Self::new(now);
        }
    }

    pub(crate) const fn estimate(&self) -> ErrorEstimate {
        self.estimate
    }
}

/// The bound, not the guess: who subtracts our stamps must be able to rely on it.
fn estimate(status: Option<SyncStatus>) -> ErrorEstimate {
    let micros = status.map_or(UNKNOWN_MICROS, |status| status.max_error_us);
    let nanos = u64::try_from(micros).unwrap_or(0).saturating_mul(1_000);
    ErrorEstimate {
        synchronized: status.is_some_and(|status| status.synchronised),
        ..ErrorEstimate::from_nanos(nanos.saturating_add(READING_ERROR_NANOS), Format::Ntp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn kept(max_error_us: i64) -> SyncStatus {
        SyncStatus {
            synchronised: true,
            estimated_error_us: 7,
            max_error_us,
            rate_ppm: 0,
        }
    }

    #[test]
    fn the_kernels_bound_is_told_and_who_is_synchronised_says_so() {
        let told = estimate(Some(kept(20_000)));
        assert!(told.synchronized);
        assert!((20_001_000..20_300_000).contains(&told.nanos()), "{told:?}");
        let lost = SyncStatus {
            synchronised: false,
            ..kept(16_000_000)
        };
        for told in [estimate(Some(lost)), estimate(None)] {
            assert!(!told.synchronized);
            assert!(told.nanos() >= 16_000_000_000, "{told:?}");
        }
    }

    #[test]
    fn a_clock_that_was_just_set_is_read_with_an_error_all_the_same() {
        for micros in [0, -1] {
            assert!(estimate(Some(kept(micros))).nanos() >= READING_ERROR_NANOS);
        }
    }
}
