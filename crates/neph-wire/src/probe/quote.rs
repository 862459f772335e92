//! Reading ICMP errors: which probe they quote, and the MPLS labels that routers add (RFC 792,
//! 4443, 4884, 4950).
//!
//! Owns the whole message behind its IP header. A quote of eight bytes of the transport header is
//! enough; extensions that cannot be read are as if they were not there.

use std::net::IpAddr;

use crate::bytes::Reader;
use crate::checksum::internet_checksum;
use crate::icmp::{Family, IcmpError};
use crate::ip::{self, FiveTuple};

/// Where routers that do not tell the quote's length put the extensions (RFC 4884 section 5.5).
const LEGACY_AT: usize = 128;
/// More labels than any network stacks; further ones are not read.
const LABELS_MAX: usize = 16;

/// What an error says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuoteKind {
    /// The TTL ran out on the way.
    TimeExceeded,
    /// The port is closed: the destination itself says so.
    PortUnreachable,
    /// There is no way on; the ICMP code says why.
    Unreachable(u8),
}

/// What tells our probes apart, as far as eight bytes of the transport header do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// The datagram's checksum.
    Udp {
        /// The checksum.
        checksum: u16,
    },
    /// The segment's sequence number.
    Tcp {
        /// The number.
        seq: u32,
    },
    /// An echo request's number.
    Echo {
        /// Its identifier.
        ident: u16,
        /// Its sequence number.
        seq: u16,
    },
}

/// An MPLS label that the packet carried as it reached the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// The label, 20 bits.
    pub label: u32,
    /// The traffic class, 3 bits.
    pub traffic_class: u8,
    /// The label's own TTL.
    pub ttl: u8,
}

/// An ICMP error and the packet that it quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// What it says.
    pub kind: QuoteKind,
    /// The flow of the quoted packet; ports are 0 for echo requests.
    pub flow: FiveTuple,
    /// Which packet of the flow it was.
    pub tag: Tag,
    /// The labels, outermost first.
    pub labels: Vec<Label>,
}

/// Reads an error message without its IP header. `Ok(None)`: another kind of message, or one that
/// quotes nothing that could be a probe.
///
/// # Errors
/// The message is too short, its checksum is wrong (ICMP only), or what it quotes is no packet.
pub fn parse_error(family: Family, message: &[u8]) -> Result<Option<Quote>, IcmpError> {
    let short = IcmpError::Short(message.len());
    let mut reader = Reader::new(message);
    let mut start = || {
        Some((
            reader.u8()?,
            reader.u8()?,
            reader.u16()?,
            reader.array::<4>()?,
        ))
    };
    let (kind, code, _sum, word) = start().ok_or(short)?;
    if family == Family::V4 && internet_checksum(&[message]) != 0 {
        return Err(IcmpError::Checksum);
    }
    let Some(kind) = kind_of(family, kind, code) else {
        return Ok(None);
    };
    let rest = reader.rest();
    // The length is told in words of 32 bits (ICMP) or 64 (ICMPv6); 0: not told.
    let printed = match family {
        Family::V4 => usize::from(word[1]) * 4,
        Family::V6 => usize::from(word[0]) * 8,
    };
    let (quoted, extensions) = match printed {
        0 => (rest, rest.get(LEGACY_AT..).unwrap_or_default()),
        printed => rest.split_at_checked(printed).unwrap_or((rest, &[])),
    };
    let packet = ip::parse_ip(quoted)?;
    if packet.fragment_offset != 0 {
        return Ok(None);
    }
    let tag = tag_of(packet.protocol, packet.payload);
    Ok(tag.map(|tag| Quote {
        kind,
        flow: FiveTuple::of(&packet),
        tag,
        labels: labels(extensions).unwrap_or_default(),
    }))
}

fn kind_of(family: Family, kind: u8, code: u8) -> Option<QuoteKind> {
    match (family, kind, code) {
        // Code 1 is "reassembly took too long".
        (Family::V4, 11, 0) | (Family::V6, 3, 0) => Some(QuoteKind::TimeExceeded),
        (Family::V4, 3, 3) | (Family::V6, 1, 4) => Some(QuoteKind::PortUnreachable),
        // Code 4 asks for smaller packets; ours are as small as can be.
        (Family::V4, 3, 4) => None,
        (Family::V4, 3, code) | (Family::V6, 1, code) => Some(QuoteKind::Unreachable(code)),
        _ => None,
    }
}

fn tag_of(protocol: u8, header: &[u8]) -> Option<Tag> {
    let mut reader = Reader::new(header);
    match protocol {
        ip::UDP => {
            reader.skip(6)?;
            let checksum = reader.u16()?;
            Some(Tag::Udp { checksum })
        }
        ip::TCP => {
            reader.skip(4)?;
            let seq = reader.u32()?;
            Some(Tag::Tcp { seq })
        }
        ip::ICMP | ip::ICMPV6 => {
            let [kind, ..] = reader.array::<4>()?;
            let (ident, seq) = (reader.u16()?, reader.u16()?);
            let asks = (protocol, kind) == (ip::ICMP, 8) || (protocol, kind) == (ip::ICMPV6, 128);
            asks.then_some(Tag::Echo { ident, seq })
        }
        _ => None,
    }
}

/// The labels of an extension structure; `None` where it is not one.
fn labels(bytes: &[u8]) -> Option<Vec<Label>> {
    let mut reader = Reader::new(bytes);
    let [version, _, high, low] = reader.array()?;
    let sum = u16::from_be_bytes([high, low]);
    // A checksum of 0 says that there is none (RFC 4884 section 7).
    if version >> 4 != 2 || (sum != 0 && internet_checksum(&[bytes]) != 0) {
        return None;
    }
    let mut labels = Vec::new();
    while let Some([high, low, class, kind]) = reader.array() {
        let len = usize::from(u16::from_be_bytes([high, low])).checked_sub(4)?;
        let object = reader.slice(len)?;
        if (class, kind) == (1, 1) {
            let (entries, _) = object.as_chunks::<4>();
            labels.extend(entries.iter().map(|entry| label(*entry)));
        }
    }
    labels.truncate(LABELS_MAX);
    Some(labels)
}

/// 20 bits label, 3 traffic class, 1 bottom of the stack, 8 TTL (RFC 3032).
fn label(entry: [u8; 4]) -> Label {
    let word = u32::from_be_bytes(entry);
    let [_, _, third, ttl] = entry;
    Label {
        label: word >> 12,
        traffic_class: third >> 1 & 7,
        ttl,
    }
}

impl Quote {
    /// Whether the quoted packet went from `source` to `destination`.
    pub fn is_between(&self, source: IpAddr, destination: IpAddr) -> bool {
        self.flow.source == source && self.flow.destination == destination
    }
}
