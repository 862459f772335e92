//! Packets as neph-capture followed them, as packets of the figures.

use neph_capture::path::passages::{PROTOCOLS, Passages, PathEnd, Row, protocol_index};
use neph_model::Span;

use super::{HopsDelay, HopsDrawing, HopsPacket, HopsProtocol, hops};
use crate::Figure;

/// [`PROTOCOLS`], as figures have them.
const KINDS: [HopsProtocol; PROTOCOLS.len()] = [
    HopsProtocol::Icmp,
    HopsProtocol::Tcp,
    HopsProtocol::Udp,
    HopsProtocol::Other,
];

/// The figures of packets that passed points; none where no segment's delay is known.
pub fn passages(passages: &Passages) -> Vec<Figure> {
    let segments = passages.names.len().saturating_sub(1);
    let mut delays: Vec<HopsDelay> = Vec::new();
    let mut packets: Vec<HopsPacket<'_>> = Vec::new();
    for row in passages.rows() {
        let Some(first_seen) = row.first_seen else {
            continue;
        };
        delays.extend((0..segments).map(|segment| delay(&row, segment)));
        packets.push(HopsPacket {
            first_seen: first_seen.nanos(),
            direction: row.direction,
            protocol: KINDS[protocol_index(row.passage.flow.protocol)],
            segments: &[],
            round_trip: row.round_trip.map(Span::nanos),
        });
    }
    for (packet, segments) in packets.iter_mut().zip(delays.chunks(segments.max(1))) {
        packet.segments = segments;
    }
    hops(&HopsDrawing {
        points: &passages.names,
        packets: &packets,
    })
}

fn delay(row: &Row, segment: usize) -> HopsDelay {
    match row.delays.get(segment).copied().flatten() {
        Some(known) => HopsDelay::Known {
            delay: known.delay.nanos(),
            bound: known.bound.nanos(),
        },
        None if row.end == PathEnd::Lost(segment) => HopsDelay::Lost,
        None => HopsDelay::Unknown,
    }
}
