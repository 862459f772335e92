//! DNS over UDP (RFC 1035), the asking side.

use neph_model::{Outcome, Wall};

use super::{Codec, Opened, ReplyOutcome, udp};
use crate::ProbeError;
use crate::codec::dns::Queries;
use crate::spec::FlowSpec;

#[derive(Debug)]
struct Dns(Queries);

/// The connected socket and its codec.
pub(crate) fn open(spec: &FlowSpec) -> Result<Opened, ProbeError> {
    Ok(Opened::plain(
        udp::connected(spec)?,
        Dns(Queries::new(spec)),
    ))
}

impl Codec for Dns {
    fn request(&mut self, seq: u64, _now: Wall, out: &mut Vec<u8>) {
        out.clear();
        self.0.request(seq, out);
    }

    fn answer(&mut self, datagram: &[u8], _latest_seq: u64) -> Option<ReplyOutcome> {
        let (seq, answer) = self.0.answer(datagram)?;
        Some(ReplyOutcome {
            seq,
            marks: None,
            answer: Some(answer),
            outcome: Outcome::Reply,
        })
    }

    fn quoted(&self, quoted: &[u8], _latest_seq: u64) -> Option<u64> {
        self.0.quoted(quoted)
    }
}
