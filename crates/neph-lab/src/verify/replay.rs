//! What should have come of packets, by calculation: the same moments and lengths through a gate
//! of their own.
//!
//! Owns the gates that nobody waits for. So what is held against a link is what was asked of it
//! for the packets that were really sent, however punctual their sender was.

use std::collections::VecDeque;

use crate::gate::{Arrival, Fate, Gate, Moment, Shape, Wire};

/// What chance decides is drawn so often: enough that the reference is far smoother than what is
/// measured.
const DRAWS: u64 = 20;

/// When packets of `bytes` that left at these moments come, by a gate with this seed; none for
/// those that it drops. The moments are in order.
pub(super) fn replay(left: &[i64], bytes: u32, (shape, seed): (&Shape, u64)) -> Vec<Option<i64>> {
    let mut gate = Gate::new(shape.clone(), seed);
    let mut came = vec![None; left.len()];
    let mut queued = VecDeque::new();
    for (number, at) in left.iter().enumerate() {
        let packet = Arrival {
            at: Moment(*at),
            length: bytes,
            flow: None,
        };
        let fate = gate.admit(packet);
        settle(&mut gate, &mut queued, &mut came);
        match fate {
            Some(fate) => came[number] = arrival(fate),
            None => queued.push_back(number),
        }
    }
    gate.advance(Moment(i64::MAX / 2));
    settle(&mut gate, &mut queued, &mut came);
    came
}

fn settle(gate: &mut Gate, queued: &mut VecDeque<usize>, came: &mut [Option<i64>]) {
    while let Some(fate) = gate.next_decided() {
        if let Some(number) = queued.pop_front() {
            came[number] = arrival(fate);
        }
    }
}

fn arrival(fate: Fate) -> Option<i64> {
    match fate {
        Fate::Leaves(departure) => Some(departure.due.0),
        Fate::Dropped(..) => None,
    }
}

/// The delays of packets that left at these moments, in nanoseconds in order of size: over several
/// draws where there is chance in them.
pub(super) fn delays(left: &[i64], bytes: u32, shape: &Shape) -> Vec<i64> {
    let draws = if is_certain(shape) { 1 } else { DRAWS };
    let delays = (0..draws).flat_map(|seed| {
        let came = replay(left, bytes, (shape, seed));
        let pairs = left.iter().zip(came);
        let delays: Vec<i64> = pairs
            .filter_map(|(left, came)| Some(came? - left))
            .collect();
        delays
    });
    let mut delays: Vec<i64> = delays.collect();
    delays.sort_unstable();
    delays
}

/// Whether chance has no say in how long a packet takes.
pub(super) fn is_certain(shape: &Shape) -> bool {
    let Wire {
        jitter, reorder, ..
    } = &shape.wire;
    *jitter == crate::gate::Jitter::None && reorder.fraction() <= 0.0
}

/// The same without anything that chance has a say in.
pub(super) fn certain(shape: &Shape) -> Shape {
    let wire = Wire {
        delay: shape.wire.delay,
        ..Wire::default()
    };
    Shape {
        wire,
        ..shape.clone()
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{BitRate, ByteSize, Span};

    use super::*;
    use crate::gate::{Jitter, QueueLimit, Share};

    #[test]
    fn packets_that_wait_for_each_other_come_one_after_the_other_and_the_last_find_no_room() {
        let mut shape = Shape {
            rate: Some(BitRate(8_000_000)),
            queue: QueueLimit::Bytes(ByteSize(3_000)),
            ..Shape::default()
        };
        shape.wire.delay = Span::from_millis(5);
        // 1000 bytes take 1 ms; three fit.
        let came = replay(&[0, 0, 0, 0, 500_000], 1_000, (&shape, 1));
        let millis = |at: i64| Some(at * 1_000_000);
        assert_eq!(came, [millis(6), millis(7), millis(8), None, None]);
        assert_eq!(delays(&[0, 0], 1_000, &shape), [6_000_000, 7_000_000]);
    }

    #[test]
    fn chance_is_drawn_many_times_and_left_out_where_it_is_not_wanted() {
        let mut shape = Shape::default();
        shape.wire.delay = Span::from_millis(5);
        shape.wire.jitter = Jitter::Uniform(Span::from_millis(1));
        shape.wire.loss = crate::gate::Loss::Random(Share::from_billionths(500_000_000));
        let left: Vec<i64> = (0..100).map(|number| number * 10_000_000).collect();
        let drawn = delays(&left, 64, &shape);
        assert!((800..1200).contains(&drawn.len()), "{}", drawn.len());
        assert!(drawn[0] >= 4_000_000 && drawn[drawn.len() - 1] <= 6_000_000);
        let certain = certain(&shape);
        assert!(is_certain(&certain) && !is_certain(&shape));
        assert_eq!(delays(&left, 64, &certain), [5_000_000; 100]);
    }
}
