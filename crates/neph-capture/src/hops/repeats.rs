//! Duplicates in the capture of a point: from a mirror of both directions, or several interfaces.
//!
//! Owns distinguishing these from duplicates by the network (copies). A point has duplicates if it repeats
//! most packets of two hosts in both directions. Or if it alone repeats packets that passed an earlier point
//! and a later point once. The first copy counts.

use std::collections::BTreeMap;

use super::CapturePoint;
use super::packet::{Flows, NONE, PacketHandling, Packets};
use crate::capture_matcher::SOON;

/// Packets of one point, host pair and direction: how many numbered ones it shows, and how many of these
/// again.
type Shown = BTreeMap<(usize, u32, bool), (u64, u64)>;

/// Removes duplicates in the capture from chains of equal packets; `firsts` has the first of each chain.
pub(super) fn take_out(
    packets: &mut Packets,
    flows: &Flows,
    points: &mut [CapturePoint],
    firsts: &[u32],
) {
    let mut taken: Vec<RemovedPackets> = (0..points.len())
        .map(|_| RemovedPackets::default())
        .collect();
    let between = |packets: &Packets, number: u32| {
        let (flow, pair) = flows.of[packets.get(number).flow as usize];
        (pair, flow.is_upward())
    };
    let mut shown = capture_duplicates(packets, points.len(), firsts, between);
    if shown.is_empty() {
        return;
    }
    count_all(packets, points, &mut shown, between);
    for first in firsts {
        let (pair, _) = between(packets, *first);
        for (point, taken) in taken.iter_mut().enumerate() {
            if is_doubled(&shown, point, pair) {
                taken.keep_first(packets, *first, point);
            }
        }
    }
    take_out_alone(packets, &mut taken, firsts);
    for first in firsts {
        let chain: Vec<u32> = packets.chain(*first).skip(1).collect();
        for number in chain {
            let is_seen = (0..points.len()).any(|point| packets.mark(number, point).is_some());
            if !is_seen {
                packets.of[number as usize].handling = PacketHandling::Copy;
            }
        }
    }
    for (point, taken) in points.iter_mut().zip(taken) {
        taken.report(point);
    }
}

/// Removed packets of a point.
#[derive(Debug, Default)]
struct RemovedPackets {
    /// New number of each timestamp by its old number; absent if it was removed.
    now: BTreeMap<u32, u32>,
    repeats: u64,
}

impl RemovedPackets {
    /// Of timestamps close to each other, keeps the first, with the first packets of the chain.
    fn keep_first(&mut self, packets: &mut Packets, first: u32, point: usize) {
        let chain: Vec<u32> = packets.chain(first).collect();
        let marks = marks(packets, &chain, point);
        if is_repeated(&marks).all(|repeats| !repeats) {
            return;
        }
        let repeats: Vec<bool> = is_repeated(&marks).collect();
        for (_, number) in &marks {
            packets.set(*number, point, None);
            self.now.insert(*number, NONE);
        }
        let kept_marks = marks.iter().zip(repeats).filter(|(_, repeats)| !repeats);
        let mut many = 0;
        for ((mark, before), _) in kept_marks {
            packets.set(chain[many], point, Some(*mark));
            self.now.insert(*before, chain[many]);
            many += 1;
        }
        self.repeats += (marks.len() - many) as u64;
    }

    fn report(self, point_state: &mut CapturePoint) {
        point_state.point.repeats += self.repeats;
        if self.now.is_empty() {
            return;
        }
        for number in &mut point_state.order {
            *number = self.now.get(number).copied().unwrap_or(*number);
        }
        point_state.order.retain(|number| *number != NONE);
    }
}

/// Timestamps of a chain at a point, by time.
fn marks(packets: &Packets, chain: &[u32], point: usize) -> Vec<(i64, u32)> {
    let marks = chain.iter();
    let marks = marks.filter_map(|number| Some((packets.mark(*number, point)?, *number)));
    let mut marks: Vec<(i64, u32)> = marks.collect();
    marks.sort_unstable();
    marks
}

