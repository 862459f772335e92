//! Reads ICMP errors: the probe that they quote, and the MPLS labels that routers add (RFC 792,
//! 4443, 4884, 4950).
//!
//! Owns the message after its IP header. Eight quoted bytes of the transport header are enough.
//! Extensions that cannot be read are ignored.

use std::net::IpAddr;

use crate::bytes::Reader;
use crate::checksum::internet_checksum;
use crate::icmp::{Family, IcmpError};
use crate::ip::{self, FiveTuple};

/// The offset of extensions if a router does not set the quote's length (RFC 4884 section 5.5).
const LEGACY_AT: usize = 128;
/// Maximum number of labels that are read; no network stacks as many.
const LABELS_MAX: usize = 16;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuoteKind {
    /// The TTL expired on the path.
    TimeExceeded,
    /// The port is closed, reported by the destination.
    PortUnreachable,
    /// The destination is unreachable, with the ICMP code.
    Unreachable(u8),
}

/// The field that distinguishes probes, within eight bytes of the transport header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// A UDP datagram.
    Udp {
        /// The checksum.
        checksum: u16,
    },
    /// A TCP segment.
    Tcp {
        /// The sequence number.
        seq: u32,
    },
    /// An echo request.
    Echo {
        /// The identifier.
        ident: u16,
        /// The sequence number.
        seq: u16,
    },
}

/// An MPLS label of the packet when it arrived at the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// The label, 20 bits.
    pub label: u32,
    /// The traffic class, 3 bits.
    pub traffic_class: u8,
    /// The TTL of the label.
    pub ttl: u8,
}

/// An ICMP error and the packet that it quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// The kind of the error.
    pub kind: QuoteKind,
    /// The flow of the quoted packet; ports are 0 for echo requests.
    pub flow: FiveTuple,
    /// Identifies the packet within the flow.
    pub tag: Tag,
    /// The labels, outermost first.
    pub labels: Vec<Label>,
}

/// Reads an error message without its IP header. `Ok(None)`: another kind of message, or no probe
/// is quoted.
///
/// # Errors
/// The message is too short, its checksum is wrong (ICMP only), or the quote is no packet.
pub fn parse_error(family: Family, message: &[u8]) -> Result<Option<Quote>, IcmpError> {
    let short = IcmpError::TooShort(message.len());
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
        return Err(IcmpError::WrongChecksum);
    }
    let Some(kind) = kind_of(family, kind, code) else {
        return Ok(None);
    };
    let remaining = reader.remaining();
    // The quote's length is in units of 32 bits (ICMP) or 64 bits (ICMPv6); 0: not set.
    let quote_len = match family {
        Family::V4 => usize::from(word[1]) * 4,
        Family::V6 => usize::from(word[0]) * 8,
    };
    let (quoted, extensions) = match quote_len {
        0 => (remaining, remaining.get(LEGACY_AT..).unwrap_or_default()),
        quote_len => remaining
            .split_at_checked(quote_len)
            .unwrap_or((remaining, &[])),
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
        // Code 1 is "fragment reassembly time exceeded".
        (Family::V4, 11, 0) | (Family::V6, 3, 0) => Some(QuoteKind::TimeExceeded),
        (Family::V4, 3, 3) | (Family::V6, 1, 4) => Some(QuoteKind::PortUnreachable),
        // Code 4 is "fragmentation needed"; probes are too small for that.
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
            let is_echo_request =
                (protocol, kind) == (ip::ICMP, 8) || (protocol, kind) == (ip::ICMPV6, 128);
            is_echo_request.then_some(Tag::Echo { ident, seq })
        }
        _ => None,
    }
}

/// The labels of an extension structure; `None` if it is not valid.
fn labels(bytes: &[u8]) -> Option<Vec<Label>> {
    let mut reader = Reader::new(bytes);
    let [version, _, high, low] = reader.array()?;
    let sum = u16::from_be_bytes([high, low]);
    // A checksum of 0 means "no checksum" (RFC 4884 section 7).
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

/// 20 bits label, 3 bits traffic class, 1 bit bottom of stack, 8 bits TTL (RFC 3032).
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
    /// Whether the quoted packet had this source and destination.
    pub fn is_between(&self, source: IpAddr, destination: IpAddr) -> bool {
        self.flow.source == source && self.flow.destination == destination
    }
}
