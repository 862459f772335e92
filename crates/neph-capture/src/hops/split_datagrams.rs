//! UDP datagrams that offload split or merged: one large datagram at one point, several at the next.
//!
//! Owns finding the pieces. No number shows which bytes a piece carries. The first one begins like the whole
//! and has its IP identification. The others follow it in their flow, with consecutive numbers (IPv6 has
//! none) and the same length, except the last. If a piece is missing, nothing is joined.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use neph_wire::ip::UDP;

use super::CapturePoint;
use super::packet::{Flows, PacketHandling, Packets};

/// Datagrams by what the whole and its first piece have in common.
type Beginnings = HashMap<(u32, u32, u32), Vec<u32>, RandomState>;

/// The whole and its pieces in byte order, which `seq` counts from then on.
pub(super) fn find_groups(
    packets: &mut Packets,
    flows: &Flows,
    points: &[CapturePoint],
) -> Vec<Vec<u32>> {
    let is_missing =
        |number: u32| (0..points.len()).any(|point| packets.passed_at(number, point).is_none());
    let mut beginnings = Beginnings::default();
    for (number, packet) in (0_u32..).zip(&packets.by_number) {
        let is_candidate = packet.length > 0
            && packet.handling == PacketHandling::Followed
            && flows.by_number[packet.flow as usize].0.protocol == UDP
            && is_missing(number);
        if is_candidate {
            let group_key = (packet.flow, packet.seq, packet.split_key);
            beginnings.entry(group_key).or_default().push(number);
        }
    }
    let mut whole_by_first = HashMap::<u32, u32, RandomState>::default();
    for numbers in beginnings.values() {
        if let [first_number, second_number] = numbers[..]
            && let Some((whole, first)) =
                whole_and_first(packets, (first_number, second_number), points.len())
        {
            whole_by_first.insert(first, whole);
        }
    }
    let mut groups = Vec::new();
    let mut used_packets = HashSet::<u32, RandomState>::default();
    for point in points.iter().filter(|_| !whole_by_first.is_empty()) {
        for group in find_complete_groups(packets, flows, &point.order, &whole_by_first) {
            if group.iter().all(|number| !used_packets.contains(number)) {
                used_packets.extend(&group);
                groups.push(group);
            }
        }
    }
    for group in &groups {
        let mut offset = 0;
        packets.by_number[group[0] as usize].seq = 0;
        for piece in &group[1..] {
            let piece = &mut packets.by_number[*piece as usize];
            piece.seq = offset;
            offset += piece.length;
        }
    }
    groups
}

/// Which of two datagrams with the same beginning is the whole, if no point saw both.
fn whole_and_first(packets: &Packets, (a, b): (u32, u32), points: usize) -> Option<(u32, u32)> {
    let has_passed = |number: u32, point: usize| packets.passed_at(number, point).is_some();
    if (0..points).any(|point| has_passed(a, point) && has_passed(b, point)) {
        return None;
    }
    let length = |number: u32| packets.get(number).length;
    match length(a).cmp(&length(b)) {
        std::cmp::Ordering::Greater => Some((a, b)),
        std::cmp::Ordering::Less => Some((b, a)),
        std::cmp::Ordering::Equal => None,
    }
}

/// Each whole whose pieces this point saw completely, in its order.
fn find_complete_groups(
    packets: &Packets,
    flows: &Flows,
    order: &[u32],
    whole_by_first: &HashMap<u32, u32, RandomState>,
) -> Vec<Vec<u32>> {
    let (mut open_groups, mut complete_groups) =
        (HashMap::<u32, Vec<u32>, RandomState>::default(), Vec::new());
    for &number in order {
        let packet = packets.get(number);
        if let Some(whole) = whole_by_first.get(&number) {
            open_groups.insert(packet.flow, vec![*whole, number]);
            continue;
        }
        let Some(mut group) = open_groups.remove(&packet.flow) else {
            continue;
        };
        let (whole, first) = (packets.get(group[0]), packets.get(group[1]));
        let last = packets.get(group[group.len() - 1]);
        let (flow, _) = flows.by_number[packet.flow as usize];
        // Packets that have an equal are decided later, and may be followed then.
        if packet.handling != PacketHandling::Followed {
            continue;
        }
        // IP identifications have 16 bits.
        let is_next = flow.source.is_ipv6() || packet.seq == (last.seq + 1) & 0xffff;
        group.push(number);
        // All earlier pieces are as long as the first: otherwise the group would be closed.
        let earlier_count = u32::try_from(group.len() - 2).unwrap_or(u32::MAX);
        let bytes = first
            .length
            .saturating_mul(earlier_count)
            .saturating_add(packet.length);
        if !is_next || packet.length > first.length || bytes > whole.length {
            continue;
        }
        if bytes == whole.length {
            complete_groups.push(group);
        } else if packet.length == first.length {
            open_groups.insert(packet.flow, group);
        }
    }
    complete_groups
}
