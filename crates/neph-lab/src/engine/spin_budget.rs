//! How long before a packet is due the engine must be awake, learned from the delay of its wake-ups.
//!
//! Owns the estimate and the budget for spinning. A halted idle core takes 5 to 60 us to wake up, which
//! varies between hosts and over time (measured on the development hosts). A fixed lead would be wasteful or
//! too short.

use neph_model::Span;

/// Of ten wake-ups, nine must be in time.
const IN_TIME_PARTS: i64 = 9;
const TOTAL_PARTS: i64 = 10;
/// Change of the estimate per wake-up in nanoseconds, once the host is known.
const STEP_NANOS: i64 = 500;
/// Change by the first wake-up, and number of wake-ups after which it halves. A slow link has a dozen
/// wake-ups in its first second, and a delay of 100 us must be learned by then.
const FIRST_STEP_NANOS: i64 = 20_000;
const HALVING_WAKE_UPS: i64 = 5;
/// Initial value: most hosts stay below.
const INITIAL_LATENESS: Span = Span::from_micros(40);
/// Spinning time above the estimate, for reading clocks and rings.
const MARGIN: Span = Span::from_micros(5);
/// Ratio of spinning to sleeping. At full duty the kernel stalls `SCHED_FIFO` for 50 ms in each second, and
/// other processes need the core as well.
const SPIN_SHARE: (i64, i64) = (1, 2);
/// Maximum budget of spinning time.
const MAX_BUDGET_NANOS: i64 = 2_000_000;

/// The estimate of an engine, and its budget for spinning.
#[derive(Clone, Debug)]
pub(super) struct SpinBudget {
    max_lead: Span,
    /// A quantile of the lateness of wake-ups: nanoseconds.
    lateness_nanos: i64,
    /// Number of wake-ups in the estimate.
    wake_ups: i64,
    budget_nanos: i64,
}

impl SpinBudget {
    /// An estimate of at most `max_lead`; zero: no lead.
    pub(super) fn with_max_lead(max_lead: Span) -> Self {
        Self {
            max_lead,
            lateness_nanos: INITIAL_LATENESS.nanos(),
            wake_ups: 0,
            budget_nanos: MAX_BUDGET_NANOS,
        }
    }

    /// The current lead, as far as the budget allows.
    pub(super) fn current_lead(&self) -> Span {
        if self.budget_nanos <= 0 {
            return Span::ZERO;
        }
        (Span::from_nanos(self.lateness_nanos) + MARGIN).min(self.max_lead)
    }

    /// Records a wake-up by timeout, this much after its due time.
    pub(super) fn record_wake_up(&mut self, lateness: Span) {
        // A later wake-up adds nine parts and an earlier one subtracts one part, so that nine of ten are
        // earlier in the long run. A single large delay moves it no more than any other.
        let step = STEP_NANOS
            .max(FIRST_STEP_NANOS * HALVING_WAKE_UPS / (HALVING_WAKE_UPS + self.wake_ups));
        self.wake_ups += 1;
        let step = if lateness.nanos() > self.lateness_nanos {
            step * IN_TIME_PARTS / TOTAL_PARTS
        } else {
            -step * (TOTAL_PARTS - IN_TIME_PARTS) / TOTAL_PARTS
        };
        self.lateness_nanos = (self.lateness_nanos + step).clamp(0, self.max_lead.nanos());
    }

    /// Records a sleep of this length.
    pub(super) fn record_sleep(&mut self, span: Span) {
        let earned = span.nanos() * SPIN_SHARE.0 / SPIN_SHARE.1;
        self.budget_nanos = (self.budget_nanos + earned).min(MAX_BUDGET_NANOS);
    }

    /// Records spinning of this length.
    pub(super) fn record_spin(&mut self, span: Span) {
        self.budget_nanos -= span.nanos();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_converges_to_the_p90_of_the_lateness() {
        let mut spin_budget = SpinBudget::with_max_lead(Span::from_micros(150));
        // Lateness from 0 to 99 us, uniform in a mixed order; occasionally 10 ms.
        for number in 0..20_000_i64 {
            let lateness = if number % 500 == 0 {
                Span::from_millis(10)
            } else {
                Span::from_micros(number * 37 % 100)
            };
            spin_budget.record_wake_up(lateness);
        }
        let final_lead = spin_budget.current_lead() - MARGIN;
        assert!(
            (Span::from_micros(84)..Span::from_micros(96)).contains(&final_lead),
            "{final_lead}"
        );
    }

    #[test]
    fn a_slow_host_is_detected_after_twelve_wake_ups() {
        let mut spin_budget = SpinBudget::with_max_lead(Span::from_micros(150));
        for number in 0..12_i64 {
            spin_budget.record_wake_up(Span::from_micros(90 + number * 7 % 10));
        }
        let learned = spin_budget.current_lead() - MARGIN;
        assert!(
            (Span::from_micros(90)..Span::from_micros(125)).contains(&learned),
            "{learned}"
        );
    }

    #[test]
    fn the_lead_is_small_on_a_punctual_host_and_limited_on_a_slow_host() {
        let mut spin_budget = SpinBudget::with_max_lead(Span::from_micros(100));
        for _ in 0..5_000 {
            spin_budget.record_wake_up(Span::from_micros(1));
        }
        assert!(
            spin_budget.current_lead() < Span::from_micros(8),
            "{}",
            spin_budget.current_lead()
        );
        for _ in 0..5_000 {
            spin_budget.record_wake_up(Span::from_micros(400));
        }
        assert_eq!(spin_budget.current_lead(), Span::from_micros(100));
        assert_eq!(
            SpinBudget::with_max_lead(Span::ZERO).current_lead(),
            Span::ZERO
        );
    }

    #[test]
    fn spinning_is_limited_by_the_time_slept() {
        let mut spin_budget = SpinBudget::with_max_lead(Span::from_micros(100));
        spin_budget.record_spin(Span::from_millis(3));
        assert_eq!(spin_budget.current_lead(), Span::ZERO, "nothing is left");
        spin_budget.record_sleep(Span::from_millis(2));
        assert_eq!(
            spin_budget.current_lead(),
            Span::ZERO,
            "half of it is earned"
        );
        spin_budget.record_sleep(Span::from_micros(10));
        assert!(spin_budget.current_lead() > Span::ZERO);
    }
}
