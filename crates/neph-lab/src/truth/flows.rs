//! Evaluates a link's records by flow: paths over time, and reordering.
//!
//! Owns the order of packets. Records are in the order in which the link finished packets, so a packet on a
//! long path may be behind later ones. Packets wait here until no earlier packet can follow. Memory is
//! limited by flows, path changes, and arrivals within the longest delay.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::{Record, Verdict};

/// Minimum time in nanoseconds that packets wait for earlier ones: longer than the delay of most links.
const MIN_WAIT_NANOS: i64 = 1_000_000_000;

/// Identity of a flow in records. Without addresses, two pairs of sites with the same ports on one link count
/// as one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// 0 for `a` to `b`, 1 for `b` to `a`.
    pub direction: u8,
    /// IP protocol: 6 TCP, 17 UDP; others have no ports here and are one flow each.
    pub protocol: u8,
    /// The TCP or UDP source port.
    pub source_port: u16,
    /// The TCP or UDP destination port.
    pub destination_port: u16,
}

impl FlowKey {
    /// The reverse direction of the same flow.
    #[must_use]
    pub const fn reverse(self) -> Self {
        Self {
            direction: 1 - self.direction,
            protocol: self.protocol,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }
}

/// A flow in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTruth {
    /// Its paths over time; adjacent ones differ.
    pub segments: Vec<PathSegment>,
    /// Packets that were dropped before they had a path.
    pub without_path: u64,
    /// Packets that were recorded too late for a segment: the link delayed them longer than all others, and
    /// by more than a second.
    pub unassigned: u64,
}

/// A time during which a flow was on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSegment {
    /// The path's index.
    pub path: u8,
    /// When its first packet arrived; wall-clock nanoseconds.
    pub first_arrival: i64,
    /// When its last packet arrived; wall-clock nanoseconds.
    pub last_arrival: i64,
    /// Packets on the path, without copies.
    pub packets: u64,
    /// Of those, packets that never departed.
    pub lost: u64,
    /// Of those, packets that departed after a later one of the same flow (RFC 4737).
    pub reordered: u64,
}

impl FlowTruth {
    /// Number of path changes.
    pub fn path_changes(&self) -> u64 {
        u64::try_from(self.segments.len().saturating_sub(1)).unwrap_or(u64::MAX)
    }

    /// All its packets.
    pub fn packets(&self) -> u64 {
        self.without_path + self.unassigned + self.sum_over_segments(|segment| segment.packets)
    }

    /// Packets that departed after a later one.
    pub fn reordered(&self) -> u64 {
        self.sum_over_segments(|segment| segment.reordered)
    }

    /// Packets that had a path and never departed.
    pub fn lost(&self) -> u64 {
        self.sum_over_segments(|segment| segment.lost)
    }

    fn sum_over_segments(&self, count: impl Fn(&PathSegment) -> u64) -> u64 {
        self.segments.iter().map(count).sum()
    }

    /// The path at a moment, as far as packets show it. `None` before the first packet, after the last one,
    /// and between two paths.
    pub fn path_at(&self, time: i64) -> Option<u8> {
        let next = self
            .segments
            .partition_point(|segment| segment.last_arrival < time);
        let segment = self.segments.get(next)?;
        (segment.first_arrival <= time).then_some(segment.path)
    }
}

/// The flows of a link, separate for each direction, from its records in the order of the file. Copies are
/// left out. Reordering requires a record of every packet.
pub fn evaluate_flows(records: impl IntoIterator<Item = Record>) -> BTreeMap<FlowKey, FlowTruth> {
    let mut flows = FlowAccumulator::default();
    for record in records {
        flows.add_record(&record);
    }
    flows.finish()
}

/// Flows while records are read, for files that may be damaged.
#[derive(Debug, Default)]
pub struct FlowAccumulator {
    states: BTreeMap<FlowKey, FlowState>,
    waiting: BinaryHeap<Reverse<QueuedPacket>>,
    /// The latest time of any record.
    now: i64,
    longest_wait_nanos: i64,
}

#[derive(Debug, Default)]
struct FlowState {
    truth: FlowTruth,
    /// Arrival of the latest packet that departed.
    latest: Option<i64>,
    /// Arrival of the last packet that was assigned to a segment.
    last_assigned: Option<i64>,
}

