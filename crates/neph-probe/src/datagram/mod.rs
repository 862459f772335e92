//! Probes without a connection: one socket per flow, one [`Codec`] per kind.

pub(crate) mod dns;
mod driver;
pub(crate) mod icmp;
mod icmp_answer;
pub(crate) mod session;
pub(crate) mod syn;
pub(crate) mod udp;

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use neph_model::{Answer, Outcome, Span, Wall};
use neph_wire::marks::PeerMarks;
use socket2::Socket;

pub(crate) use driver::drive;

use crate::stamp_clock::now;

/// The meaning of one received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyOutcome {
    pub(crate) seq: u64,
    pub(crate) marks: Option<PeerMarks>,
    /// The protocol's status, where it has one.
    pub(crate) answer: Option<Answer>,
    /// [`Outcome::Reply`], or [`Outcome::Error`] where the answer is not an expected one.
    pub(crate) outcome: Outcome,
}

/// One kind's datagrams.
pub(crate) trait Codec: std::fmt::Debug {
    /// Replaces `out` by request `seq`, built at `now`.
    fn request(&mut self, seq: u64, now: Wall, out: &mut Vec<u8>);
    /// The meaning of a received datagram. `None` if it is no answer to this flow. `latest_seq` is the
    /// number of the latest request, for kinds whose numbers wrap.
    fn answer(&mut self, datagram: &[u8], latest_seq: u64) -> Option<ReplyOutcome>;
    /// The request that an ICMP error is about, by the quoted bytes of the datagram's payload.
    fn quoted(&self, _quoted: &[u8], _latest_seq: u64) -> Option<u64> {
        None
    }
    /// Replaces `out` by a packet that cancels the latest request, where the peer may still keep state for
    /// it. Empty for most kinds. It is sent before the next request, and at the end.
    fn take_back(&mut self, out: &mut Vec<u8>) {
        out.clear();
    }
    /// Replaces `out` by the packet that ends the peer's waiting after this answer. Empty for most kinds.
    fn objection(&self, _datagram: &[u8], out: &mut Vec<u8>) {
        out.clear();
    }
}

/// A flow's socket and codec.
#[derive(Debug)]
pub(crate) struct Opened {
    socket: Socket,
    codec: Box<dyn Codec>,
    alongside: Option<RawCompanion>,
}

impl Opened {
    /// A socket without companion.
    pub(crate) fn plain(socket: Socket, codec: impl Codec + 'static) -> Self {
        Self {
            socket,
            codec: Box::new(codec),
            alongside: None,
        }
    }
}

/// The second socket of a flow whose kind the kernel does not implement itself.
#[derive(Debug)]
struct RawCompanion {
    /// Local address of the flow; a raw socket does not know it.
    source: SocketAddr,
    /// Sends packets that are no messages, so that the timestamps of the other socket count messages only.
    speaker: Socket,
    prepared_packet: Vec<u8>,
    /// Holds the port while the flow lasts.
    _holder: Socket,
}

impl RawCompanion {
    /// Sends the prepared packet, if any.
    fn send_prepared(&self) {
        if !self.prepared_packet.is_empty() {
            // If it is not sent, the peer's own timeouts have the same effect.
            let _ = send(self.speaker.as_fd(), &self.prepared_packet);
        }
    }
}

/// Sends one request and waits for its answer.
///
/// # Errors
/// No answer in time, an error of the socket, or an ICMP error.
pub(crate) fn ask_once(mut opened: Opened, patience: Span) -> io::Result<()> {
    let socket = &opened.socket;
    socket.set_nonblocking(false)?;
    let mut request = Vec::new();
    let deadline = now() + patience;
    opened
        .codec
        .request(0, Wall::from_unix_nanos(0), &mut request);
    send(socket.as_fd(), &request)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let remaining = deadline - now();
        if remaining <= Span::ZERO {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(remaining.to_duration()))?;
        let count = (&*socket).read(&mut buffer)?;
        if opened.codec.answer(&buffer[..count], 0).is_some() {
            return Ok(());
        }
    }
}

/// The 64-bit number nearest to `latest_seq` whose low 32 bits are `low_bits`.
pub(crate) fn widen(low_bits: u32, latest_seq: u64) -> u64 {
    let base = latest_seq & !0xffff_ffff;
    let candidates = [
        base.checked_sub(1 << 32),
        Some(base),
        base.checked_add(1 << 32),
    ];
    candidates
        .into_iter()
        .flatten()
        .map(|base| base | u64::from(low_bits))
        .min_by_key(|candidate| candidate.abs_diff(latest_seq))
        .unwrap_or_else(|| u64::from(low_bits))
}

/// Sends one datagram without blocking.
fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> std::io::Result<()> {
    neph_sys::stamp::send(socket, bytes, neph_sys::stamp::Ending::Open).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::widen;

    #[test]
    fn a_wrapped_sequence_number_is_widened() {
        assert_eq!(widen(5, 7), 5);
        assert_eq!(widen(u32::MAX, 1 << 32), u64::from(u32::MAX));
        assert_eq!(widen(3, u64::from(u32::MAX)), (1 << 32) + 3);
        assert_eq!(widen(9, (7 << 32) + 11), (7 << 32) + 9);
    }
}
