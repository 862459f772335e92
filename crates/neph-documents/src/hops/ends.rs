//! Packets with an unknown property, their number and the reason: whether missing ones were lost, and
//! the direction of others.
//!
//! Owns the counts and their words. Does not own the reason of one packet (passages).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use neph_capture::{Direction, Passage};
use schemars::JsonSchema;
use serde::Serialize;

use neph_capture::path::offsets::Offsets;
use neph_capture::path::passages::{Doubt, End, PROTOCOLS, Passages, protocol};

/// Sender and receiver.
type Hosts = (IpAddr, IpAddr);

fn hosts(passage: &Passage) -> Hosts {
    (passage.flow.source.ip(), passage.flow.destination.ip())
}

/// By the reason.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    never_passed: u64,
    renamed: u64,
    not_begun: u64,
    over: u64,
    torn: u64,
    clocks: u64,
    /// Of what the next point never showed any of its kind.
    kinds: Vec<Kind>,
}

/// Packets of which it is not known whether they were lost, by reason.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EndUnknownDocument {
    /// Of hosts or kinds of which no packet passed the next point.
    pub never_passed: u64,
    /// Of these, by kind.
    pub never_passed_kinds: Vec<KindDocument>,
    /// Of flows that the next point shows under other addresses or ports.
    pub renamed: u64,
    /// The next point did not capture at that time, or not all of the packet.
    pub not_captured: u64,
    /// Of these, at the end of the next point's capture.
    pub not_captured_at_end: u64,
    /// The clocks were not known.
    pub clocks: u64,
}

/// A kind of packets that never passed a point.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KindDocument {
    /// The point.
    pub point: String,
    /// The protocol.
    pub protocol: &'static str,
    /// `there` or `back`.
    pub direction: &'static str,
    /// How many.
    pub packets: u64,
    /// Whether packets of the same kind, of other hosts, passed.
    pub others_passed: bool,
}

/// What a point never showed.
#[derive(Debug)]
struct Kind {
    point: String,
    /// One of [`PROTOCOLS`].
    protocol: &'static str,
    direction: Direction,
    packets: u64,
    /// Whether it showed some of other hosts: it left out no kind as a whole.
    has_others: bool,
}

impl Unknown {
    pub(super) fn of(passages: &Passages) -> Self {
        let mut all = Self::default();
        // By point, way and protocol: packets that it should have shown, and between which hosts.
        let mut unseen: BTreeMap<(usize, Direction, usize), (u64, HashSet<Hosts>)> =
            BTreeMap::new();
        for row in passages.rows() {
            let End::Unknown(doubt) = row.end else {
                continue;
            };
            match doubt {
                Doubt::NeverPassed => all.never_passed += 1,
                Doubt::Renamed => all.renamed += 1,
                Doubt::NotOfKind(point) => {
                    all.never_passed += 1;
                    let of = (point, row.direction, protocol(row.passage.flow.protocol));
                    let (packets, between) = unseen.entry(of).or_default();
                    *packets += 1;
                    between.insert(hosts(&row.passage));
                }
                Doubt::NotBegun => all.not_begun += 1,
                Doubt::Over => all.over += 1,
                Doubt::Torn => all.torn += 1,
                Doubt::Clocks => all.clocks += 1,
            }
        }
        let kinds = unseen.into_iter();
        all.kinds.extend(
            kinds.map(|((point, direction, kind), (packets, between))| Kind {
                point: passages.names[point].clone(),
                protocol: PROTOCOLS[kind],
                direction,
                packets,
                has_others: passages.followed.passages().any(|passage| {
                    passage.direction == Some(direction)
                        && protocol(passage.flow.protocol) == kind
                        && passage.mark(point).is_some()
                        && !between.contains(&hosts(&passage))
                }),
            }),
        );
        all
    }

    /// The same for programs.
    pub(super) fn document(&self) -> EndUnknownDocument {
        let kinds = self.kinds.iter().map(|kind| KindDocument {
            point: kind.point.clone(),
            protocol: kind.protocol,
            direction: kind.direction.name(),
            packets: kind.packets,
            others_passed: kind.has_others,
        });
        EndUnknownDocument {
            never_passed: self.never_passed,
            never_passed_kinds: kinds.collect(),
            renamed: self.renamed,
            not_captured: self.not_begun + self.over + self.torn,
            not_captured_at_end: self.over,
            clocks: self.clocks,
        }
    }

