//! Writes probes.

use std::net::{IpAddr, SocketAddr};

use crate::checksum::{PseudoHeader, internet_checksum};
use crate::icmp::{self, Family};
use crate::ip;
use crate::syn::{self, SegmentEnds, bare_syn};

/// Bytes of a TCP SYN without options.
pub const SYN_LEN: usize = 20;

/// Length of an echo request: header, two balancing bytes and six bytes of padding.
pub const ECHO_LEN: usize = 16;

/// Sets the two bytes at `at` (even) so that the Internet checksum over `pseudo` and then `bytes`
/// becomes `wanted`. The checksum field in `bytes` must be zero.
///
/// `wanted` must not be `0xffff`: the one's complement sum has two zeroes, no checksum is `0xffff`,
/// and 0 means "no checksum" in UDP.
pub fn set_balancing_bytes(pseudo: &[u8], bytes: &mut [u8], at: usize, wanted: u16) {
    let Some(field) = bytes.get_mut(at..at + 2) else {
        return;
    };
    field.fill(0);
    let sum = !internet_checksum(&[pseudo, bytes]);
    // One's complement: the difference between the sum and the complement of the wanted checksum.
    let missing = internet_checksum(&[&sum.to_be_bytes(), &wanted.to_be_bytes()]);
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&missing.to_be_bytes());
    }
}

/// Appends a UDP datagram whose checksum is `number`; balances with the two bytes of `payload` at
/// `balance_at` (even). `number` must be neither 0 nor `0xffff`.
/// `None` where the IP versions differ, or the payload is too long.
pub fn udp(
    source: SocketAddr,
    destination: SocketAddr,
    payload: &[u8],
    balance_at: usize,
    number: u16,
) -> Option<Vec<u8>> {
    let len = 8 + payload.len();
    let pseudo = PseudoHeader::new(source.ip(), destination.ip(), ip::UDP, len)?;
    let mut out = Vec::with_capacity(len);
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
    out.extend_from_slice(&u16::try_from(len).ok()?.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(payload);
    set_balancing_bytes(pseudo.as_bytes(), &mut out, 8 + balance_at, number);
    out[6..8].copy_from_slice(&number.to_be_bytes());
    Some(out)
}

/// A TCP SYN without options, with a window of 0 so that the peer sends no data.
/// `None` where the IP versions differ.
pub fn syn(source: SocketAddr, destination: SocketAddr, seq: u32) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(SYN_LEN);
    bare_syn(&ends(source, destination)?, seq, &mut out);
    Some(out)
}

/// A TCP SYN that routers forward like any other and that its target drops without an answer,
/// because it claims to be signed (RFC 2385). So the target gets no half-open connection. A target
/// without TCP signatures answers it.
/// `None` where the IP versions differ.
pub fn mute_syn(source: SocketAddr, destination: SocketAddr, seq: u32) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    syn::mute_syn(&ends(source, destination)?, seq, &mut out);
    Some(out)
}

fn ends(source: SocketAddr, target: SocketAddr) -> Option<SegmentEnds> {
    (source.is_ipv4() == target.is_ipv4()).then_some(SegmentEnds { source, target })
}

/// An echo request whose checksum and identifier are both `ident` for every `seq`: no field that
/// routers balance by changes. `ends` are source and destination, which the checksum of `ICMPv6`
/// covers. `ident` must be neither 0 nor `0xffff`.
/// `None` where the IP versions differ.
pub fn echo(ends: (IpAddr, IpAddr), ident: u16, seq: u16) -> Option<[u8; ECHO_LEN]> {
    let (family, pseudo) = match ends {
        (IpAddr::V4(_), IpAddr::V4(_)) => (Family::V4, None),
        (source, destination) => {
            let pseudo = PseudoHeader::new(source, destination, ip::ICMPV6, ECHO_LEN)?;
            (Family::V6, Some(pseudo))
        }
    };
    let mut out = [0; ECHO_LEN];
    out[0] = family.echo_request();
    out[4..6].copy_from_slice(&ident.to_be_bytes());
    out[6..8].copy_from_slice(&seq.to_be_bytes());
    let pseudo = pseudo.as_ref().map_or(&[][..], PseudoHeader::as_bytes);
    set_balancing_bytes(pseudo, &mut out, icmp::HEADER_LEN, ident);
    out[2..4].copy_from_slice(&ident.to_be_bytes());
    Some(out)
}
