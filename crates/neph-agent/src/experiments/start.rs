//! The moment at which experiments of several places begin.
//!
//! Owns the wait for it, and that what is late does not run: it would overlap what comes after it.

use neph_model::{ExperimentOrder, OrderFailed, Span, Stop, Wall};
use neph_sys::clock;

use super::PerOrder;
use crate::failure::failed;
use crate::wall_clock::now;

/// How long after its moment an experiment may still begin.
const MAX_LATENESS: Span = Span::from_millis(250);
/// The longest nap: a stop is noticed within it, and a clock that is set.
const MAX_NAP: Span = Span::from_millis(20);

/// What is ready, at the start of its order; what was not ready by then has missed it. All orders of one list
/// have the same start.
pub(super) fn wait_for_start<T>(
    orders: &[ExperimentOrder],
    ready: PerOrder<T>,
    stop: &Stop,
) -> PerOrder<T> {
    let Some(start) = orders.iter().find_map(|order| order.start) else {
        return ready;
    };
    if stop.is_set() {
        let reason = |_| Err(failed("begin an experiment", "it was cancelled before"));
        return ready
            .into_iter()
            .map(|ready| ready.and_then(reason))
            .collect();
    }
    if let Some(late) = lateness(start, now()) {
        let missed = |_| Err(missed_start(late));
        return ready
            .into_iter()
            .map(|ready| ready.and_then(missed))
            .collect();
    }
    while !stop.is_set() {
        let remaining = start.unix_nanos() - now().unix_nanos();
        if remaining <= 0 {
            break;
        }
        clock::nap(Span::from_nanos(remaining).min(MAX_NAP).to_duration());
    }
    ready
}

/// How long neph may query what answers: no longer than it takes to be late.
pub(crate) fn max_query_time(order: &ExperimentOrder, usual: Span) -> Span {
    const MINIMUM: Span = Span::from_millis(300);
    match order.start {
        None => usual,
        Some(start) => {
            let remaining = start.unix_nanos().saturating_sub(now().unix_nanos());
            usual
                .min(Span::from_nanos(remaining) - MAX_LATENESS)
                .max(MINIMUM)
        }
    }
}

/// By how much the start was missed, if it was.
fn lateness(start: Wall, now: Wall) -> Option<Span> {
    let late = Span::from_nanos(now.unix_nanos().saturating_sub(start.unix_nanos()));
    (late > MAX_LATENESS).then_some(late)
}

fn missed_start(lateness: Span) -> OrderFailed {
    failed(
        OrderFailed::MISSED_START,
        format!("it was ready {lateness} after it"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::tests::order;

    fn orders_starting_at(start: Option<Wall>) -> Vec<ExperimentOrder> {
        let mut order = order("udp://127.0.0.1:9");
        order.start = start;
        vec![order]
    }

    fn wait_result(start: Option<Wall>) -> PerOrder<()> {
        wait_for_start(&orders_starting_at(start), vec![Ok(())], &Stop::new())
    }

    #[test]
    fn ready_experiments_begin_at_their_start_time_and_not_before() {
        let start = now() + Span::from_millis(300);
        assert_eq!(wait_result(Some(start)), vec![Ok(())]);
        assert!(now() >= start);
        assert_eq!(wait_result(None), vec![Ok(())]);
    }

    #[test]
    fn late_experiments_do_not_start_and_the_reason_has_the_lateness() {
        let start = now() + Span::from_secs(-2);
        let missed = wait_result(Some(start)).remove(0).expect_err("it is late");
        assert!(missed.to_string().contains("it was ready 2"), "{missed}");
        // Another reason stays.
        let reason = failed("ask who answers", "no answer");
        let failed = wait_for_start(
            &orders_starting_at(Some(start)),
            vec![Err::<(), _>(reason.clone())],
            &Stop::new(),
        );
        assert_eq!(failed, vec![Err(reason)]);
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let stop = Stop::new();
        stop.set();
        let start = now() + Span::from_secs(3600);
        let ended = wait_for_start(&orders_starting_at(Some(start)), vec![Ok(())], &stop).remove(0);
        assert!(ended.is_err(), "nothing begins");
    }
}