/// A packet that waits for earlier ones, ordered by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedPacket {
    arrival: i64,
    flow: FlowKey,
    path: u8,
    is_lost: bool,
    is_reordered: bool,
}

impl FlowAccumulator {
    /// Adds the next record.
    pub fn add_record(&mut self, record: &Record) {
        let Record::Packet {
            passage,
            handling,
            verdict,
            left,
            ..
        } = record
        else {
            return;
        };
        if handling.is_copy {
            return;
        }
        let identity = &passage.identity;
        let flow = FlowKey {
            direction: passage.direction,
            protocol: identity.protocol,
            source_port: identity.source_port,
            destination_port: identity.destination_port,
        };
        let state = self.states.entry(flow).or_default();
        let Some(path) = handling.path else {
            state.truth.without_path += 1;
            return;
        };
        let arrival = passage.arrival;
        let is_lost = *verdict != Verdict::Delivered;
        let is_reordered = !is_lost && state.latest.is_some_and(|latest| arrival < latest);
        if !is_lost {
            state.latest = state.latest.max(Some(arrival));
        }
        self.longest_wait_nanos = self.longest_wait_nanos.max(left.saturating_sub(arrival));
        self.now = self.now.max(arrival).max(*left);
        self.waiting.push(Reverse(QueuedPacket {
            arrival,
            flow,
            path,
            is_lost,
            is_reordered,
        }));
        let wait_nanos = self.longest_wait_nanos.max(MIN_WAIT_NANOS);
        self.assign_up_to(self.now.saturating_sub(wait_nanos).saturating_sub(1));
    }

    /// Ends the input and returns the flows.
    pub fn finish(mut self) -> BTreeMap<FlowKey, FlowTruth> {
        self.assign_up_to(i64::MAX);
        let flows = self.states.into_iter();
        flows.map(|(key, state)| (key, state.truth)).collect()
    }

    /// Assigns all packets that arrived by `until` to segments.
    fn assign_up_to(&mut self, until: i64) {
        while let Some(Reverse(packet)) = self.waiting.peek().copied() {
            if packet.arrival > until {
                return;
            }
            self.waiting.pop();
            if let Some(state) = self.states.get_mut(&packet.flow) {
                state.assign(packet);
            }
        }
    }
}

