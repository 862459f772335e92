//! STAMP over UDP (RFC 8762), client side.
//!
//! A neph reflector puts its timestamps into a private TLV (RFC 8972). From any other STAMP reflector the two
//! timestamps of the base packet are used as `peer_rx` and `peer_app_tx`, on the reflector's wall clock.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use neph_model::{Authenticated, ByteSize, Outcome, ProbeKind, Wall, sent_size, stamp_sizes};
use neph_wire::marks::PeerMarks;
use neph_wire::stamp::{
    Auth, ErrorEstimate, Format, Key, Reply, SenderPacket, Timestamp, decode_reply, encode_request,
};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::{Codec, Opened, ReplyOutcome, widen};
use crate::ProbeError;
use crate::secret::Secret;
use crate::spec::FlowSpec;
use crate::ssid::{matches_session, new_ssid};
use crate::stamp_clock::now;
use crate::synchrony::Synchrony;

#[derive(Debug)]
pub(crate) struct Udp {
    key: Option<Key>,
    size: usize,
    error: ErrorEstimate,
    /// Identifies the session.
    ssid: u16,
    sent: SentRequest,
}

/// Timestamps of the latest requests. A reply repeats its request's timestamp, which a spoofer who did not
/// see the request cannot guess.
#[derive(Debug, Default)]
struct SentRequest {
    first: u64,
    timestamps: VecDeque<Timestamp>,
}

impl SentRequest {
    /// Requests that are remembered. A reply to an older one is ignored.
    const MAXIMUM: usize = 1 << 16;

    fn enter(&mut self, seq: u64, timestamp: Timestamp) {
        if seq != self.first + self.timestamps.len() as u64 {
            (self.first, self.timestamps) = (seq, VecDeque::new());
        }
        if self.timestamps.len() == Self::MAXIMUM {
            self.timestamps.pop_front();
            self.first += 1;
        }
        self.timestamps.push_back(timestamp);
    }

    fn has(&self, seq: u64, timestamp: Timestamp) -> bool {
        let at = seq
            .checked_sub(self.first)
            .and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.timestamps.get(at)) == Some(&timestamp)
    }
}

/// The connected socket and its codec.
pub(crate) fn open(spec: &FlowSpec) -> Result<Opened, ProbeError> {
    Ok(Opened::plain(connected(spec)?, codec(spec)))
}

/// A UDP socket from the flow's source port to its address.
pub(super) fn connected(spec: &FlowSpec) -> Result<Socket, ProbeError> {
    let fault = |source| ProbeError::Socket {
        operation: "open a UDP socket to",
        address: spec.address,
        source,
    };
    let domain = Domain::for_address(spec.address);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(fault)?;
    socket.set_nonblocking(true).map_err(fault)?;
    if let Some(port) = spec.source_port {
        let unspecified: SocketAddr = match spec.address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, port).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, port).into(),
        };
        socket.bind(&SockAddr::from(unspecified)).map_err(fault)?;
    }
    socket
        .connect(&SockAddr::from(spec.address))
        .map_err(fault)?;
    Ok(socket)
}

impl FlowSpec {
    /// Whether replies have room for the timestamps of a neph reflector; a base STAMP packet has none.
    pub fn has_room_for_marks(&self) -> bool {
        let min = stamp_sizes(Authenticated::by(self.key.as_ref())).with_marks;
        self.target.kind() != ProbeKind::Udp || self.request_size as u64 >= min
    }

    /// Size of its STAMP requests and replies: as requested, but with room for a reflector's timestamps, and
    /// within one datagram.
    pub fn stamp_bytes(&self) -> usize {
        codec(self).size
    }
}

/// The codec of this flow's datagrams.
pub(crate) fn codec(spec: &FlowSpec) -> Udp {
    let key = spec.key.as_ref().map(Secret::key);
    let requested = ByteSize(spec.request_size as u64);
    let size = sent_size(ProbeKind::Udp, requested, Authenticated::by(key.as_ref()));
    Udp {
        key,
        size: usize::try_from(size.bytes()).unwrap_or(usize::MAX),
        sent: SentRequest::default(),
        error: Synchrony::new(now()).estimate(),
        ssid: new_ssid(),
    }
}

impl Udp {
    const fn auth(&self) -> Auth<'_> {
        match &self.key {
            None => Auth::Open,
            Some(key) => Auth::Keyed(key),
        }
    }
}

impl Codec for Udp {
    fn request(&mut self, seq: u64, now: Wall, out: &mut Vec<u8>) {
        out.clear();
        let packet = SenderPacket {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "STAMP numbers wrap (RFC 8762)"
            )]
            seq: seq as u32,
            timestamp: Timestamp::from_unix(now.unix_nanos(), Format::Ntp).unwrap_or(Timestamp(0)),
            error: self.error,
            ssid: self.ssid,
        };
        self.sent.enter(seq, packet.timestamp);
        encode_request(&packet, self.auth(), self.size, out)
            .expect("the size was held within one datagram when the flow was opened");
    }

    fn answer(&mut self, datagram: &[u8], latest_seq: u64) -> Option<ReplyOutcome> {
        let reply = decode_reply(datagram, self.auth()).ok()?;
        let seq = widen(reply.packet.sender_seq, latest_seq);
        let is_ours = self.sent.has(seq, reply.packet.sender_timestamp)
            && reply.packet.sender_error == self.error
            && matches_session(reply.packet.ssid, self.ssid);
        is_ours.then_some(ReplyOutcome {
            seq,
            marks: marks_of(&reply, latest_seq),
            answer: None,
            outcome: Outcome::Reply,
        })
    }

    /// A quote without the request's timestamp is not of a request of this flow.
    fn quoted(&self, quoted: &[u8], latest_seq: u64) -> Option<u64> {
        let seq = seq_of(quoted, latest_seq)?;
        let at = if self.key.is_some() { 16 } else { 4 };
        let timestamp = quoted.get(at..at + 8)?.try_into().ok()?;
        let timestamp = Timestamp(u64::from_be_bytes(timestamp));
        self.sent.has(seq, timestamp).then_some(seq)
    }
}

/// The number of any STAMP packet: its first four bytes.
fn seq_of(packet: &[u8], latest_seq: u64) -> Option<u64> {
    let low_bits = u32::from_be_bytes(packet.get(..4)?.try_into().ok()?);
    Some(widen(low_bits, latest_seq))
}

fn marks_of(reply: &Reply, latest_seq: u64) -> Option<PeerMarks> {
    if let Some(mut marks) = reply.timestamps {
        if let Some(previous) = &mut marks.previous {
            #[expect(clippy::cast_possible_truncation, reason = "STAMP numbers wrap")]
            let low_bits = previous.seq as u32;
            previous.seq = widen(low_bits, latest_seq);
        }
        return Some(marks);
    }
    let format = reply.packet.error.format;
    let rx = reply.packet.receive.to_unix(format).ok()?;
    let app_tx = reply.packet.timestamp.to_unix(format).ok()?;
    let marks = PeerMarks {
        rx: Some(rx),
        app_tx: Some(app_tx),
        ..PeerMarks::default()
    };
    (rx <= app_tx).then_some(marks)
}
