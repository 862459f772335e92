//! Calculates expected arrivals: the same moments, lengths and flow through a separate gate.
//!
//! Owns these gates. The expectation uses the packets as they were really sent. It includes delays of the
//! sender, the path of the flow, and the schedule.

use std::collections::VecDeque;

use crate::gate::{Arrival, Flow, Gate, Jitter, Moment, PacketOutcome, Shape, Wire};

/// Number of random draws: enough for a reference that is far smoother than the measurement.
const RANDOM_DRAWS: u64 = 20;

/// The requested behaviour of one direction of a link for one flow.
#[derive(Clone, Debug)]
pub(super) struct RequestedLink<'l> {
    /// The direction as a whole.
    pub(super) shape: &'l Shape,
    /// A gate in its initial state.
    pub(super) gate: Gate,
    /// The flow, as a gate identifies it.
    pub(super) flow: Option<Flow>,
    /// Whether the direction has a schedule.
    pub(super) has_schedule: bool,
    /// The start of the schedule, on the clock of departures.
    pub(super) cue: i64,
}

impl RequestedLink<'_> {
    /// The index of the path that the flow takes.
    pub(super) fn path_index(&self) -> usize {
        self.gate.path_of(self.flow)
    }

    /// The wire of that path.
    pub(super) fn wire(&self) -> &Wire {
        let paths = &self.shape.paths;
        paths
            .get(self.path_index())
            .map_or(&self.shape.wire, |path| &path.wire)
    }

    /// Arrivals of packets of `bytes` with these departures (ascending), by one draw; `None` for dropped
    /// ones.
    pub(super) fn replay(&self, departures: &[i64], bytes: u32, draw: u64) -> Vec<Option<i64>> {
        self.pass_through(self.gate.clone().with_seed(draw), departures, bytes)
    }

    /// The same without loss, jitter and corruption.
    pub(super) fn replay_without_randomness(
        &self,
        departures: &[i64],
        bytes: u32,
    ) -> Vec<Option<i64>> {
        self.pass_through(self.gate.clone().without_randomness(), departures, bytes)
    }

    fn pass_through(&self, mut gate: Gate, departures: &[i64], bytes: u32) -> Vec<Option<i64>> {
        gate.apply_cue(Moment(self.cue));
        let mut arrivals = vec![None; departures.len()];
        let mut queued = VecDeque::new();
        for (number, departure) in departures.iter().enumerate() {
            let outcome = gate.admit(Arrival {
                at: Moment(*departure),
                length: bytes,
                flow: self.flow,
            });
            record_outcomes(&mut gate, &mut queued, &mut arrivals);
            match outcome {
                Some(outcome) => arrivals[number] = arrival(outcome),
                None => queued.push_back(number),
            }
        }
        while !queued.is_empty()
            && let Some(deadline) = gate.next_deadline()
        {
            gate.advance(deadline);
            record_outcomes(&mut gate, &mut queued, &mut arrivals);
        }
        arrivals
    }

    /// The delays of packets with these departures, in sorted nanoseconds: once per draw if there is
    /// randomness.
    pub(super) fn delays(&self, departures: &[i64], bytes: u32) -> Vec<Vec<i64>> {
        let draws = (0..self.draw_count()).map(|draw| {
            let departures_and_arrivals =
                departures.iter().zip(self.replay(departures, bytes, draw));
            let delays = departures_and_arrivals
                .filter_map(|(departure, arrival)| Some(arrival? - departure));
            let mut delays: Vec<i64> = delays.collect();
            delays.sort_unstable();
            delays
        });
        draws.collect()
    }

    /// The expected share of losses of these packets, 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "counts of packets")]
    pub(super) fn loss(&self, departures: &[i64], bytes: u32) -> f64 {
        if !self.has_schedule {
            return self.wire().loss.fraction();
        }
        let lost = (0..self.draw_count()).map(|draw| {
            let arrivals = self.replay(departures, bytes, draw);
            arrivals.iter().filter(|arrival| arrival.is_none()).count()
        });
        let lost: usize = lost.sum();
        lost as f64 / (departures.len().max(1) as f64 * self.draw_count() as f64)
    }

    /// Whether the delay of a packet has no randomness.
    pub(super) fn is_deterministic(&self) -> bool {
        let Wire {
            jitter, reorder, ..
        } = self.wire();
        *jitter == Jitter::None && reorder.fraction() <= 0.0 && !self.has_schedule
    }

    fn draw_count(&self) -> u64 {
        if self.is_deterministic() {
            1
        } else {
            RANDOM_DRAWS
        }
    }
}

fn record_outcomes(gate: &mut Gate, queued: &mut VecDeque<usize>, arrivals: &mut [Option<i64>]) {
    while let Some(outcome) = gate.next_outcome() {
        if let Some(number) = queued.pop_front() {
            arrivals[number] = arrival(outcome);
        }
    }
}

fn arrival(outcome: PacketOutcome) -> Option<i64> {
    match outcome {
        PacketOutcome::Forwarded(departure) => Some(departure.due.0),
        PacketOutcome::Dropped(..) => None,
    }
}

/// For a direction with this shape, no schedule and one path.
#[cfg(test)]
pub(super) fn requested(shape: &Shape) -> RequestedLink<'_> {
    RequestedLink {
        shape,
        gate: Gate::new(shape.clone(), 1),
        flow: None,
        has_schedule: false,
        cue: 0,
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{BitRate, ByteSize, Span};

    use super::*;
    use crate::gate::{QueueLimit, Share};

    #[test]
    fn queued_packets_depart_one_after_the_other_and_a_full_queue_drops_the_last() {
        let mut shape = Shape {
            rate: Some(BitRate(8_000_000)),
            queue: QueueLimit::Bytes(ByteSize(3_000)),
            ..Shape::default()
        };
        shape.wire.delay = Span::from_millis(5);
        // 1000 bytes take 1 ms; three fit.
        let arrivals = requested(&shape).replay(&[0, 0, 0, 0, 500_000], 1_000, 1);
        let millis = |at: i64| Some(at * 1_000_000);
        assert_eq!(arrivals, [millis(6), millis(7), millis(8), None, None]);
        let delays = requested(&shape).delays(&[0, 0], 1_000);
        assert_eq!(delays, [[6_000_000, 7_000_000]]);
    }

    #[test]
    fn random_delays_are_drawn_repeatedly_and_omitted_without_randomness() {
        let mut shape = Shape::default();
        shape.wire.delay = Span::from_millis(5);
        shape.wire.jitter = Jitter::Uniform(Span::from_millis(1));
        shape.wire.loss = crate::gate::Loss::Random(Share::from_billionths(500_000_000));
        let departures: Vec<i64> = (0..100).map(|number| number * 10_000_000).collect();
        let mut drawn = requested(&shape).delays(&departures, 64).concat();
        drawn.sort_unstable();
        assert!((800..1200).contains(&drawn.len()), "{}", drawn.len());
        assert!(drawn[0] >= 4_000_000 && drawn[drawn.len() - 1] <= 6_000_000);
        assert!(!requested(&shape).is_deterministic());
        let arrivals = requested(&shape).replay_without_randomness(&departures, 64);
        let expected_arrivals: Vec<i64> = departures
            .iter()
            .map(|departure| departure + 5_000_000)
            .collect();
        assert_eq!(
            arrivals.into_iter().flatten().collect::<Vec<i64>>(),
            expected_arrivals
        );
    }
}
