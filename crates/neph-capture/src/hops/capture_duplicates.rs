//! Duplicates in the capture of a point: from a mirror of both directions, or several interfaces.
//!
//! Owns distinguishing these from duplicates by the network (copies). A point has duplicates if it repeats
//! most packets of two hosts in both directions. Or if it alone repeats packets that passed an earlier point
//! and a later point once. The first copy counts.

use std::collections::BTreeMap;

use super::CapturePoint;
use super::packet::{Flows, NO_NUMBER, PacketHandling, Packets};
use crate::capture_matcher::MAX_DUPLICATE_NANOS;

/// Packets of one point, host pair and direction: how many numbered ones it shows, and how many of these
/// are duplicates.
type DuplicateCounts = BTreeMap<(usize, u32, bool), (u64, u64)>;

/// Removes duplicates in the capture from chains of equal packets; `firsts` has the first of each chain.
pub(super) fn remove_duplicates(
    packets: &mut Packets,
    flows: &Flows,
    points: &mut [CapturePoint],
    firsts: &[u32],
) {
    let mut removed: Vec<RemovedPackets> = (0..points.len())
        .map(|_| RemovedPackets::default())
        .collect();
    let pair_of = |packets: &Packets, number: u32| {
        let (flow, pair) = flows.by_number[packets.get(number).flow as usize];
        (pair, flow.is_upward())
    };
    let mut duplicate_counts = capture_duplicates(packets, points.len(), firsts, pair_of);
    if duplicate_counts.is_empty() {
        return;
    }
    count_packets(packets, points, &mut duplicate_counts, pair_of);
    for first in firsts {
        let (pair, _) = pair_of(packets, *first);
        for (point, removed) in removed.iter_mut().enumerate() {
            if is_mirrored(&duplicate_counts, point, pair) {
                removed.keep_first(packets, *first, point);
            }
        }
    }
    remove_single_point_duplicates(packets, &mut removed, firsts);
    for first in firsts {
        let chain: Vec<u32> = packets.chain(*first).skip(1).collect();
        for number in chain {
            let has_times =
                (0..points.len()).any(|point| packets.passed_at(number, point).is_some());
            if !has_times {
                packets.by_number[number as usize].handling = PacketHandling::Copy;
            }
        }
    }
    for (point, removed) in points.iter_mut().zip(removed) {
        removed.apply_to(point);
    }
}

/// Removed packets of a point.
#[derive(Debug, Default)]
struct RemovedPackets {
    /// New number of each timestamp by its old number; absent if it was removed.
    new_numbers: BTreeMap<u32, u32>,
    duplicates: u64,
}

impl RemovedPackets {
    /// Of timestamps close to each other, keeps the first, with the first packets of the chain.
    fn keep_first(&mut self, packets: &mut Packets, first: u32, point: usize) {
        let chain: Vec<u32> = packets.chain(first).collect();
        let times = times_at_point(packets, &chain, point);
        if duplicate_flags(&times).all(|is_duplicate| !is_duplicate) {
            return;
        }
        let is_duplicate: Vec<bool> = duplicate_flags(&times).collect();
        for (_, number) in &times {
            packets.set_passed_at(*number, point, None);
            self.new_numbers.insert(*number, NO_NUMBER);
        }
        let first_times = times
            .iter()
            .zip(is_duplicate)
            .filter(|(_, is_duplicate)| !is_duplicate);
        let mut kept_count = 0;
        for ((at, old_number), _) in first_times {
            packets.set_passed_at(chain[kept_count], point, Some(*at));
            self.new_numbers.insert(*old_number, chain[kept_count]);
            kept_count += 1;
        }
        self.duplicates += (times.len() - kept_count) as u64;
    }

    fn apply_to(self, point_state: &mut CapturePoint) {
        point_state.counts.capture_duplicates += self.duplicates;
        if self.new_numbers.is_empty() {
            return;
        }
        for number in &mut point_state.order {
            *number = self.new_numbers.get(number).copied().unwrap_or(*number);
        }
        point_state.order.retain(|number| *number != NO_NUMBER);
    }
}

/// Timestamps of a chain at a point, by time.
fn times_at_point(packets: &Packets, chain: &[u32], point: usize) -> Vec<(i64, u32)> {
    let times = chain.iter();
    let times = times.filter_map(|number| Some((packets.passed_at(*number, point)?, *number)));
    let mut times: Vec<(i64, u32)> = times.collect();
    times.sort_unstable();
    times
}

