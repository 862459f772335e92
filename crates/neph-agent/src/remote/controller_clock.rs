//! Converts the reports of an agent to its controller's clock.
//!
//! Owns which times of a report are times of day. Agents whose clocks differ by seconds have their
//! experiments in the right order in the store, to within the error of the offset. What is measured from an
//! experiment's start on needs no change.

use neph_model::{
    ExperimentResult, FlowTrace, OrderResult, PingBetween, Prepared, Span, Update, Wall,
};

use super::AgentClockOffset;

/// The update of an order that was admitted while the agent's clock was so far from the controller's. One
/// offset holds for the whole order, so that a clock which is set meanwhile still shows.
pub(super) fn by_controllers_clock(update: Update, clock_offset: AgentClockOffset) -> Update {
    let times = TimeShift(-clock_offset.offset);
    match update {
        Update::Prepared(mut results) => {
            for prepared in results.iter_mut().flatten() {
                let Prepared { started, .. } = prepared;
                times.shift(started);
            }
            Update::Prepared(results)
        }
        Update::Pinged(mut pings) => {
            for PingBetween { sent, .. } in &mut pings {
                times.shift(sent);
            }
            Update::Pinged(pings)
        }
        Update::Done(Ok(result)) => Update::Done(Ok(times.shift_result(result, clock_offset))),
        Update::Done(Err(reason)) => Update::Done(Err(reason)),
        // They have no time of day, or that of packets.
        same @ (Update::Progress(_)
        | Update::Recorded(..)
        | Update::Journalled(..)
        | Update::Sampled(_)
        | Update::Captured(_)) => same,
    }
}

/// Times of day that are moved by so much.
#[derive(Clone, Copy, Debug)]
struct TimeShift(Span);

impl TimeShift {
    fn shift(self, time: &mut Wall) {
        *time = *time + self.0;
    }

    fn shift_result(self, mut result: OrderResult, clock_offset: AgentClockOffset) -> OrderResult {
        match &mut result {
            OrderResult::Experiments(results) => {
                for result in results.iter_mut().flatten() {
                    self.shift_experiment(result);
                    result.host.clock_sync = with_offset(&result.host.clock_sync, clock_offset);
                }
            }
            OrderResult::Throughput(throughput) => self.shift(&mut throughput.started),
            OrderResult::Traceroute(route) => self.shift(&mut route.started),
            // Of a capture all moments are those of its packets.
            OrderResult::Pings
            | OrderResult::Load
            | OrderResult::Reflector
            | OrderResult::Captured(_) => {}
        }
        result
    }

    fn shift_experiment(self, result: &mut ExperimentResult) {
        self.shift(&mut result.ended);
        if let Some(FlowTrace { started, .. }) = &mut result.trace {
            self.shift(started);
        }
        for (_, wall) in &mut result.anchors {
            *wall = wall.saturating_add(self.0.nanos());
        }
    }
}

/// The state of the agent's clock, with how far it is from the controller's.
fn with_offset(clock_sync: &str, clock_offset: AgentClockOffset) -> String {
    let (difference, bound) = (clock_offset.offset.abs(), clock_offset.bound);
    let side = if clock_offset.offset < Span::ZERO {
        "behind"
    } else {
        "ahead of"
    };
    let offset = format!("{difference} \u{b1} {bound} {side} the controller's clock");
    if clock_sync.is_empty() {
        offset
    } else {
        format!("{clock_sync}; {offset}")
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{Ending, HostFacts, Wall};

    use super::*;

    const APART: AgentClockOffset = AgentClockOffset {
        offset: Span::from_millis(7_000),
        bound: Span::from_millis(2),
    };

    fn at(seconds: i64) -> Wall {
        Wall::from_unix_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn an_experiment_of_an_agent_with_a_fast_clock_is_converted_to_controller_time() {
        let prepared = Prepared {
            started: at(107),
            flows: Vec::new(),
            fleet: None,
        };
        let update = by_controllers_clock(Update::Prepared(vec![Ok(prepared)]), APART);
        let Update::Prepared(results) = update else {
            panic!("{update:?}");
        };
        assert_eq!(results[0].as_ref().expect("prepared").started, at(100));

        let mut result = ExperimentResult::of_end(Ending::Complete, at(117), Vec::new());
        result.anchors = vec![(0, at(107).unix_nanos()), (5, at(112).unix_nanos())];
        result.host = HostFacts {
            clock_sync: "not synchronised".to_owned(),
            ..HostFacts::default()
        };
        let update = Update::Done(Ok(OrderResult::Experiments(vec![Ok(result)])));
        let update = by_controllers_clock(update, APART);
        let Update::Done(Ok(OrderResult::Experiments(results))) = update else {
            panic!("{update:?}");
        };
        let result = results[0].as_ref().expect("a result");
        assert_eq!(result.ended, at(110));
        let anchors = [(0, at(100).unix_nanos()), (5, at(105).unix_nanos())];
        assert_eq!(result.anchors, anchors);
        let clock = "not synchronised; 7.000 s \u{b1} 2.00 ms ahead of the controller's clock";
        assert_eq!(result.host.clock_sync, clock);
    }

    #[test]
    fn a_negative_clock_offset_is_reported_as_behind() {
        let late = AgentClockOffset {
            offset: Span::from_millis(-30),
            ..APART
        };
        let expected = "30.00 ms \u{b1} 2.00 ms behind the controller's clock";
        assert_eq!(with_offset("", late), expected);
    }
}
