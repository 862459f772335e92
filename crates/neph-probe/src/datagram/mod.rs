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

/// What one datagram answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) seq: u64,
    pub(crate) marks: Option<PeerMarks>,
    /// In the protocol's words, where it has any.
    pub(crate) answer: Option<Answer>,
    /// [`Outcome::Reply`], or [`Outcome::Error`] where the answer is not an expected one.
    pub(crate) outcome: Outcome,
}

/// One kind's datagrams.
pub(crate) trait Codec: std::fmt::Debug {
    /// Replaces `out` by request `seq`, built at `now`.
    fn request(&mut self, seq: u64, now: Wall, out: &mut Vec<u8>);
    /// What a received datagram answers; `None` if it is none of ours. `latest` is the number of
    /// the latest request, for kinds whose own numbers wrap.
    fn answer(&mut self, datagram: &[u8], latest: u64) -> Option<Answered>;
    /// Which request an ICMP error is about, by the bytes that it quotes of the datagram's payload.
    fn quoted(&self, _quoted: &[u8], _latest: u64) -> Option<u64> {
        None
    }
    /// Replaces `out` by what takes the latest request back, where the peer may still keep
    /// something for it; nothing with most kinds. Said before the next request, and at the end.
    fn take_back(&mut self, out: &mut Vec<u8>) {
        out.clear();
    }
    /// Replaces `out` by what the peer must be told for this answer, so that it waits for nothing;
    /// nothing with most kinds.
    fn objection(&self, _datagram: &[u8], out: &mut Vec<u8>) {
        out.clear();
    }
}

/// A flow's socket and codec.
#[derive(Debug)]
pub(crate) struct Opened {
    socket: Socket,
    codec: Box<dyn Codec>,
    beside: Option<Beside>,
}

impl Opened {
    /// A socket that needs nothing beside it.
    pub(crate) fn plain(socket: Socket, codec: impl Codec + 'static) -> Self {
        Self {
            socket,
            codec: Box::new(codec),
            beside: None,
        }
    }
}

/// What a flow needs beside its socket, where our kernel is not its kind's other half.
#[derive(Debug)]
struct Beside {
    /// Where the flow is; its socket does not know.
    source: SocketAddr,
    /// Says what is no message, so that the socket's stamps count messages only.
    speaker: Socket,
    said: Vec<u8>,
    /// Holds the port while the flow lasts.
    _holder: Socket,
}

impl Beside {
    /// Says what is to be said, if anything.
    fn say(&self) {
        if !self.said.is_empty() {
            // What does not go is made good by the peer's own timeouts.
            let _ = send(self.speaker.as_fd(), &self.said);
        }
    }
}

/// Sends one request and waits for its answer.
///
/// # Errors
/// That none came in time, or what the socket or an ICMP error said.
pub(crate) fn ask_once(mut opened: Opened, patience: Span) -> io::Result<()> {
    let socket = &opened.socket;
    socket.set_nonblocking(false)?;
    let mut request = Vec::new();
    let latest = now() + patience;
    opened
        .codec
        .request(0, Wall::from_unix_nanos(0), &mut request);
    send(socket.as_fd(), &request)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let left = latest - now();
        if left <= Span::ZERO {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left.to_duration()))?;
        let count = (&*socket).read(&mut buffer)?;
        if opened.codec.answer(&buffer[..count], 0).is_some() {
            return Ok(());
        }
    }
}

/// The 64-bit number nearest to `latest` whose low 32 bits are `low`.
pub(crate) fn widen(low: u32, latest: u64) -> u64 {
    let base = latest & !0xffff_ffff;
    let near = [
        base.checked_sub(1 << 32),
        Some(base),
        base.checked_add(1 << 32),
    ];
    near.into_iter()
        .flatten()
        .map(|base| base | u64::from(low))
        .min_by_key(|candidate| candidate.abs_diff(latest))
        .unwrap_or_else(|| u64::from(low))
}

/// Sends one datagram without blocking.
fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> std::io::Result<()> {
    neph_sys::stamp::send(socket, bytes, neph_sys::stamp::Ending::Open).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::widen;

    #[test]
    fn a_wrapped_number_finds_its_way_back() {
        assert_eq!(widen(5, 7), 5);
        assert_eq!(widen(u32::MAX, 1 << 32), u64::from(u32::MAX));
        assert_eq!(widen(3, u64::from(u32::MAX)), (1 << 32) + 3);
        assert_eq!(widen(9, (7 << 32) + 11), (7 << 32) + 9);
    }
}
