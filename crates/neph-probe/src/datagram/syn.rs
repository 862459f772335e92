//! TCP SYN, client side: builds a SYN segment and reads any answer.
//!
//! No connection results. The local kernel, which does not know the SYN, refuses the SYN-ACK with a RST, and
//! the target forgets it. For that the port must be unused: a bound TCP socket that does not listen holds it.
//! A firewall that passes only segments of programs would block the kernel's RST, so a built RST follows it.
//! Needs `CAP_NET_RAW`.

use std::os::fd::AsFd;

use neph_model::{Outcome, Wall};
use neph_sys::port_filter;
use neph_wire::syn::{self, Numbers, SegmentEnds};

use super::{Codec, Opened, RawCompanion, ReplyOutcome, widen};
use crate::ProbeError;
use crate::codec::new_token;
use crate::raw_tcp;
use crate::spec::FlowSpec;

#[derive(Debug)]
struct Syn {
    ends: SegmentEnds,
    numbers: Numbers,
    /// The latest SYN's number, until it is answered.
    unanswered: Option<u32>,
}

/// The connected raw socket, its codec, and its companion.
pub(crate) fn open(spec: &FlowSpec) -> Result<Opened, ProbeError> {
    let fault = |source| ProbeError::Socket {
        operation: "open a raw TCP socket to",
        address: spec.address,
        source,
    };
    let (socket, mut source) = raw_tcp::connected(spec.address).map_err(fault)?;
    source.set_port(spec.source_port.unwrap_or(0));
    let holder = raw_tcp::hold(source).map_err(|error| match spec.source_port {
        Some(port) => ProbeError::SourcePort {
            port,
            address: spec.address,
            source: error,
        },
        None => fault(error),
    })?;
    source = raw_tcp::local(&holder).map_err(fault)?;
    let (family, port) = (raw_tcp::family(source), source.port());
    port_filter::attach(socket.as_fd(), family, &(port..=port)).map_err(fault)?;
    let (speaker, _) = raw_tcp::connected(spec.address).map_err(fault)?;
    // It only sends.
    port_filter::attach(speaker.as_fd(), family, &(0..=0)).map_err(fault)?;
    let ends = SegmentEnds {
        source,
        target: spec.address,
    };
    Ok(Opened {
        socket,
        codec: Box::new(Syn {
            ends,
            numbers: Numbers::new(new_token().0),
            unanswered: None,
        }),
        alongside: Some(RawCompanion {
            source,
            speaker,
            prepared_packet: Vec::with_capacity(syn::SYN_LEN),
            _holder: holder,
        }),
    })
}

impl Syn {
    /// The answer in a received packet, if it is for this flow.
    fn read(&self, packet: &[u8]) -> Option<syn::Answer> {
        let family = raw_tcp::family(self.ends.source);
        let (segment, _) = raw_tcp::segment(family, packet)?;
        let answer = syn::parse_answer(segment)?;
        let is_ours =
            answer.from == self.ends.target.port() && answer.to == self.ends.source.port();
        is_ours.then_some(answer)
    }
}

