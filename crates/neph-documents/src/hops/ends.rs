//! Packets with an unknown property, their number and the reason: whether missing ones were lost,
//! and the direction of others.
//!
//! Owns the numbers and their text. Does not own the reason of one packet (passages).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use neph_capture::{Direction, Passage};
use schemars::JsonSchema;
use serde::Serialize;

use neph_capture::path::offsets::Offsets;
use neph_capture::path::passages::{
    PROTOCOLS, Passages, PathEnd, UnknownLossReason, protocol_index,
};

/// Sender and receiver.
type Hosts = (IpAddr, IpAddr);

fn hosts(passage: &Passage) -> Hosts {
    (passage.flow.source.ip(), passage.flow.destination.ip())
}

/// Numbers of packets by reason.
#[derive(Debug, Default)]
pub(super) struct UnknownLoss {
    never_passed: u64,
    address_translated: u64,
    before_capture: u64,
    after_capture: u64,
    truncated: u64,
    clock_unknown: u64,
    /// Kinds of packets that the next point never captured.
    kinds: Vec<Kind>,
}

/// The packets that may have been lost: it is not known, by reason.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LossUnknownDocument {
    /// The next point captured no packet of their hosts, or of their kind.
    pub never_passed: u64,
    /// Packets of `never_passed`, counted by kind.
    pub never_passed_kinds: Vec<KindDocument>,
    /// The next point captured their flow with other addresses or ports.
    pub address_translated: u64,
    /// The next point did not capture at that time, or no point captured the whole packet.
    pub not_captured: u64,
    /// Packets of `not_captured` at the end of the next point's capture.
    pub not_captured_at_end: u64,
    /// The clock offset was not known at that time.
    pub clock_offset_unknown: u64,
}

/// A kind of packets that a point never captured.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KindDocument {
    /// Name of the point.
    pub point: String,
    /// Protocol of the packets.
    pub protocol: &'static str,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Number of packets.
    pub packets: u64,
    /// Whether the point captured packets of this kind from other hosts.
    pub others_passed: bool,
}

/// A kind of packets that a point never captured.
#[derive(Debug)]
struct Kind {
    point: String,
    /// One of [`PROTOCOLS`].
    protocol: &'static str,
    direction: Direction,
    packets: u64,
    /// Whether it captured packets of this kind from other hosts: then the kind is not filtered
    /// out.
    has_others: bool,
}

impl UnknownLoss {
    pub(super) fn of(passages: &Passages) -> Self {
        let mut unknown = Self::default();
        // By point, direction and protocol: missing packets, and their hosts.
        let mut missing_by_kind: BTreeMap<(usize, Direction, usize), (u64, HashSet<Hosts>)> =
            BTreeMap::new();
        for row in passages.rows() {
            let PathEnd::Unknown(reason) = row.end else {
                continue;
            };
            match reason {
                UnknownLossReason::NeverPassed => unknown.never_passed += 1,
                UnknownLossReason::AddressTranslated => unknown.address_translated += 1,
                UnknownLossReason::KindNotSeen(point) => {
                    unknown.never_passed += 1;
                    let key = (
                        point,
                        row.direction,
                        protocol_index(row.passage.flow.protocol),
                    );
                    let (packets, host_pairs) = missing_by_kind.entry(key).or_default();
                    *packets += 1;
                    host_pairs.insert(hosts(&row.passage));
                }
                UnknownLossReason::CaptureNotBegun => unknown.before_capture += 1,
                UnknownLossReason::CaptureEnded => unknown.after_capture += 1,
                UnknownLossReason::Truncated => unknown.truncated += 1,
                UnknownLossReason::ClockUnknown => unknown.clock_unknown += 1,
            }
        }
        let kinds = missing_by_kind.into_iter();
        unknown.kinds.extend(
            kinds.map(|((point, direction, kind), (packets, host_pairs))| Kind {
                point: passages.names[point].clone(),
                protocol: PROTOCOLS[kind],
                direction,
                packets,
                has_others: passages.followed.passages().any(|passage| {
                    passage.direction == Some(direction)
                        && protocol_index(passage.flow.protocol) == kind
                        && passage.passed_at(point).is_some()
                        && !host_pairs.contains(&hosts(&passage))
                }),
            }),
        );
        unknown
    }

    /// The numbers as a document.
    pub(super) fn document(&self) -> LossUnknownDocument {
        let kinds = self.kinds.iter().map(|kind| KindDocument {
            point: kind.point.clone(),
            protocol: kind.protocol,
            direction: kind.direction.name(),
            packets: kind.packets,
            others_passed: kind.has_others,
        });
        LossUnknownDocument {
            never_passed: self.never_passed,
            never_passed_kinds: kinds.collect(),
            address_translated: self.address_translated,
            not_captured: self.before_capture + self.after_capture + self.truncated,
            not_captured_at_end: self.after_capture,
            clock_offset_unknown: self.clock_unknown,
        }
    }

