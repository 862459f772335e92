//! TCP segments that offload split or merged: one large packet at one point, several at the next.
//!
//! Owns finding the pieces by their bytes. Offload does not change acknowledgement and timestamp options, so
//! pieces have these and overlapping bytes in common. The whole is followed. It passed a point when all its
//! bytes did, so its delay is that of its last byte. The time that its pieces took to pass is its spread.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use super::fragments;
use super::packet::{Flows, PacketHandling, Packets};
use super::packet_of_piece::{PacketOfPiece, Spreads};
use super::{CapturePoint, split_datagrams};
use crate::fragments::Piece;
use crate::sequence::Serial;

/// Finds the pieces, and replaces them by the whole.
pub(super) fn join_split_packets(
    packets: &mut Packets,
    flows: &Flows,
    points: &mut [CapturePoint],
    fragments: &[Vec<Piece>],
) -> Spreads {
    let (mut spreads, mut packet_of_piece) =
        fragments::join_fragments(packets, fragments, points.len());
    let mut pieces = find_candidates(packets, points.len());
    pieces.sort_unstable();
    let candidates_by_key = pieces.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    let mut groups = split_datagrams::find_groups(packets, flows, points);
    for candidates in candidates_by_key.filter(|candidates| candidates.len() > 1) {
        let numbers: Vec<u32> = candidates.iter().map(|(_, _, number)| *number).collect();
        groups.extend(group_overlapping(packets, numbers));
    }
    for group in groups {
        let Some(spread) = join_pieces(packets, &group, points.len()) else {
            continue;
        };
        spreads.insert(group[0], spread);
        packet_of_piece.extend(group.iter().map(|piece| (*piece, group[0])));
    }
    if !packet_of_piece.is_empty() {
        for (point, capture_point) in points.iter_mut().enumerate() {
            capture_point.order =
                order_with_wholes(packets, &capture_point.order, point, &packet_of_piece);
        }
    }
    spreads
}

/// Data that did not pass each point unchanged: by flow and split key.
fn find_candidates(packets: &Packets, points: usize) -> Vec<(u32, u32, u32)> {
    let is_missing =
        |number: u32| (0..points).any(|point| packets.passed_at(number, point).is_none());
    (0_u32..)
        .zip(&packets.by_number)
        .filter(|(number, packet)| {
            packet.has_data && packet.handling == PacketHandling::Followed && is_missing(*number)
        })
        .map(|(number, packet)| (packet.flow, packet.split_key, number))
        .collect()
}

/// Groups of packets with bytes in common, each in byte order.
fn group_overlapping(packets: &Packets, mut numbers: Vec<u32>) -> Vec<Vec<u32>> {
    let first = Serial(packets.get(numbers[0]).seq);
    let begin = |number: u32| i64::from(Serial(packets.get(number).seq).since(first));
    let end = |number: u32| begin(number) + i64::from(packets.get(number).length);
    numbers.sort_by_key(|number| (begin(*number), -end(*number)));
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let mut group_end = i64::MIN;
    for number in numbers {
        if begin(number) < group_end
            && let Some(group) = groups.last_mut()
        {
            group.push(number);
        } else {
            groups.push(vec![number]);
        }
        group_end = group_end.max(end(number));
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// Makes the first piece the whole. `None` where a byte passed a point twice: it was retransmitted.
fn join_pieces(packets: &mut Packets, group: &[u32], points: usize) -> Option<Vec<Option<i64>>> {
    let first = Serial(packets.get(group[0]).seq);
    let range = |number: u32| {
        let begin = i64::from(Serial(packets.get(number).seq).since(first));
        (begin, begin + i64::from(packets.get(number).length))
    };
    let length = group.iter().map(|piece| range(*piece).1).max()?;
    let mut times_by_point = Vec::new();
    for point in 0..points {
        let (mut end_of_bytes, mut bytes, mut times) = (0, 0, None::<(i64, i64)>);
        for piece in group {
            let Some(at) = packets.passed_at(*piece, point) else {
                continue;
            };
            let (begin, end) = range(*piece);
            if begin < end_of_bytes {
                return exclude_retransmitted(packets, group);
            }
            end_of_bytes = end;
            bytes += end - begin;
            let (from, to) = times.unwrap_or((at, at));
            times = Some((from.min(at), to.max(at)));
        }
        times_by_point.push(times.filter(|_| bytes == length));
    }
    for (point, times) in times_by_point.iter().enumerate() {
        packets.set_passed_at(group[0], point, times.map(|(_, to)| to));
    }
    for piece in &group[1..] {
        packets.by_number[*piece as usize].handling = PacketHandling::Part;
    }
    packets.by_number[group[0] as usize].length = u32::try_from(length).unwrap_or(u32::MAX);
    let spread = |times: &Option<(i64, i64)>| times.map(|(from, to)| to.saturating_sub(from));
    Some(times_by_point.iter().map(spread).collect())
}

/// Bytes that were retransmitted unsplit are separate packets. If they were split too, the pieces cannot be
/// assigned.
fn exclude_retransmitted(packets: &mut Packets, group: &[u32]) -> Option<Vec<Option<i64>>> {
    let range = |number: u32| (packets.get(number).seq, packets.get(number).length);
    if group.iter().any(|piece| range(*piece) != range(group[0])) {
        for piece in group {
            packets.by_number[*piece as usize].handling = PacketHandling::Ambiguous;
        }
    }
    None
}

/// Packets in the order in which they passed a point; a whole counts at its last piece.
fn order_with_wholes(
    packets: &Packets,
    capture_order: &[u32],
    point: usize,
    packet_of_piece: &PacketOfPiece,
) -> Vec<u32> {
    let mut placed_packets: HashSet<u32, RandomState> = HashSet::default();
    let mut order: Vec<u32> = capture_order
        .iter()
        .rev()
        .filter_map(|number| match packet_of_piece.get(number) {
            None => Some(*number),
            Some(whole)
                if packets.passed_at(*whole, point).is_some() && placed_packets.insert(*whole) =>
            {
                Some(*whole)
            }
            Some(_) => None,
        })
        .collect();
    order.reverse();
    order
}
