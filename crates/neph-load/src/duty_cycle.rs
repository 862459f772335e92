//! Computes how long to work in each period to reach a share of the whole time.
//!
//! Owns the arithmetic. Reads no clock: the caller passes the elapsed time and the work so far.

use neph_model::Span;

/// The period over which the share is reached, unless another process uses the CPU.
pub(crate) const PERIOD: Span = Span::from_millis(10);
/// Tolerance of a target, in percent of the time.
pub const HELD: f64 = 3.0;
/// Maximum backlog. A thread that could not work for long must not work without pause for as long
/// afterwards.
const MAX_DEBT: Span = Span::from_millis(100);

/// A share of the time that is to be worked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DutyCycle {
    share: f64,
    forgiven: Span,
}

impl DutyCycle {
    /// `share` is from 0 to 1.
    pub(crate) fn new(share: f64) -> Self {
        Self {
            share,
            forgiven: Span::ZERO,
        }
    }

    /// How long to work in the period that begins `elapsed` after the start, after `worked` of
    /// work.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "nanoseconds of some weeks, far below 2^53"
    )]
    pub(crate) fn due(&mut self, elapsed: Span, worked: Span) -> Span {
        let until = (elapsed + PERIOD).nanos() as f64 * self.share;
        let missing_work = Span::from_nanos(until.round() as i64) - worked - self.forgiven;
        if missing_work > PERIOD + MAX_DEBT {
            let excess = missing_work - PERIOD - MAX_DEBT;
            self.forgiven += excess;
            return missing_work - excess;
        }
        missing_work.max(Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works through periods in steps of `step`; the first `lost` nanoseconds have no work.
    fn worked(share: f64, step: i64, lost: i64) -> (f64, i64) {
        let (mut duty, mut at, mut worked) = (DutyCycle::new(share), lost, 0);
        let mut longest = 0;
        for _ in 0..1_000 {
            let due = duty.due(Span::from_nanos(at), Span::from_nanos(worked));
            let steps = (due.nanos() + step - 1) / step;
            worked += steps * step;
            longest = longest.max(steps * step);
            at = (at + PERIOD.nanos()).max(at + steps * step);
        }
        #[expect(clippy::cast_precision_loss, reason = "some seconds")]
        let achieved = worked as f64 / (at - lost) as f64;
        (achieved, longest)
    }

    #[test]
    fn each_cpu_share_is_reached_for_any_work_size() {
        for share in [0.01, 0.25, 0.8, 0.98, 1.0] {
            for step in [1_000, 300_000, 7_000_000] {
                let (achieved, _) = worked(share, step, 0);
                assert!(
                    (achieved - share).abs() < 0.002,
                    "{share} {step}: {achieved}"
                );
            }
        }
    }

    #[test]
    fn a_long_delay_is_not_caught_up_in_one_burst() {
        let (achieved, longest) = worked(0.5, 1_000, 5_000_000_000);
        assert!(longest <= (PERIOD + MAX_DEBT).nanos() + 1_000, "{longest}");
        assert!((achieved - 0.5).abs() < 0.02, "{achieved}");
    }
}