    /// How many, and why.
    pub(super) fn words(&self) -> Vec<(u64, String)> {
        let of_kinds: u64 = self.kinds.iter().map(|kind| kind.packets).sum();
        let mut words = vec![(
            self.never_passed - of_kinds,
            "not seen at the next point, of hosts that it does not show at all".to_owned(),
        )];
        words.extend(self.kinds.iter().map(|kind| {
            let Kind {
                point,
                protocol,
                direction,
                has_others,
                ..
            } = kind;
            let direction = direction.name();
            let cause = if *has_others {
                "though those of other hosts did: all of them may have been lost before it"
            } else {
                "whose capture may have been filtered, or all of them lost before it"
            };
            let why = format!(
                "of {protocol} {direction} not seen at the next point; none of their hosts' passed {point}, {cause}"
            );
            (kind.packets, why)
        }));
        words.extend([
            (
                self.renamed,
                "not seen at the next point, which shows their flows under other addresses or ports"
                    .to_owned(),
            ),
            (
                self.not_begun,
                "not seen at the next point, before its capture began".to_owned(),
            ),
            (
                self.over,
                "not seen at the next point, at the end of its capture: either it had ended, or all of them were lost"
                    .to_owned(),
            ),
            (
                self.torn,
                "not seen at the next point, and truncated in every capture".to_owned(),
            ),
            (
                self.clocks,
                "not seen at the next point, while the clock offset was unknown".to_owned(),
            ),
        ]);
        words
    }
}

/// Packets whose way is not known, and why.
#[derive(Debug, Default)]
pub(super) struct UnknownDirection {
    /// Of hosts of which one direction alone passed two points with two clocks.
    one_direction: u64,
    /// Of hosts of which both did, with nothing between but the clocks' difference.
    either: u64,
    /// Of hosts of which both did, and as many packets say the one way as the other.
    even: u64,
    /// Of hosts of which none passed two points, one behind the other.
    alone: u64,
    /// By one clock they took no time.
    timeless: u64,
}

impl UnknownDirection {
    pub(super) fn of(passages: &Passages) -> Self {
        let without = || {
            let all = passages.followed.passages();
            all.filter(|passage| passage.direction.is_none())
        };
        let between = |passage: &Passage| {
            let (source, destination) = hosts(passage);
            (source.min(destination), source.max(destination))
        };
        // Whether a segment that they passed has two clocks.
        let mut passed: HashMap<Hosts, bool> = HashMap::new();
        for passage in without() {
            for (segment, clocks) in passages.clocks.iter().enumerate() {
                if passage.mark(segment).is_some() && passage.mark(segment + 1).is_some() {
                    *passed.entry(between(&passage)).or_default() |=
                        !matches!(clocks, Offsets::Same);
                }
            }
        }
        let mut all = Self::default();
        for passage in without() {
            *match passed.get(&between(&passage)) {
                Some(true) if passages.followed.is_still(&passage) => &mut all.either,
                Some(true) if passages.followed.is_compared(&passage) => &mut all.even,
                Some(true) => &mut all.one_direction,
                Some(false) => &mut all.timeless,
                None => &mut all.alone,
            } += 1;
        }
        all
    }

    /// How many there are.
    pub(super) const fn many(&self) -> u64 {
        self.one_direction + self.either + self.even + self.alone + self.timeless
    }

    /// How many, why, and the remedy.
    pub(super) fn words(&self) -> Vec<(u64, String)> {
        [
            (
                self.one_direction,
                "excluded, of hosts with one direction only at two points, so the direction is unknown; capture both directions, or use NAME@HOST=FILE or --clock same if one kernel stamped both points",
            ),
            (
                self.either,
                "excluded, of hosts whose packets show only the clock offset between two points, so the direction is unknown",
            ),
            (
                self.even,
                "excluded, of hosts whose packets do not agree on the direction: the clock offset varies more than the path takes",
            ),
            (
                self.alone,
                "excluded, of hosts of which no packet passed two consecutive points: the direction is unknown",
            ),
            (
                self.timeless,
                "excluded, of hosts whose packets took no time between points of one clock: the direction is unknown",
            ),
        ]
        .map(|(count, why)| (count, why.to_owned()))
        .into()
    }
}
