//! Probes without a connection: STAMP over UDP, ICMP echo. One socket a flow.

mod driver;
mod icmp;
pub(crate) mod session;
pub(crate) mod udp;

use std::os::fd::BorrowedFd;

use neph_model::{ProbeKind, Wall};
use neph_wire::marks::PeerMarks;
use socket2::Socket;

pub(crate) use driver::drive;

use crate::ProbeError;
use crate::spec::FlowSpec;

/// What one datagram answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) seq: u64,
    pub(crate) marks: Option<PeerMarks>,
}

/// One kind's datagrams.
pub(crate) trait Codec: std::fmt::Debug {
    /// Replaces `out` by request `seq`, built at `now`.
    fn request(&mut self, seq: u64, now: Wall, out: &mut Vec<u8>);
    /// What a received datagram answers; `None` if it is none of ours. `latest` is the number of
    /// the latest request, for kinds whose own numbers wrap.
    fn answer(&self, datagram: &[u8], latest: u64) -> Option<Answer>;
}

/// The socket and the codec for a flow.
fn open(spec: &FlowSpec) -> Result<(Socket, Box<dyn Codec>), ProbeError> {
    match spec.target.kind() {
        ProbeKind::Icmp => icmp::open(spec),
        _ => udp::open(spec),
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
