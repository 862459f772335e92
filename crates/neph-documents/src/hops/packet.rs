//! A packet with its timestamps at each point. Times are integer nanoseconds.

use std::net::SocketAddr;

use neph_capture::FiveTuple;
use neph_capture::path::passages::{PROTOCOLS, Passages, PathEnd, Row, protocol_index};
use neph_model::{OneWay, Span};
use neph_wire::ip;
use schemars::JsonSchema;
use serde::Serialize;

/// A packet: its timestamp at each point, and its delay in each segment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PacketDocument {
    /// Time since the first packet; null if not known.
    pub since_ns: Option<Span>,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Protocol of the packet.
    pub protocol: &'static str,
    /// Source address, with the port if the protocol has ports.
    pub source: String,
    /// Destination address, with the port if the protocol has ports.
    pub destination: String,
    /// Timestamp at each point, by the point's own clock; null if it did not capture the packet.
    pub timestamps_unix_ns: Vec<Option<i64>>,
    /// One-way delay in each segment; null if not known.
    pub segments: Vec<Option<DelayDocument>>,
    /// Round trip that the packet completed; null if none.
    pub round_trip_ns: Option<Span>,
    /// Index of the segment in which it was lost, from 0; null if it was not lost.
    pub lost_in: Option<usize>,
    /// Indexes of the segments in which it was reordered, from 0.
    pub reordered_in: Vec<usize>,
    /// Time from its first part to its last at each point; null if it was not split.
    pub first_to_last_part_ns: Option<Vec<Option<i64>>>,
}

/// A one-way delay with its error bound.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct DelayDocument {
    /// The delay.
    pub ns: Span,
    /// Error bound of the delay.
    pub bound_ns: Span,
}

impl From<OneWay> for DelayDocument {
    fn from(delay: OneWay) -> Self {
        Self {
            ns: delay.delay,
            bound_ns: delay.bound,
        }
    }
}

impl PacketDocument {
    /// The document of a matched packet.
    pub fn of(passages: &Passages, row: &Row) -> Self {
        let passage = &row.passage;
        let points = || 0..passages.names.len();
        let timestamp_at = |point| Some(passages.followed.stamp(point, passage.passed_at(point)?));
        let mut reordered_segments: Vec<usize> = (0..row.delays.len()).collect();
        reordered_segments.retain(|segment| passage.is_reordered(*segment));
        let spreads = points().map(|point| passages.followed.spread(passage, point));
        let spreads: Vec<Option<i64>> = spreads.collect();
        Self {
            since_ns: row.first_seen,
            direction: row.direction.name(),
            protocol: PROTOCOLS[protocol_index(passage.flow.protocol)],
            source: address_text(&passage.flow, passage.flow.source),
            destination: address_text(&passage.flow, passage.flow.destination),
            timestamps_unix_ns: points().map(timestamp_at).collect(),
            segments: row
                .delays
                .iter()
                .map(|delay| delay.map(DelayDocument::from))
                .collect(),
            round_trip_ns: row.round_trip,
            lost_in: match row.end {
                PathEnd::Lost(segment) => Some(segment),
                _ => None,
            },
            reordered_in: reordered_segments,
            first_to_last_part_ns: spreads.iter().any(Option::is_some).then_some(spreads),
        }
    }
}

/// An address of a flow, with the port if its protocol has ports. A fragment does not contain
/// ports: both are 0 then.
fn address_text(flow: &FiveTuple, address: SocketAddr) -> String {
    let has_ports = matches!(flow.protocol, ip::TCP | ip::UDP);
    let is_reported = (flow.source.port(), flow.destination.port()) != (0, 0);
    if has_ports && is_reported {
        return address.to_string();
    }
    address.ip().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_printed_for_protocols_that_have_them() {
        let texts = |protocol, source: u16, destination: u16| {
            let flow = FiveTuple {
                protocol,
                source: ([10, 0, 0, 1], source).into(),
                destination: ([10, 0, 0, 2], destination).into(),
            };
            [flow.source, flow.destination].map(|address| address_text(&flow, address))
        };
        assert_eq!(texts(ip::TCP, 0, 80), ["10.0.0.1:0", "10.0.0.2:80"]);
        assert_eq!(texts(ip::UDP, 9, 0), ["10.0.0.1:9", "10.0.0.2:0"]);
        assert_eq!(texts(ip::ICMP, 0, 0), ["10.0.0.1", "10.0.0.2"]);
        // Of a fragment.
        assert_eq!(texts(ip::UDP, 0, 0), ["10.0.0.1", "10.0.0.2"]);
    }
}