/// For each of these timestamps, whether it is a duplicate of the one before.
fn duplicate_flags(times: &[(i64, u32)]) -> impl Iterator<Item = bool> + '_ {
    let mut first_at = None;
    times.iter().map(move |(at, _)| {
        let is_duplicate =
            first_at.is_some_and(|first_at: i64| at.saturating_sub(first_at) < MAX_DUPLICATE_NANOS);
        if !is_duplicate {
            first_at = Some(*at);
        }
        is_duplicate
    })
}

/// Where numbered packets are duplicated in the capture, and how many.
fn capture_duplicates(
    packets: &Packets,
    points: usize,
    firsts: &[u32],
    pair_of: impl Fn(&Packets, u32) -> (u32, bool),
) -> DuplicateCounts {
    let mut duplicate_counts = DuplicateCounts::new();
    for first in firsts {
        if !packets.get(*first).is_distinguishable {
            continue;
        }
        let chain: Vec<u32> = packets.chain(*first).collect();
        let (pair, is_upward) = pair_of(packets, *first);
        for point in 0..points {
            let times = times_at_point(packets, &chain, point);
            let duplicates = duplicate_flags(&times)
                .filter(|is_duplicate| *is_duplicate)
                .count() as u64;
            if duplicates > 0 {
                duplicate_counts
                    .entry((point, pair, is_upward))
                    .or_default()
                    .1 += duplicates;
            }
        }
    }
    duplicate_counts
}

/// Number of packets per direction, where some are duplicated.
fn count_packets(
    packets: &Packets,
    points: &[CapturePoint],
    duplicate_counts: &mut DuplicateCounts,
    pair_of: impl Fn(&Packets, u32) -> (u32, bool),
) {
    for (point, capture_point) in points.iter().enumerate() {
        if duplicate_counts
            .range((point, 0, false)..(point + 1, 0, false))
            .next()
            .is_none()
        {
            continue;
        }
        for number in &capture_point.order {
            if packets.get(*number).is_distinguishable {
                let (pair, is_upward) = pair_of(packets, *number);
                duplicate_counts
                    .entry((point, pair, is_upward))
                    .or_default()
                    .0 += 1;
            }
        }
    }
}

/// Whether more than half of the packets of each of two hosts are duplicated. The network duplicates packets
/// of one direction only before they reach a point.
fn is_mirrored(duplicate_counts: &DuplicateCounts, point: usize, pair: u32) -> bool {
    [false, true].iter().all(|is_upward| {
        let counts = duplicate_counts.get(&(point, pair, *is_upward));
        counts.is_some_and(|(total, duplicates)| duplicates * 2 > total - duplicates)
    })
}

/// Removes packets that one point repeats and its neighbours do not, if that holds for most repetitions at
/// this point. A duplicate by the network would show at the next point too.
fn remove_single_point_duplicates(
    packets: &mut Packets,
    removed: &mut [RemovedPackets],
    firsts: &[u32],
) {
    let mut single_point_chains: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    let mut shared_chain_counts = vec![0_usize; removed.len()];
    for first in firsts
        .iter()
        .filter(|first| packets.get(**first).is_distinguishable)
    {
        let chain: Vec<u32> = packets.chain(*first).collect();
        let times_by_point: Vec<_> = (0..removed.len())
            .map(|point| times_at_point(packets, &chain, point))
            .collect();
        let points_with_packets = || {
            times_by_point
                .iter()
                .enumerate()
                .filter(|(_, times)| !times.is_empty())
        };
        let points_with_duplicates: Vec<usize> = points_with_packets()
            .filter(|(_, times)| times.len() > 1)
            .map(|(point, _)| point)
            .collect();
        let is_inner = |point| {
            points_with_packets().any(|(other, _)| other < point)
                && points_with_packets().any(|(other, _)| other > point)
        };
        match points_with_duplicates[..] {
            [point]
                if is_inner(point)
                    && duplicate_flags(&times_by_point[point])
                        .skip(1)
                        .all(|is_duplicate| is_duplicate) =>
            {
                single_point_chains.entry(point).or_default().push(*first);
            }
            _ => points_with_duplicates
                .iter()
                .for_each(|point| shared_chain_counts[*point] += 1),
        }
    }
    for (point, firsts) in single_point_chains {
        if firsts.len() > shared_chain_counts[point] {
            for first in firsts {
                removed[point].keep_first(packets, first, point);
            }
        }
    }
}

#[cfg(test)]
mod tests;
