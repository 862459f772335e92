//! Packets that IP fragmented on the way: whole at one point, in fragments at another.
//!
//! Owns which fragments are of one packet, and as what it is known whole: by its first fragment and the
//! length that the last one tells. The whole is followed, and passed a point when its last byte did. A
//! packet in the same fragments everywhere stays these. Fragments may come in any order.

use std::collections::{BTreeMap, HashMap};

use foldhash::quality::RandomState;
use neph_wire::dissect::Dissected;
use neph_wire::ip::{IpPacket, MoreFragments};

use super::joined::{Spreads, Wholes};
use super::packet::{Packets, Standing};
use crate::identity::{COUNTED, Identity};

/// Whose fragments these are: hosts, protocol and number, at one point.
type Key = (usize, Identity);

/// Nobody waits longer for the fragments that are missing (RFC 8200, 4.5: 60 s).
const PATIENCE: i64 = 60_000_000_000;
/// Packets of which fragments are missing, at most; of more those that waited too long are forgotten.
const OPEN: usize = 4_096;

/// Bytes of a packet's beginning that are kept: a whole TCP header, and what counts behind.
const HEAD: usize = 60 + COUNTED;

/// Fragments of a packet at one point, so far.
#[derive(Debug)]
struct Open {
    since: i64,
    /// By the byte at which they begin: where they end, and which they are.
    pieces: BTreeMap<u32, (u32, u32)>,
    /// How long it is, once the last has come.
    length: Option<u32>,
    first: Option<First>,
}

/// The first fragment.
#[derive(Debug)]
struct First {
    identity: Identity,
    header_len: usize,
    is_v4: bool,
    head: Vec<u8>,
}

/// A fragment, and the bytes of the packet that it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    begin: u32,
    end: u32,
    number: u32,
}

/// Packets in fragments, as they are read.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    open: HashMap<Key, Open, RandomState>,
    /// By what the whole is known by: its fragments at all points.
    whole: BTreeMap<u64, Vec<Piece>>,
}

/// Which packet of a point this is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passing {
    pub(super) point: usize,
    pub(super) at: i64,
    pub(super) number: u32,
    /// By the names that hold everywhere.
    pub(super) identity: Identity,
}

/// Whether a packet is a fragment.
pub(super) fn is_fragment(packet: &Dissected<'_>) -> bool {
    let ip = &packet.ip;
    ip.fragment_offset > 0 || ip.more_fragments == MoreFragments::Yes
}

impl Fragments {
    /// A fragment. `hash` gives what a whole packet is known by.
    pub(super) fn see(
        &mut self,
        passing: Passing,
        packet: &Dissected<'_>,
        hash: impl Fn(Identity) -> u64,
    ) {
        let ip = &packet.ip;
        self.make_room(passing.at);
        let key = (passing.point, passing.identity.of_fragments());
        let open = self
            .open
            .entry(key)
            .or_insert_with(|| Open::new(passing.at));
        if passing.at.saturating_sub(open.since) > PATIENCE {
            *open = Open::new(passing.at);
        }
        let begin = u32::from(ip.fragment_offset);
        let carried = ip.total_len.saturating_sub(ip.header_len);
        let end = begin.saturating_add(u32::try_from(carried).unwrap_or(u32::MAX));
        open.pieces.entry(begin).or_insert((end, passing.number));
        if ip.more_fragments == MoreFragments::No {
            open.length = Some(end);
        }
        if begin == 0 {
            open.first = Some(First {
                identity: passing.identity,
                header_len: ip.header_len,
                is_v4: ip.source.is_ipv4(),
                head: ip.payload[..ip.payload.len().min(HEAD)].to_vec(),
            });
        }
        if open.is_complete()
            && let Some(open) = self.open.remove(&key)
            && let Some(whole) = open.whole(packet)
        {
            let pieces = open.pieces.into_iter();
            let pieces = pieces.map(|(begin, (end, number))| Piece { begin, end, number });
            self.whole.entry(hash(whole)).or_default().extend(pieces);
        }
    }

    /// Those of which fragments are missing for too long are forgotten, where there are many.
    fn make_room(&mut self, now: i64) {
        if self.open.len() < OPEN {
            return;
        }
        self.open
            .retain(|_, open| now.saturating_sub(open.since) <= PATIENCE);
        if self.open.len() >= OPEN {
            self.open.clear();
        }
    }