impl FlowState {
    fn assign(&mut self, packet: QueuedPacket) {
        if self.last_assigned.is_some_and(|last| packet.arrival < last) {
            self.truth.unassigned += 1;
            return;
        }
        self.last_assigned = Some(packet.arrival);
        let segments = &mut self.truth.segments;
        if segments.last().is_none_or(|last| last.path != packet.path) {
            segments.push(PathSegment {
                path: packet.path,
                first_arrival: packet.arrival,
                last_arrival: packet.arrival,
                packets: 0,
                lost: 0,
                reordered: 0,
            });
        }
        if let Some(segment) = segments.last_mut() {
            segment.last_arrival = packet.arrival;
            segment.packets += 1;
            segment.lost += u64::from(packet.is_lost);
            segment.reordered += u64::from(packet.is_reordered);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::truth::{Identity, PacketHandling, PacketPassage};

    const MS: i64 = 1_000_000;

    /// A packet of a flow that arrived after `arrival` milliseconds and used a path of `delay` milliseconds.
    fn packet(port: u16, arrival: i64, (path, delay): (u8, i64)) -> Record {
        Record::Packet {
            passage: PacketPassage {
                direction: 0,
                length: 64,
                arrival: arrival * MS,
                identity: Identity {
                    protocol: 17,
                    source_port: port,
                    destination_port: 862,
                    ..Identity::default()
                },
            },
            handling: PacketHandling {
                path: Some(path),
                ..PacketHandling::default()
            },
            verdict: Verdict::Delivered,
            due: (arrival + delay) * MS,
            left: (arrival + delay) * MS,
        }
    }

    fn departure(record: &Record) -> i64 {
        match record {
            Record::Packet { left, .. } => *left,
            _ => 0,
        }
    }

    /// In the order in which a link writes them.
    fn sorted_by_departure(mut records: Vec<Record>) -> Vec<Record> {
        records.sort_by_key(departure);
        records
    }

    fn key(port: u16) -> FlowKey {
        FlowKey {
            direction: 0,
            protocol: 17,
            source_port: port,
            destination_port: 862,
        }
    }

    #[test]
    fn a_change_to_a_shorter_path_counts_the_reordered_packets() {
        // Every 5 ms; 43 ms until 20 ms, then 35 ms: the packet sent at 20 departs at 55, before that of 15
        // (58).
        let records = (0..10).map(|number| {
            let arrival = number * 5;
            let path = if arrival < 20 { (3, 43) } else { (0, 35) };
            packet(7, arrival, path)
        });
        let flows = evaluate_flows(sorted_by_departure(records.collect()));
        let truth = &flows[&key(7)];
        let segment = |path, first: i64, last: i64, packets, reordered| PathSegment {
            path,
            first_arrival: first * MS,
            last_arrival: last * MS,
            packets,
            lost: 0,
            reordered,
        };
        assert_eq!(
            truth.segments,
            [segment(3, 0, 15, 4, 1), segment(0, 20, 45, 6, 0)]
        );
        assert_eq!((truth.path_changes(), truth.packets()), (1, 10));
        assert_eq!(truth.path_at(15 * MS), Some(3));
        assert_eq!(truth.path_at(17 * MS), None, "between two packets");
        assert_eq!(truth.path_at(20 * MS), Some(0));
        assert_eq!(truth.path_at(46 * MS), None);
    }

    #[test]
    fn losses_copies_and_packets_without_a_path_are_counted_separately() {
        let mut records = vec![
            packet(7, 0, (1, 5)),
            packet(7, 1, (1, 5)),
            packet(7, 2, (1, 5)),
            packet(7, 3, (1, 5)),
        ];
        for (number, record) in records.iter_mut().enumerate() {
            let Record::Packet {
                handling,
                verdict,
                due,
                left,
                ..
            } = record
            else {
                continue;
            };
            match number {
                1 => (*verdict, *due, *left) = (Verdict::Lost, 0, 0),
                2 => handling.is_copy = true,
                3 => (handling.path, *verdict, *left) = (None, Verdict::QueueFull, 0),
                _ => {}
            }
        }
        let flows = evaluate_flows(records.into_iter().chain([Record::Cue { at: 5 }]));
        let truth = &flows[&key(7)];
        assert_eq!(
            (truth.lost(), truth.without_path, truth.reordered()),
            (1, 1, 0)
        );
        assert_eq!((truth.packets(), truth.path_changes()), (3, 0));
        assert_eq!(key(7).reverse().reverse(), key(7));
    }

    #[test]
    fn memory_for_waiting_packets_does_not_grow_with_the_file() {
        let mut flows = FlowAccumulator::default();
        for time in 0..100_000 {
            flows.add_record(&packet(7, time, (u8::from(time / 10_000 % 2 == 1), 30)));
            assert!(flows.waiting.len() <= 1_001 + 30, "{}", flows.waiting.len());
        }
        let truth = &flows.finish()[&key(7)];
        assert_eq!((truth.path_changes(), truth.packets()), (9, 100_000));
    }

    proptest! {
        /// For any delays of the paths, the segments are those of the order of arrival.
        #[test]
        fn segments_do_not_depend_on_the_order_of_records(
            choices in prop::collection::vec((0_u8..4, 0_u16..3), 1..300),
            delays in prop::array::uniform4(0_i64..900),
        ) {
            let records: Vec<Record> = (0..).zip(&choices).map(|(index, (path, port))| {
                packet(*port, index * 3, (*path, delays[usize::from(*path)]))
            }).collect();
            let flows = evaluate_flows(sorted_by_departure(records));
            for port in 0..3 {
                let port_paths = choices.iter().filter(|(_, flow_port)| *flow_port == port).map(|(path, _)| *path);
                let mut paths: Vec<u8> = port_paths.collect();
                let count = paths.len();
                paths.dedup();
                let Some(truth) = flows.get(&key(port)) else {
                    prop_assert_eq!(count, 0);
                    continue;
                };
                let segment_paths: Vec<u8> = truth.segments.iter().map(|segment| segment.path).collect();
                prop_assert_eq!(segment_paths, paths);
                prop_assert_eq!(truth.packets(), count as u64);
                prop_assert_eq!(truth.unassigned, 0);
            }
        }
    }
}