/// For each of these timestamps, whether it is a duplicate of the one before.
fn is_repeated(marks: &[(i64, u32)]) -> impl Iterator<Item = bool> + '_ {
    let mut first = None;
    marks.iter().map(move |(mark, _)| {
        let is_repeated = first.is_some_and(|first: i64| mark.saturating_sub(first) < SOON);
        if !is_repeated {
            first = Some(*mark);
        }
        is_repeated
    })
}

/// Where numbered packets are duplicated in the capture, and how many.
fn capture_duplicates(
    packets: &Packets,
    points: usize,
    firsts: &[u32],
    between: impl Fn(&Packets, u32) -> (u32, bool),
) -> Shown {
    let mut shown = Shown::new();
    for first in firsts {
        if !packets.get(*first).is_named {
            continue;
        }
        let chain: Vec<u32> = packets.chain(*first).collect();
        let (pair, is_upward) = between(packets, *first);
        for point in 0..points {
            let marks = marks(packets, &chain, point);
            let repeats = is_repeated(&marks).filter(|repeats| *repeats).count() as u64;
            if repeats > 0 {
                shown.entry((point, pair, is_upward)).or_default().1 += repeats;
            }
        }
    }
    shown
}

/// Number of packets per direction, where some are duplicated.
fn count_all(
    packets: &Packets,
    points: &[CapturePoint],
    shown: &mut Shown,
    between: impl Fn(&Packets, u32) -> (u32, bool),
) {
    for (point, capture_point) in points.iter().enumerate() {
        if shown
            .range((point, 0, false)..(point + 1, 0, false))
            .next()
            .is_none()
        {
            continue;
        }
        for number in &capture_point.order {
            if packets.get(*number).is_named {
                let (pair, is_upward) = between(packets, *number);
                shown.entry((point, pair, is_upward)).or_default().0 += 1;
            }
        }
    }
}

/// Whether more than half of the packets of each of two hosts are duplicated. The network duplicates packets
/// of one direction only before they reach a point.
fn is_doubled(shown: &Shown, point: usize, pair: u32) -> bool {
    [false, true].iter().all(|is_upward| {
        let of = shown.get(&(point, pair, *is_upward));
        of.is_some_and(|(total, repeats)| repeats * 2 > total - repeats)
    })
}

/// Removes packets that one point repeats and its neighbours do not, if that holds for most repetitions at
/// this point. A duplicate by the network would show at the next point too.
fn take_out_alone(packets: &mut Packets, taken: &mut [RemovedPackets], firsts: &[u32]) {
    let mut single_repeats: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    let mut shared = vec![0_usize; taken.len()];
    for first in firsts.iter().filter(|first| packets.get(**first).is_named) {
        let chain: Vec<u32> = packets.chain(*first).collect();
        let marks: Vec<_> = (0..taken.len())
            .map(|point| marks(packets, &chain, point))
            .collect();
        let point_marks = || {
            marks
                .iter()
                .enumerate()
                .filter(|(_, marks)| !marks.is_empty())
        };
        let several: Vec<usize> = point_marks()
            .filter(|(_, marks)| marks.len() > 1)
            .map(|(point, _)| point)
            .collect();
        let is_inner = |point| {
            point_marks().any(|(other, _)| other < point)
                && point_marks().any(|(other, _)| other > point)
        };
        match several[..] {
            [point]
                if is_inner(point) && is_repeated(&marks[point]).skip(1).all(|repeats| repeats) =>
            {
                single_repeats.entry(point).or_default().push(*first);
            }
            _ => several.iter().for_each(|point| shared[*point] += 1),
        }
    }
    for (point, firsts) in single_repeats {
        if firsts.len() > shared[point] {
            for first in firsts {
                taken[point].keep_first(packets, first, point);
            }
        }
    }
}

#[cfg(test)]
mod tests;
