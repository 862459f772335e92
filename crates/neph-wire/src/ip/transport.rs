//! TCP and UDP headers (RFC 9293, 768) and TCP's timestamp option (RFC 7323).
//!
//! Owns ports, sequence numbers, flags and the start of the payload. Does not own streams.

use super::IpError;
use crate::bytes::Reader;

/// A TCP segment's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpHeader<'a> {
    /// The source port.
    pub source: u16,
    /// The destination port.
    pub destination: u16,
    /// The sequence number of the payload's first byte.
    pub seq: u32,
    /// The acknowledgement number.
    pub ack: u32,
    /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN from the highest bit to the lowest.
    pub flags: u8,
    /// The window field, not scaled.
    pub window: u16,
    /// Length of the header, bytes.
    pub header_len: usize,
    /// The raw options, as far as available.
    pub options: &'a [u8],
    /// The payload, as far as available.
    pub payload: &'a [u8],
}

/// A UDP datagram's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpHeader<'a> {
    /// The source port.
    pub source: u16,
    /// The destination port.
    pub destination: u16,
    /// Length of the payload according to the header; a capture may have fewer bytes.
    pub payload_len: usize,
    /// The payload, as far as available.
    pub payload: &'a [u8],
}

impl TcpHeader<'_> {
    /// FIN: the sender sends no more data.
    pub const FIN: u8 = 0x01;
    /// SYN: the connection opens.
    pub const SYN: u8 = 0x02;
    /// RST: the connection is refused or aborted.
    pub const RST: u8 = 0x04;
    /// PSH: deliver the data to the application.
    pub const PSH: u8 = 0x08;
    /// ACK: the acknowledgement number is valid.
    pub const ACK: u8 = 0x10;
}

/// Reads a TCP header from the start of an IP payload.
///
/// # Errors
/// When its first 20 bytes are cut off, or its length field is below 20.
#[inline]
pub fn parse_tcp(bytes: &[u8]) -> Result<TcpHeader<'_>, IpError> {
    let Some((head, after_fixed)) = bytes.split_first_chunk::<20>() else {
        return Err(IpError::Short("TCP"));
    };
    let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
    let (source, destination) = (u16_at(0), u16_at(2));
    let (seq, ack) = (u32_at(4), u32_at(8));
    let (offset, flags, window) = (head[12], head[13], u16_at(14));
    let Some(options_len) = (usize::from(offset >> 4) * 4).checked_sub(20) else {
        return Err(IpError::Length("TCP"));
    };
    let (options, payload) = after_fixed.split_at(options_len.min(after_fixed.len()));
    Ok(TcpHeader {
        source,
        destination,
        seq,
        ack,
        flags,
        window,
        header_len: 20 + options_len,
        options,
        payload,
    })
}

/// The options of a segment that matter for latency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Value and echo reply of the timestamp option (RFC 7323, 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// Window scale for later segments, on SYNs (RFC 7323, 2.2).
    pub window_scale: Option<u8>,
    /// Maximum segment size, on SYNs (RFC 9293, 3.7.1).
    pub largest_segment: Option<u16>,
    /// The first block of a selective acknowledgement: its first byte and the byte after its last
    /// (RFC 2018, 3). A block below the acknowledgement reports a duplicate (RFC 2883).
    pub sack: Option<(u32, u32)>,
    /// The second block. A first block within it reports a duplicate, too (RFC 2883, 4.2).
    pub second_sack: Option<(u32, u32)>,
}

impl TcpOptions {
    /// The bytes that the receiver got twice, according to a segment that acknowledges up to `ack`
    /// (D-SACK, RFC 2883): the first byte and the byte after the last.
    pub fn duplicate(&self, ack: u32) -> Option<(u32, u32)> {
        let (from, to) = self.sack?;
        let is_behind = |a: u32, b: u32| a.wrapping_sub(b).cast_signed() <= 0;
        let is_within = |(first, last)| is_behind(first, from) && is_behind(to, last);
        (is_behind(to, ack) || self.second_sack.is_some_and(is_within)).then_some((from, to))
    }
}

/// Reads all complete options.
#[inline]
pub fn tcp_options(options: &[u8]) -> TcpOptions {
    // The fast path: nearly all segments have only these options.
    if let [1, 1, 8, 10, a, b, c, d, e, f, g, h] = *options {
        let value = u32::from_be_bytes([a, b, c, d]);
        let echo = u32::from_be_bytes([e, f, g, h]);
        return TcpOptions {
            timestamps: Some((value, echo)),
            ..TcpOptions::default()
        };
    }
    walk_options(options)
}

fn walk_options(options: &[u8]) -> TcpOptions {
    let mut read_options = TcpOptions::default();
    let mut reader = Reader::new(options);
    while read_option(&mut reader, &mut read_options).is_some() {}
    read_options
}

/// Reads one option; `None` at the end of the options.
fn read_option(reader: &mut Reader<'_>, read_options: &mut TcpOptions) -> Option<()> {
    let kind = reader.u8()?;
    if kind == 0 {
        return None;
    }
    if kind == 1 {
        return Some(());
    }
    let len = usize::from(reader.u8()?).checked_sub(2)?;
    let mut value = Reader::new(reader.slice(len)?);
    match (kind, len) {
        (2, 2) => read_options.largest_segment = value.u16(),
        (3, 1) => read_options.window_scale = value.u8(),
        (5, 8..) => {
            read_options.sack = value.u32().zip(value.u32());
            read_options.second_sack = value.u32().zip(value.u32());
        }
        (8, 8) => read_options.timestamps = value.u32().zip(value.u32()),
        _ => {}
    }
    Some(())
}

/// Value and echo reply of the timestamp option.
pub fn tcp_timestamps(options: &[u8]) -> Option<(u32, u32)> {
    tcp_options(options).timestamps
}

/// Reads a UDP header from the start of an IP payload.
///
/// # Errors
/// When it is cut off, or its length field is below 8 bytes.
pub fn parse_udp(bytes: &[u8]) -> Result<UdpHeader<'_>, IpError> {
    read_udp(bytes).ok_or(IpError::Short("UDP"))?
}

fn read_udp(bytes: &[u8]) -> Option<Result<UdpHeader<'_>, IpError>> {
    let mut reader = Reader::new(bytes);
    let (source, destination) = (reader.u16()?, reader.u16()?);
    let length_field = usize::from(reader.u16()?);
    reader.skip(2)?;
    let remaining = reader.remaining();
    // With segmentation offload, a datagram beyond 64 KiB has a length of 0.
    let payload_len = if length_field == 0 {
        Some(remaining.len())
    } else {
        length_field.checked_sub(8)
    };
    let Some(payload_len) = payload_len else {
        return Some(Err(IpError::Length("UDP")));
    };
    let payload = &remaining[..payload_len.min(remaining.len())];
    Some(Ok(UdpHeader {
        source,
        destination,
        payload_len,
        payload,
    }))
}
