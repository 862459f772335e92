//! Which packets a waterfall shows: the slowest, and some of the lost ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Direction, HopsDelay, HopsDrawing, HopsPacket, HopsProtocol};

/// Rows in all.
const MAX_ROWS: usize = 100;
/// Rows of lost packets: there may be so many of them that nothing else would be seen.
const MAX_LOST_ROWS: usize = 20;

/// How a packet's path ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketEnd {
    /// Every point saw it.
    Arrived,
    /// In this segment.
    Lost(usize),
}

/// A packet that is shown.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) first_seen: i64,
    pub(super) direction: Direction,
    pub(super) protocol: HopsProtocol,
    /// Segments with their delays, in the order in which they were passed; up to the first that is not
    /// known.
    pub(super) segments: Vec<(usize, i64)>,
    /// The sum of these, and of their bounds; nanoseconds.
    pub(super) total: i64,
    pub(super) bound: i64,
    pub(super) end: PacketEnd,
    pub(super) round_trip: Option<i64>,
}

impl Row {
    fn of(packet: &HopsPacket<'_>, end: PacketEnd) -> Self {
        let mut row = Self {
            first_seen: packet.first_seen,
            direction: packet.direction,
            protocol: packet.protocol,
            segments: Vec::new(),
            total: 0,
            bound: 0,
            end,
            round_trip: packet.round_trip.filter(|_| end == PacketEnd::Arrived),
        };
        for (segment, delay) in packet.segments_in_order() {
            let HopsDelay::Known { delay, bound } = delay else {
                break;
            };
            row.segments.push((segment, delay));
            row.total = row.total.saturating_add(delay);
            row.bound = row.bound.saturating_add(bound);
        }
        row
    }

    /// Where its segments end, in nanoseconds.
    fn bar_end(&self) -> i64 {
        let lengths = self.segments.iter().map(|(_, delay)| (*delay).max(0));
        lengths.fold(0, i64::saturating_add)
    }

    /// Where its bar ends, with the rest of its round trip.
    pub(super) fn bar_and_round_trip_end(&self) -> i64 {
        self.bar_end().max(self.round_trip.unwrap_or(0))
    }

    /// Where all of it ends: the bar, and the line of its bounds where it has one.
    pub(super) fn extent(&self) -> i64 {
        let bar_end = self.bar_end();
        let bounds_length = if self.end == PacketEnd::Arrived {
            self.bound
        } else {
            0
        };
        self.bar_and_round_trip_end()
            .max(bar_end.saturating_add(bounds_length))
    }
}

/// The packets that are shown, and how many there are of each kind.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// The slowest first, then the lost ones in the order of their time.
    pub(super) selected: Vec<Row>,
    /// When the first of all packets was seen.
    pub(super) start: i64,
    pub(super) arrived: usize,
    pub(super) lost: usize,
    /// Neither lost nor seen by every point.
    pub(super) partly_seen: usize,
}

impl Rows {
    pub(super) fn of(drawing: &HopsDrawing<'_>) -> Self {
        let packets = drawing.packets;
        let lost: Vec<usize> = (0..packets.len())
            .filter(|index| packets[*index].lost_segment().is_some())
            .collect();
        let arrived = packets
            .iter()
            .filter(|packet| packet.total().is_some())
            .count();
        let lost_rows = lost
            .len()
            .min(MAX_LOST_ROWS.max(MAX_ROWS.saturating_sub(arrived)));
        let mut selected = slowest(packets, MAX_ROWS - lost_rows);
        let mut lost_packets: Vec<Row> = (0..lost_rows)
            .map(|nth| &packets[lost[nth * lost.len() / lost_rows]])
            .filter_map(|packet| Some(Row::of(packet, PacketEnd::Lost(packet.lost_segment()?))))
            .collect();
        lost_packets.sort_by_key(|row| row.first_seen);
        selected.extend(lost_packets);
        Self {
            selected,
            start: packets
                .iter()
                .map(|packet| packet.first_seen)
                .min()
                .unwrap_or(0),
            arrived,
            lost: lost.len(),
            partly_seen: packets.len() - arrived - lost.len(),
        }
    }
}

/// The `max` packets that took longest, the longest first; of equals the earlier in the list.
fn slowest(packets: &[HopsPacket<'_>], max: usize) -> Vec<Row> {
    let mut slowest_packets = BinaryHeap::with_capacity(max + 1);
    for (index, packet) in packets.iter().enumerate() {
        if let Some(total) = packet.total() {
            slowest_packets.push(Reverse((total, Reverse(index))));
            if slowest_packets.len() > max {
                slowest_packets.pop();
            }
        }
    }
    let sorted = slowest_packets.into_sorted_vec();
    let row_of = |Reverse((_, Reverse(index))): Reverse<(i64, Reverse<usize>)>| {
        Row::of(&packets[index], PacketEnd::Arrived)
    };
    sorted.into_iter().map(row_of).collect()
}