    /// The numbers with their reasons.
    pub(super) fn sentences(&self) -> Vec<(u64, String)> {
        let packets_of_kinds: u64 = self.kinds.iter().map(|kind| kind.packets).sum();
        let mut reasons = vec![(
            self.never_passed - packets_of_kinds,
            "not seen at the next point, of hosts that it does not show at all".to_owned(),
        )];
        reasons.extend(self.kinds.iter().map(|kind| {
            let Kind {
                point,
                protocol,
                direction,
                has_others,
                ..
            } = kind;
            let direction = direction.name();
            let cause = if *has_others {
                "although packets of other hosts did: all may have been lost before it"
            } else {
                "so the capture may be filtered, or all were lost before it"
            };
            let reason = format!(
                "of {protocol} {direction} not seen at the next point; none of their hosts' passed {point}, {cause}"
            );
            (kind.packets, reason)
        }));
        reasons.extend([
            (
                self.address_translated,
                "not seen at the next point, which shows their flows under other addresses or ports"
                    .to_owned(),
            ),
            (
                self.before_capture,
                "not seen at the next point, before its capture began".to_owned(),
            ),
            (
                self.after_capture,
                "not seen at the next point, at the end of its capture: either it had ended, or all of them were lost"
                    .to_owned(),
            ),
            (
                self.truncated,
                "not seen at the next point, and truncated in every capture".to_owned(),
            ),
            (
                self.clock_unknown,
                "not seen at the next point, while the clock offset was unknown".to_owned(),
            ),
        ]);
        reasons
    }
}

/// The packets whose direction is unknown, and why.
#[derive(Debug, Default)]
pub(super) struct UnknownDirection {
    /// Only one direction of their hosts passed two points with two clocks.
    one_direction: u64,
    /// Both directions did, and their timestamps differ by the clock offset only.
    offset_only: u64,
    /// Both directions did, and equally many packets show each direction.
    tied: u64,
    /// No packet of their hosts passed two consecutive points.
    single_point: u64,
    /// They took no time between points with one clock.
    zero_delay: u64,
}

impl UnknownDirection {
    pub(super) fn of(passages: &Passages) -> Self {
        let undirected_passages = || {
            let all_passages = passages.followed.passages();
            all_passages.filter(|passage| passage.direction.is_none())
        };
        let sorted_hosts = |passage: &Passage| {
            let (source, destination) = hosts(passage);
            (source.min(destination), source.max(destination))
        };
        // Whether a segment that they passed has two clocks.
        let mut has_two_clocks: HashMap<Hosts, bool> = HashMap::new();
        for passage in undirected_passages() {
            for (segment, clocks) in passages.clocks.iter().enumerate() {
                if passage.passed_at(segment).is_some() && passage.passed_at(segment + 1).is_some()
                {
                    *has_two_clocks.entry(sorted_hosts(&passage)).or_default() |=
                        !matches!(clocks, Offsets::Same);
                }
            }
        }
        let mut counts = Self::default();
        for passage in undirected_passages() {
            *match has_two_clocks.get(&sorted_hosts(&passage)) {
                Some(true) if passages.followed.has_no_delay(&passage) => &mut counts.offset_only,
                Some(true) if passages.followed.is_compared(&passage) => &mut counts.tied,
                Some(true) => &mut counts.one_direction,
                Some(false) => &mut counts.zero_delay,
                None => &mut counts.single_point,
            } += 1;
        }
        counts
    }

    /// Number of these packets.
    pub(super) const fn packet_count(&self) -> u64 {
        self.one_direction + self.offset_only + self.tied + self.single_point + self.zero_delay
    }

    /// The numbers with their reasons and remedies.
    pub(super) fn sentences(&self) -> Vec<(u64, String)> {
        [
            (
                self.one_direction,
                "excluded: at two points only one direction of their hosts was seen. Capture both directions; if one kernel captured both points, use NAME@HOST=FILE or --clock same",
            ),
            (
                self.offset_only,
                "excluded: their hosts' packets show only the clock offset between two points, so the direction is unknown",
            ),
            (
                self.tied,
                "excluded: their hosts' packets do not agree on the direction, because the clock offset varies more than the path delay",
            ),
            (
                self.single_point,
                "excluded: no packet of their hosts passed two consecutive points, so the direction is unknown",
            ),
            (
                self.zero_delay,
                "excluded: their hosts' packets took no time between points with one clock, so the direction is unknown",
            ),
        ]
        .map(|(count, reason)| (count, reason.to_owned()))
        .into()
    }
}
