//! Packets that were not seen again, where it cannot be told whether they were lost: how many, and why.
//!
//! Owns the counts and their words. Does not own the reason of one packet (passages).

use std::collections::HashSet;
use std::hash::RandomState;
use std::net::IpAddr;

use neph_capture::Way;
use serde_json::{Value, json};

use super::passages::{Doubt, End, PROTOCOLS, Passages, protocol};
use super::telling::way_word;

/// Who sent to whom.
type Hosts = HashSet<(IpAddr, IpAddr), RandomState>;

/// By the reason.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    never_passed: u64,
    not_captured: u64,
    clocks: u64,
    /// Of what the next point never showed any of its kind.
    kinds: Vec<Kind>,
}

/// What a point never showed.
#[derive(Debug)]
struct Kind {
    point: String,
    /// One of [`PROTOCOLS`].
    protocol: &'static str,
    way: Way,
    packets: u64,
    /// Whether it showed some of other hosts: it left out no kind as a whole.
    has_others: bool,
}

impl Unknown {
    pub(super) fn of(passages: &Passages) -> Self {
        let mut all = Self::default();
        let ways = [Way::There, Way::Back];
        let mut kinds = vec![[[0_u64; PROTOCOLS.len()]; 2]; passages.names.len()];
        // Between which hosts each point shows a kind, and of which of them some did not come.
        let mut shown: Vec<[[Hosts; PROTOCOLS.len()]; 2]> = Vec::new();
        shown.resize_with(passages.names.len(), Default::default);
        let mut unseen: Vec<[[Hosts; PROTOCOLS.len()]; 2]> = Vec::new();
        unseen.resize_with(passages.names.len(), Default::default);
        for row in passages.rows() {
            let kind = protocol(row.passage.flow.protocol);
            let flow = &row.passage.flow;
            let hosts = (flow.source.ip(), flow.destination.ip());
            for (point, shown) in shown.iter_mut().enumerate() {
                if row.passage.mark(point).is_some() {
                    shown[row.way as usize][kind].insert(hosts);
                }
            }
            let End::Unknown(doubt) = row.end else {
                continue;
            };
            match doubt {
                Doubt::NeverPassed => all.never_passed += 1,
                Doubt::NotOfKind(point) => {
                    all.never_passed += 1;
                    kinds[point][row.way as usize][kind] += 1;
                    unseen[point][row.way as usize][kind].insert(hosts);
                }
                Doubt::NotCaptured => all.not_captured += 1,
                Doubt::Clocks => all.clocks += 1,
            }
        }
        for (at, (point, of)) in passages.names.iter().zip(kinds).enumerate() {
            for way in ways {
                let counts = PROTOCOLS.iter().zip(of[way as usize]).enumerate();
                let counts = counts.filter(|(_, (_, packets))| *packets > 0);
                all.kinds
                    .extend(counts.map(|(kind, (protocol, packets))| {
                        Kind {
                            point: point.clone(),
                            protocol,
                            way,
                            packets,
                            has_others: !shown[at][way as usize][kind]
                                .is_subset(&unseen[at][way as usize][kind]),
                        }
                    }));
            }
        }
        all
    }

    pub(super) fn json(&self) -> Value {
        let kinds = self.kinds.iter().map(|kind| {
            json!({
                "point": kind.point,
                "protocol": kind.protocol,
                "way": way_word(kind.way),
                "packets": kind.packets,
                "others_passed": kind.has_others,
            })
        });
        json!({
            "never_passed": self.never_passed,
            "never_passed_kinds": kinds.collect::<Vec<_>>(),
            "not_captured": self.not_captured,
            "clocks": self.clocks,
        })
    }

    /// How many, and why.
    pub(super) fn words(&self) -> Vec<(u64, String)> {
        let of_kinds: u64 = self.kinds.iter().map(|kind| kind.packets).sum();
        let mut words = vec![(
            self.never_passed - of_kinds,
            "not seen again, of hosts of which no packet passed the next point".to_owned(),
        )];
        words.extend(self.kinds.iter().map(|kind| {
            let Kind {
                point,
                protocol,
                way,
                has_others,
                ..
            } = kind;
            let way = way_word(*way);
            let cause = if *has_others {
                "though others' did: all of them may have been lost before it"
            } else {
                "whose capture may have been filtered, or all of them lost before it"
            };
            let why = format!(
                "of {protocol} {way} not seen again, and none of their hosts' ever passed {point}, {cause}"
            );
            (kind.packets, why)
        }));
        words.extend([
            (
                self.not_captured,
                "not seen again, when the next point's capture had not begun or was over"
                    .to_owned(),
            ),
            (
                self.clocks,
                "not seen again, while the clocks were not known".to_owned(),
            ),
        ]);
        words
    }
}
