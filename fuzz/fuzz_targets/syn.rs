//! TCP segments as answers to SYNs: what is an answer acknowledges, a number leads to one probe and
//! back, and what we build reads as what it was meant.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::ip::{TcpHeader, parse_ip, parse_tcp};
use neph_wire::syn::{Numbers, SYN_LEN, SegmentEnds, Verdict, parse_answer, rst, syn};

fn check_answer(segment: &[u8]) {
    let Some(answer) = parse_answer(segment) else {
        return;
    };
    let header = parse_tcp(segment).expect("an answer is a segment");
    assert_eq!(
        (header.source, header.destination),
        (answer.from, answer.to)
    );
    assert_eq!(header.ack, answer.seq.wrapping_add(1));
    assert_ne!(header.flags & TcpHeader::ACK, 0);
    let expected = match answer.verdict {
        Verdict::Accepted => TcpHeader::SYN,
        Verdict::Refused => TcpHeader::RST,
    };
    let syn_or_rst = TcpHeader::SYN | TcpHeader::RST;
    assert_eq!(header.flags & syn_or_rst, expected);
}

fuzz_target!(|bytes: &[u8]| {
    check_answer(bytes);
    if let Ok(ip) = parse_ip(bytes) {
        check_answer(ip.payload);
    }
    let Some((number, remaining)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let Some((secret, remaining)) = remaining.split_first_chunk::<8>() else {
        return;
    };
    let Some((ports, _)) = remaining.split_first_chunk::<4>() else {
        return;
    };
    let number = u32::from_be_bytes(*number);
    let numbers = Numbers::new(u64::from_be_bytes(*secret));
    let seq = numbers.seq(number);
    assert_eq!(numbers.number(seq), number);
    let [a, b, c, d] = *ports;
    for addresses in [
        [0, 1].map(|last| [10, 0, 0, last].into()),
        [0, 1].map(|last| [1, 2, 3, 4, 5, 6, 7, last].into()),
    ] {
        let [local, remote]: [std::net::IpAddr; 2] = addresses;
        let ends = SegmentEnds {
            source: (local, u16::from_be_bytes([a, b])).into(),
            target: (remote, u16::from_be_bytes([c, d])).into(),
        };
        let mut segment = Vec::new();
        syn(&ends, seq, &mut segment);
        assert_eq!(segment.len(), SYN_LEN);
        let header = parse_tcp(&segment).expect("our own");
        assert_eq!((header.seq, header.flags), (seq, TcpHeader::SYN));
        assert_eq!(parse_answer(&segment), None, "a SYN answers nothing");
        segment.clear();
        rst(&ends, seq, &mut segment);
        assert_eq!(parse_answer(&segment), None, "ours acknowledges nothing");
    }
});
