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
    (record.at, record.link.number(), record.length, record.bytes.to_vec())
}

// How long the first is, and both of them.
fuzz_target!(|input: &[u8]| {
    let Some((first, rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    let middle = usize::from(u16::from_le_bytes(*first)) % (rest.len() + 1);
    let (one, other) = rest.split_at(middle);
    let each = [one, other].map(|mut bytes| {
        let mut found = Vec::new();
        let summary = read_capture(&mut bytes, |record| {
            found.push((packet(record), record.interface));
            ControlFlow::Continue(())
        });
        (found, summary)
    });
    let mut all = Vec::new();
    let mut ended = [0; 2];
    let summary = read_merged(
        vec![one, other],
        |record| {
            all.push((packet(record), record.interface));
            ControlFlow::Continue(())
        },
        |place, _| {
            ended[place] += 1;
            ControlFlow::Continue(())
        },
    );
    assert_eq!(ended, [1, 1]);
    assert_eq!(summary.packets, each[0].1.packets + each[1].1.packets);
    assert_eq!(summary.bytes, each[0].1.bytes + each[1].1.bytes);
    // Each packet is the next of one capture; what the other has next is not earlier.
    let mut next = [0, 0];
    for (found, _) in &all {
        let ahead = [0, 1].map(|place| each[place].0.get(next[place]));
        let times = ahead.map(|packet| packet.map(|((at, ..), _)| at));
        let place = match times {
            [Some(a), Some(b)] => usize::from(b < a),
            [a, _] => usize::from(a.is_none()),
        };
        assert_eq!(ahead[place].map(|(packet, _)| packet), Some(found));
        next[place] += 1;
    }
    assert_eq!(next, [0, 1].map(|place| each[place].0.len()));
});
