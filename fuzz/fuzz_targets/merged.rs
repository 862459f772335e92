//! Two captures read as one: the packets of both, each once, those of one in its own order, interfaces
//! apart, whatever the bytes are.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use neph_capture::{read_capture, read_merged};
use neph_wire::capture::Record;

/// A packet without the number of its interface.
type Packet = (Option<i64>, u32, u32, Vec<u8>);

fn packet(record: Record<'_>) -> Packet {
    (
        record.at,
        record.link.number(),
        record.length,
        record.bytes.to_vec(),
    )
}

// How long the first is, and both of them.
fuzz_target!(|input: &[u8]| {
    let Some((first_length, captures)) = input.split_first_chunk::<2>() else {
        return;
    };
    let split_at = usize::from(u16::from_le_bytes(*first_length)) % (captures.len() + 1);
    let (first_capture, second_capture) = captures.split_at(split_at);
    let read_alone = [first_capture, second_capture].map(|mut bytes| {
        let mut packets = Vec::new();
        let summary = read_capture(&mut bytes, |record| {
            packets.push((packet(record), record.interface));
            ControlFlow::Continue(())
        });
        (packets, summary)
    });
    let mut merged = Vec::new();
    let mut ended = [0; 2];
    let summary = read_merged(
        vec![first_capture, second_capture],
        |record| {
            merged.push((packet(record), record.interface));
            ControlFlow::Continue(())
        },
        |index, _| {
            ended[index] += 1;
            ControlFlow::Continue(())
        },
    );
    assert_eq!(ended, [1, 1]);
    assert_eq!(
        summary.packets,
        read_alone[0].1.packets + read_alone[1].1.packets
    );
    assert_eq!(summary.bytes, read_alone[0].1.bytes + read_alone[1].1.bytes);
    // Each packet is the next of one capture; what the other has next is not earlier.
    let mut next = [0, 0];
    for (packet, _) in &merged {
        let ahead = [0, 1].map(|index| read_alone[index].0.get(next[index]));
        let times = ahead.map(|packet| packet.map(|((at, ..), _)| at));
        let index = match times {
            [Some(a), Some(b)] => usize::from(b < a),
            [a, _] => usize::from(a.is_none()),
        };
        assert_eq!(ahead[index].map(|(packet, _)| packet), Some(packet));
        next[index] += 1;
    }
    assert_eq!(next, [0, 1].map(|index| read_alone[index].0.len()));
});