    /// The fragments of each packet that is whole somewhere, or in other fragments, in the order of their
    /// bytes, the whole first. `whole` finds it, and its length.
    pub(super) fn groups(self, whole: impl Fn(u64) -> Option<u32>) -> Vec<Vec<Piece>> {
        let mut groups = Vec::new();
        for (known, mut pieces) in self.whole {
            let end = pieces.iter().map(|piece| piece.end).max().unwrap_or(0);
            pieces.extend(whole(known).map(|number| Piece {
                begin: 0,
                end,
                number,
            }));
            pieces.sort_unstable_by_key(|piece| {
                (piece.begin, std::cmp::Reverse(piece.end), piece.number)
            });
            pieces.dedup_by_key(|piece| piece.number);
            // As many bytes in all as it has: everywhere the same.
            let all: u64 = pieces
                .iter()
                .map(|piece| u64::from(piece.end - piece.begin))
                .sum();
            if all > u64::from(end) {
                groups.push(pieces);
            }
        }
        groups
    }
}

impl Open {
    const fn new(since: i64) -> Self {
        Self {
            since,
            pieces: BTreeMap::new(),
            length: None,
            first: None,
        }
    }

    fn is_complete(&self) -> bool {
        let mut until = 0;
        for (begin, (end, _)) in &self.pieces {
            if *begin > until {
                return false;
            }
            until = until.max(*end);
        }
        self.first.is_some() && self.length == Some(until)
    }

    /// As what it is known where it is whole.
    fn whole(&self, fragment: &Dissected<'_>) -> Option<Identity> {
        let first = self.first.as_ref()?;
        let length = usize::try_from(self.length?).ok()?;
        let whole = Identity::of(&Dissected::of_ip(IpPacket {
            protocol: first.identity.protocol,
            total_len: first.header_len.saturating_add(length),
            header_len: first.header_len,
            identification: fragment.ip.identification.filter(|_| first.is_v4),
            fragment_offset: 0,
            more_fragments: MoreFragments::No,
            payload: &first.head,
            ..fragment.ip
        }))?;
        Some(Identity {
            source: first.identity.source,
            destination: first.identity.destination,
            ..whole
        })
    }
}

/// Puts fragments together: the first of each group is the packet from then on. Gives how long each took to
/// pass each point, and the packet of each fragment.
pub(super) fn join(
    packets: &mut Packets,
    groups: &[Vec<Piece>],
    points: usize,
) -> (Spreads, Wholes) {
    let (mut spreads, mut wholes) = (Spreads::default(), Wholes::default());
    for group in groups {
        let is_followed = |piece: &Piece| packets.get(piece.number).standing == Standing::Followed;
        if !group.iter().all(is_followed) {
            continue;
        }
        let whole = group[0].number;
        let passed: Vec<Option<(i64, i64)>> = (0..points)
            .map(|point| passed(packets, group, point))
            .collect();
        for (point, times) in passed.iter().enumerate() {
            packets.set(whole, point, times.map(|(_, to)| to));
        }
        for piece in &group[1..] {
            packets.of[piece.number as usize].standing = Standing::Part;
        }
        let spread = passed
            .iter()
            .map(|times| times.map(|(from, to)| to.saturating_sub(from)));
        spreads.insert(whole, spread.collect());
        wholes.extend(group.iter().map(|piece| (piece.number, whole)));
    }
    (spreads, wholes)
}

/// When the first and the last of a packet passed a point; `None` where not all of it did.
fn passed(packets: &Packets, group: &[Piece], point: usize) -> Option<(i64, i64)> {
    let length = group.iter().map(|piece| piece.end).max()?;
    let (mut until, mut times) = (0, None::<(i64, i64)>);
    for piece in group {
        let Some(at) = packets.mark(piece.number, point) else {
            continue;
        };
        if piece.begin > until {
            return None;
        }
        // What carries no more than those before it says nothing of when all had passed.
        if piece.end > until {
            let (from, to) = times.unwrap_or((at, at));
            times = Some((from.min(at), to.max(at)));
            until = piece.end;
        }
    }
    times.filter(|_| until == length)
}
