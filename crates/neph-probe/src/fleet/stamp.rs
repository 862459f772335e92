//! STAMP for fleets: building requests and reading replies.

use neph_model::{Instant, PeerReport, Span, Wall};
use neph_wire::stamp::{
    Auth, ErrorEstimate, Key, Reply, SenderPacket, Timestamp, decode_reply, encode_request,
    request_size,
};

use super::session::low;
use super::spec::FleetSpec;
use crate::secret::Secret;
use crate::ssid::{matches_session, new_ssid};
use crate::stamp_clock::now;
use crate::synchrony::Synchrony;

/// The request of a reply, and the sender's data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StampReply {
    pub(crate) seq: u32,
    /// The time of its request, as the reply repeats it.
    pub(crate) repeated: Option<Wall>,
    pub(crate) peer_report: Option<PeerReport>,
}

#[derive(Debug)]
pub(crate) struct Stamp {
    key: Option<Key>,
    size: usize,
    error: ErrorEstimate,
    /// Identifies the sessions of this process (RFC 8972, 3).
    ssid: u16,
}

impl Stamp {
    pub(crate) fn new(spec: &FleetSpec) -> Self {
        Self {
            key: spec.key.as_ref().map(Secret::key),
            size: usize::try_from(spec.sent_size().bytes()).unwrap_or(usize::MAX),
            error: Synchrony::new(now()).estimate(),
            ssid: new_ssid(),
        }
    }

    const fn auth(&self) -> Auth<'_> {
        match &self.key {
            None => Auth::Open,
            Some(key) => Auth::Keyed(key),
        }
    }

    /// Bytes of a request, and of its reply.
    pub(crate) fn size(&self) -> usize {
        request_size(self.auth(), self.size)
    }

    /// Appends request `seq` of a flow, made at `now`.
    pub(crate) fn request(&self, seq: u64, now: Wall, out: &mut Vec<u8>) {
        let format = self.error.format;
        let packet = SenderPacket {
            seq: low(seq),
            timestamp: Timestamp::from_unix(now.unix_nanos(), format).unwrap_or(Timestamp(0)),
            error: self.error,
            ssid: self.ssid,
        };
        encode_request(&packet, self.auth(), self.size, out)
            .expect("the size was held within one datagram when the fleet began");
    }

    /// Reads a reply. `None` if it does not belong to this fleet.
    pub(crate) fn answered(&self, datagram: &[u8]) -> Option<StampReply> {
        let reply = decode_reply(datagram, self.auth()).ok()?;
        if reply.packet.sender_error != self.error || !matches_session(reply.packet.ssid, self.ssid)
        {
            return None;
        }
        // An invalid time was not sent from here.
        let unix = reply
            .packet
            .sender_timestamp
            .to_unix(self.error.format)
            .ok()?;
        Some(StampReply {
            seq: reply.packet.sender_seq,
            repeated: Some(Wall::from_unix_nanos(unix)),
            peer_report: peer_report(&reply),
        })
    }
}

/// From a neph reflector its own timestamps, from any other the two timestamps of the base packet.
pub(crate) fn peer_report(reply: &Reply) -> Option<PeerReport> {
    /// Sent by a peer that could not read the TTL.
    const UNKNOWN: u8 = u8::MAX;
    let packet = &reply.packet;
    let ttl = (packet.sender_ttl != UNKNOWN).then_some(packet.sender_ttl);
    let format = packet.error.format;
    // Only a neph reflector is known to count its replies: another may return the request's number.
    let (rx, app_tx, count) = if let Some(marks) = reply.timestamps {
        (marks.rx.or(marks.app_rx)?, marks.app_tx?, Some(packet.seq))
    } else {
        let receive = packet.receive.to_unix(format).ok()?;
        (receive, packet.timestamp.to_unix(format).ok()?, None)
    };
    // An impossible one is discarded and counted where the round trip is known.
    Some(PeerReport {
        residence: Span::from_nanos(app_tx.saturating_sub(rx)),
        rx: Instant::from_nanos(rx),
        count,
        ttl,
    })
}
