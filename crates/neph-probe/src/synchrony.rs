//! The error bound of this host's wall clock, as STAMP reports it (RFC 8762, 4.2.1).

use neph_model::{Instant, Local, Span};
use neph_sys::clock::{self, SyncStatus};
use neph_wire::stamp::{ErrorEstimate, Format};

/// The kernel's value changes once per second.
const MAX_AGE: Span = Span::from_secs(1);
/// Error of reading the clock.
const READING_ERROR_NANOS: u64 = 1_000;
/// The kernel's value for a clock that is not synchronized (`NTP_PHASE_LIMIT`).
const UNKNOWN_MICROS: i64 = 16_000_000;

#[derive(Debug)]
pub(crate) struct Synchrony {
    last_asked: Instant<Local>,
    estimate: ErrorEstimate,
}

impl Synchrony {
    /// The current value.
    pub(crate) fn new(now: Instant<Local>) -> Self {
        Self {
            last_asked: now,
            estimate: estimate(clock::sync_status()),
        }
    }

    /// Asks the kernel again if its latest value is old.
    pub(crate) fn refresh(&mut self, now: Instant<Local>) {
        if now - self.last_asked >= MAX_AGE {
            *self = Self::new(now);
        }
    }

    pub(crate) const fn estimate(&self) -> ErrorEstimate {
        self.estimate
    }
}

/// The error bound, not the estimated error: code that subtracts these timestamps relies on it.
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

    const fn status_of(max_error_us: i64) -> SyncStatus {
        SyncStatus {
            synchronised: true,
            estimated_error_us: 7,
            max_error_us,
            rate_ppm: 0,
        }
    }

    #[test]
    fn the_error_estimate_has_the_bound_and_sync_state_of_the_kernel() {
        let error_bound = estimate(Some(status_of(20_000)));
        assert!(error_bound.synchronized);
        assert!(
            (20_001_000..20_300_000).contains(&error_bound.nanos()),
            "{error_bound:?}"
        );
        let lost = SyncStatus {
            synchronised: false,
            ..status_of(16_000_000)
        };
        for error_bound in [estimate(Some(lost)), estimate(None)] {
            assert!(!error_bound.synchronized);
            assert!(error_bound.nanos() >= 16_000_000_000, "{error_bound:?}");
        }
    }

    #[test]
    fn a_clock_that_was_just_set_still_has_an_error_estimate() {
        for micros in [0, -1] {
            assert!(estimate(Some(status_of(micros))).nanos() >= READING_ERROR_NANOS);
        }
    }
}
