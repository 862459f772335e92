//! Datagrams of UDP that offload cut on the way, or joined: one large one at one point, several at the
//! next.
//!
//! Owns finding the pieces. No number says which of its bytes a piece carries: the first begins as the
//! whole does and has its number in IP; the others are behind it in their flow, numbered on (IPv6 numbers
//! nothing) and as long, but for the last. Where one is missing nothing is put together.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use neph_wire::ip::UDP;

use super::Place;
use super::packet::{Flows, Packets, Standing};

/// Datagrams by what the whole and its first piece have in common.
type Beginnings = HashMap<(u32, u32, u32), Vec<u32>, RandomState>;

/// The whole and its pieces, in the order of their bytes, which `seq` counts from then on.
pub(super) fn groups(packets: &mut Packets, flows: &Flows, points: &[Place]) -> Vec<Vec<u32>> {
    let is_missing = |number: u32| (0..points.len()).any(|at| packets.mark(number, at).is_none());
    let mut beginnings = Beginnings::default();
    for (number, packet) in (0_u32..).zip(&packets.of) {
        let is_candidate = packet.length > 0
            && packet.standing == Standing::Followed
            && flows.of[packet.flow as usize].0.protocol == UDP
            && is_missing(number);
        if is_candidate {
            let place = (packet.flow, packet.seq, packet.train);
            beginnings.entry(place).or_default().push(number);
        }
    }
    let mut firsts = HashMap::<u32, u32, RandomState>::default();
    for alike in beginnings.values() {
        if let [a, b] = alike[..]
            && let Some((whole, first)) = whole_and_first(packets, (a, b), points.len())
        {
            firsts.insert(first, whole);
        }
    }
    let mut groups = Vec::new();
    let mut taken = HashSet::<u32, RandomState>::default();
    for place in points.iter().filter(|_| !firsts.is_empty()) {
        for group in pieces(packets, flows, &place.order, &firsts) {
            if group.iter().all(|number| !taken.contains(number)) {
                taken.extend(&group);
                groups.push(group);
            }
        }
    }
    for group in &groups {
        let mut at = 0;
        packets.of[group[0] as usize].seq = 0;
        for piece in &group[1..] {
            let piece = &mut packets.of[*piece as usize];
            piece.seq = at;
            at += piece.length;
        }
    }
    groups
}

/// Which of two that begin alike is the whole, if no point saw both.
fn whole_and_first(packets: &Packets, (a, b): (u32, u32), points: usize) -> Option<(u32, u32)> {
    let sees = |number: u32, point: usize| packets.mark(number, point).is_some();
    if (0..points).any(|point| sees(a, point) && sees(b, point)) {
        return None;
    }
    let length = |number: u32| packets.get(number).length;
    match length(a).cmp(&length(b)) {
        std::cmp::Ordering::Greater => Some((a, b)),
        std::cmp::Ordering::Less => Some((b, a)),
        std::cmp::Ordering::Equal => None,
    }
}

/// Each whole of which this point saw all pieces, in its order.
fn pieces(
    packets: &Packets,
    flows: &Flows,
    order: &[u32],
    firsts: &HashMap<u32, u32, RandomState>,
) -> Vec<Vec<u32>> {
    let (mut open, mut done) = (HashMap::<u32, Vec<u32>, RandomState>::default(), Vec::new());
    for &number in order {
        let packet = packets.get(number);
        if let Some(whole) = firsts.get(&number) {
            open.insert(packet.flow, vec![*whole, number]);
            continue;
        }
        let Some(mut group) = open.remove(&packet.flow) else {
            continue;
        };
        let (whole, first) = (packets.get(group[0]), packets.get(group[1]));
        let last = packets.get(group[group.len() - 1]);
        let (flow, _) = flows.of[packet.flow as usize];
        // What others are like is decided later, and may be followed then.
        if packet.standing != Standing::Followed {
            continue;
        }
        // Numbers in IP have 16 bits.
        let is_next = flow.source.is_ipv6() || packet.seq == (last.seq + 1) & 0xffff;
        group.push(number);
        // All before it are as long as the first: else their group were no more open.
        let before = u32::try_from(group.len() - 2).unwrap_or(u32::MAX);
        let bytes = first
            .length
            .saturating_mul(before)
            .saturating_add(packet.length);
        if !is_next || packet.length > first.length || bytes > whole.length {
            continue;
        }
        if bytes == whole.length {
            done.push(group);
        } else if packet.length == first.length {
            open.insert(packet.flow, group);
        }
    }
    done
}
