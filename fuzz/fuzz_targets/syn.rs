//! TCP segments as answers to SYNs: what is an answer acknowledges, a number leads to one probe and
//! back, and what we build reads as what it was meant.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::ip::{TcpHeader, parse_ip, parse_tcp};
use neph_wire::syn::{SegmentEnds, Numbers, SYN_LEN, Verdict, parse_answer, rst, syn};

fn is_answer(segment: &[u8]) {
    let Some(answer) = parse_answer(segment) else { return };
    let header = parse_tcp(segment).expect("an answer is a segment");
    assert_eq!((header.source, header.destination), (answer.from, answer.to));
    assert_eq!(header.ack, answer.seq.wrapping_add(1));
    assert_ne!(header.flags & TcpHeader::ACK, 0);
    let expected = match answer.verdict {
        Verdict::Accepted => TcpHeader::SYN,
        Verdict::Refused => TcpHeader::RST,
    };
    let both = TcpHeader::SYN | TcpHeader::RST;
    assert_eq!(header.flags & both, expected);
}

fuzz_target!(|bytes: &[u8]| {
    is_answer(bytes);
    if let Ok(ip) = parse_ip(bytes) {
        is_answer(ip.payload);
    }
    let Some((number, rest)) = bytes.split_first_chunk::<4>() else { return };
    let Some((secret, rest)) = rest.split_first_chunk::<8>() else { return };
    let Some((ports, _)) = rest.split_first_chunk::<4>() else { return };
    let number = u32::from_be_bytes(*number);
    let numbers = Numbers::new(u64::from_be_bytes(*secret));
    let seq = numbers.seq(number);
    assert_eq!(numbers.number(seq), number);
    let [a, b, c, d] = *ports;
    for host in [[0, 1].map(|last| [10, 0, 0, last].into()), [0, 1].map(|last| [1, 2, 3, 4, 5, 6, 7, last].into())] {
        let [ours, theirs]: [std::net::IpAddr; 2] = host;
        let ends = SegmentEnds {
            source: (ours, u16::from_be_bytes([a, b])).into(),
            target: (theirs, u16::from_be_bytes([c, d])).into(),
        };
        let mut out = Vec::new();
        syn(&ends, seq, &mut out);
        assert_eq!(out.len(), SYN_LEN);
        let header = parse_tcp(&out).expect("our own");
        assert_eq!((header.seq, header.flags), (seq, TcpHeader::SYN));
        assert_eq!(parse_answer(&out), None, "a SYN answers nothing");
        out.clear();
        rst(&ends, seq, &mut out);
        assert_eq!(parse_answer(&out), None, "ours acknowledges nothing");
    }
});
