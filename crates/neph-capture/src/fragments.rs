//! Reassembly of IP fragments: which fragments belong to one packet, and the identity of the whole packet.
//!
//! Owns joining them by the first fragment and the length that the last one gives, in any order. Does not own
//! the whole packet's passage: it passed a point when its last byte did.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use foldhash::quality::RandomState;
use neph_wire::dissect::Dissected;
use neph_wire::ip::{IpPacket, MoreFragments};

use crate::identity::{COUNTED_PAYLOAD_BYTES, Identity};

/// Identifies the packet of a fragment: capture point, hosts, protocol and number.
type Key = (usize, Identity);

/// Nanoseconds after which missing fragments no longer come (RFC 8200, 4.5: 60 s).
const REASSEMBLY_TIMEOUT_NANOS: i64 = 60_000_000_000;
/// Incomplete packets, at most. Beyond that, those that waited too long are forgotten.
const MAX_INCOMPLETE: usize = 4_096;

/// Kept bytes of a packet's beginning: a whole TCP header and the part of the payload that counts.
const HEAD_BYTES: usize = 60 + COUNTED_PAYLOAD_BYTES;

/// The fragments of a packet at one point so far.
#[derive(Debug)]
struct IncompletePacket {
    first_at: i64,
    /// By first byte: the end and the piece's number.
    pieces: BTreeMap<u32, (u32, u32)>,
    /// Bytes of all pieces.
    carried_bytes: u64,
    /// Length of the packet, known from the last fragment.
    length: Option<u32>,
    first: Option<FirstFragment>,
}

/// The first fragment.
#[derive(Debug)]
struct FirstFragment {
    identity: Identity,
    header_len: usize,
    is_v4: bool,
    head: Vec<u8>,
}

/// A fragment, and its bytes of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    pub(crate) begin: u32,
    pub(crate) end: u32,
    pub(crate) number: u32,
}

/// Incomplete packets.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    incomplete: HashMap<Key, IncompletePacket, RandomState>,
}

/// A complete packet.
#[derive(Debug)]
pub(crate) struct CompletePacket {
    /// Its identity at points where it is not fragmented.
    pub(crate) identity: Identity,
    pub(crate) pieces: Vec<Piece>,
}

/// A packet at a point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FragmentPassage {
    pub(crate) point: usize,
    pub(crate) at: i64,
    pub(crate) number: u32,
    /// Its identity with the names that are valid at all points.
    pub(crate) identity: Identity,
}

/// Whether a packet is a fragment.
pub(crate) fn is_fragment(packet: &Dissected<'_>) -> bool {
    let ip = &packet.ip;
    ip.fragment_offset > 0 || ip.more_fragments == MoreFragments::Yes
}

impl Fragments {
    /// Adds a fragment. Returns the whole packet if this was the last missing one.
    pub(crate) fn add_fragment(
        &mut self,
        passing: FragmentPassage,
        packet: &Dissected<'_>,
    ) -> Option<CompletePacket> {
        let ip = &packet.ip;
        self.make_room(passing.at);
        let key = (passing.point, passing.identity.fragment_key());
        let packet_state = self
            .incomplete
            .entry(key)
            .or_insert_with(|| IncompletePacket::new(passing.at));
        if passing.at.saturating_sub(packet_state.first_at) > REASSEMBLY_TIMEOUT_NANOS {
            *packet_state = IncompletePacket::new(passing.at);
        }
        let begin = u32::from(ip.fragment_offset);
        let carried_bytes = ip.total_len.saturating_sub(ip.header_len);
        let end = begin.saturating_add(u32::try_from(carried_bytes).unwrap_or(u32::MAX));
        if let Entry::Vacant(vacant) = packet_state.pieces.entry(begin) {
            vacant.insert((end, passing.number));
            packet_state.carried_bytes += u64::from(end - begin);
        }
        if ip.more_fragments == MoreFragments::No {
            packet_state.length = Some(end);
        }
        if begin == 0 {
            packet_state.first = Some(FirstFragment {
                identity: passing.identity,
                header_len: ip.header_len,
                is_v4: ip.source.is_ipv4(),
                head: ip.payload[..ip.payload.len().min(HEAD_BYTES)].to_vec(),
            });
        }
        if !packet_state.is_complete() {
            return None;
        }
        let packet_state = self.incomplete.remove(&key)?;
        let identity = packet_state.packet_identity(packet)?;
        let pieces = packet_state.pieces.into_iter();
        let pieces = pieces.map(|(begin, (end, number))| Piece { begin, end, number });
        Some(CompletePacket {
            identity,
            pieces: pieces.collect(),
        })
    }

    /// If there are many, forgets packets that have been incomplete for too long.
    fn make_room(&mut self, now: i64) {
        if self.incomplete.len() < MAX_INCOMPLETE {
            return;
        }
        self.incomplete
            .retain(|_, packet| now.saturating_sub(packet.first_at) <= REASSEMBLY_TIMEOUT_NANOS);
        if self.incomplete.len() >= MAX_INCOMPLETE {
            self.incomplete.clear();
        }
    }
}

impl IncompletePacket {
    const fn new(first_at: i64) -> Self {
        Self {
            first_at,
            pieces: BTreeMap::new(),
            carried_bytes: 0,
            length: None,
            first: None,
        }
    }

    fn is_complete(&self) -> bool {
        // Visiting all pieces at each fragment would take quadratic time.
        if self.first.is_none()
            || self
                .length
                .is_none_or(|length| self.carried_bytes < length.into())
        {
            return false;
        }
        let mut end_of_bytes = 0;
        for (begin, (end, _)) in &self.pieces {
            if *begin > end_of_bytes {
                return false;
            }
            end_of_bytes = end_of_bytes.max(*end);
        }
        self.length == Some(end_of_bytes)
    }

    /// Its identity at points where it is not fragmented.
    fn packet_identity(&self, fragment: &Dissected<'_>) -> Option<Identity> {
        let first = self.first.as_ref()?;
        let length = usize::try_from(self.length?).ok()?;
        let packet_identity = Identity::from_packet(&Dissected::of_ip(IpPacket {
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
            ..packet_identity
        })
    }
}