impl Codec for Syn {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "sequence numbers wrap; the answer's is widened again"
    )]
    fn request(&mut self, seq: u64, _now: Wall, out: &mut Vec<u8>) {
        out.clear();
        let seq = self.numbers.seq(seq as u32);
        self.unanswered = Some(seq);
        syn::syn(&self.ends, seq, out);
    }

    fn answer(&mut self, datagram: &[u8], latest_seq: u64) -> Option<ReplyOutcome> {
        let answer = self.read(datagram)?;
        self.unanswered.take_if(|seq| *seq == answer.seq);
        Some(ReplyOutcome {
            seq: widen(self.numbers.number(answer.seq), latest_seq),
            marks: None,
            answer: Some(neph_model::Answer::Syn(raw_tcp::answer(answer.verdict))),
            outcome: Outcome::Reply,
        })
    }

    /// A target that still waits for an earlier handshake does not answer the next SYN. It waits where the
    /// path is longer than the interval, and where its SYN-ACK was lost.
    fn take_back(&mut self, out: &mut Vec<u8>) {
        out.clear();
        if let Some(seq) = self.unanswered.take() {
            syn::rst(&self.ends, seq.wrapping_add(1), out);
        }
    }

    /// The number is the one that the SYN-ACK acknowledges. After the kernel's RST, and even after the flow's
    /// next SYN, the target ignores this RST.
    fn objection(&self, datagram: &[u8], out: &mut Vec<u8>) {
        out.clear();
        if let Some(answer) = self.read(datagram)
            && answer.verdict == syn::Verdict::Accepted
        {
            syn::rst(&self.ends, answer.seq.wrapping_add(1), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_wire::ip::{TcpHeader, parse_tcp};

    use super::*;

    fn codec() -> Syn {
        Syn {
            ends: SegmentEnds {
                source: "[::1]:40000".parse().expect("an address"),
                target: "[::1]:80".parse().expect("an address"),
            },
            numbers: Numbers::new(7),
            unanswered: None,
        }
    }

    /// The target's answer to `request`.
    fn reply(request: &[u8], flags: u8) -> Vec<u8> {
        let syn_segment = parse_tcp(request).expect("a SYN");
        let mut reply = request.to_vec();
        reply[..2].copy_from_slice(&syn_segment.destination.to_be_bytes());
        reply[2..4].copy_from_slice(&syn_segment.source.to_be_bytes());
        reply[8..12].copy_from_slice(&syn_segment.seq.wrapping_add(1).to_be_bytes());
        reply[13] = flags;
        reply
    }

    #[test]
    fn a_syn_answer_matches_its_syn_after_four_billion_syns() {
        let mut codec = codec();
        let mut request = Vec::new();
        for seq in [0, 1, 70_000, (1 << 32) + 5, (9 << 32) - 1] {
            codec.request(seq, Wall::from_unix_nanos(0), &mut request);
            assert_eq!(codec.answer(&request, seq), None, "a SYN is no answer");
            for flags in [0x12, 0x14] {
                let answer = codec.answer(&reply(&request, flags), seq + 3);
                assert_eq!(answer.map(|answer| answer.seq), Some(seq));
            }
            let challenge = reply(&request, TcpHeader::ACK);
            assert_eq!(
                codec.answer(&challenge, seq),
                None,
                "a challenge ACK is none"
            );
        }
    }

    #[test]
    fn an_answer_to_another_flow_is_ignored() {
        let mut request = Vec::new();
        codec().request(3, Wall::from_unix_nanos(0), &mut request);
        for at in [1, 3] {
            let mut unknown_id = reply(&request, 0x12);
            unknown_id[at] ^= 1;
            assert_eq!(codec().answer(&unknown_id, 3), None);
        }
    }

    #[test]
    fn an_unanswered_syn_is_reset_once() {
        let mut codec = codec();
        let (mut request, mut out) = (Vec::new(), Vec::new());
        codec.request(3, Wall::from_unix_nanos(0), &mut request);
        codec.take_back(&mut out);
        let (syn_segment, reset) = (
            parse_tcp(&request).expect("a SYN"),
            parse_tcp(&out).expect("a RST"),
        );
        assert_eq!(
            (reset.flags, reset.seq),
            (TcpHeader::RST, syn_segment.seq.wrapping_add(1))
        );
        codec.take_back(&mut out);
        assert!(out.is_empty(), "it was taken back already");
        codec.request(4, Wall::from_unix_nanos(0), &mut request);
        codec.answer(&reply(&request, 0x12), 4);
        codec.take_back(&mut out);
        assert!(out.is_empty(), "it was answered");
    }

    #[test]
    fn only_a_syn_ack_gets_a_rst_with_the_number_it_acknowledges() {
        let mut codec = codec();
        let (mut request, mut out) = (Vec::new(), Vec::new());
        codec.request(3, Wall::from_unix_nanos(0), &mut request);
        codec.objection(&reply(&request, 0x14), &mut out);
        assert!(out.is_empty(), "a RST needs no RST");
        codec.objection(&reply(&request, 0x12), &mut out);
        let (syn_segment, reset) = (
            parse_tcp(&request).expect("a SYN"),
            parse_tcp(&out).expect("a RST"),
        );
        assert_eq!(reset.flags, TcpHeader::RST);
        assert_eq!(reset.seq, syn_segment.seq.wrapping_add(1));
        assert_eq!((reset.source, reset.destination), (40_000, 80));
    }
}
