//! Segments of a few connections in any order, with numbers and times near to each other, so that they
//! meet: whatever they claim, no round trip is shorter than nothing, each sample is of its flow, each
//! packet is counted once, and what waits for an answer stays within its bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_capture::{Event, Flow, FlowName, Half, Limits, Listener, Method, Sample, Side, Table};
use neph_model::{Span, Wall};
use neph_wire::dissect::{Link, dissect};

/// Bytes of input that make a segment.
const SEGMENT_INPUT_BYTES: usize = 10;
/// What a flow takes beside what waits in it: its sketches have a bound of their own.
const FLOW_BASE_BYTES: usize = 1 << 20;

#[derive(Default)]
struct FlowTotals {
    samples: u64,
    packets: u64,
}

impl Listener for FlowTotals {
    fn sample(&mut self, flow_name: &FlowName, sample: &Sample) {
        assert!(sample.round_trip >= Span::from_nanos(0));
        assert_ne!(flow_name.client(), flow_name.server());
        self.samples += 1;
    }
    fn event(&mut self, _: &FlowName, _: Wall, _: Side, _: Event) {}
    fn ended(&mut self, flow: &Flow) {
        assert!(flow.first_packet_at() <= flow.last_packet_at());
        for side in [Side::Client, Side::Server] {
            let sent = flow.sent(side);
            assert!(sent.payload <= sent.bytes);
            assert!(u64::from(sent.retransmitted_segments()) <= sent.packets);
            self.packets += sent.packets;
        }
        for half in [Half::Client, Half::Server] {
            for method in Method::ALL {
                if let Some(quantiles) = flow.round_trips(half).path_quantiles(method) {
                    assert!(quantiles.min <= quantiles.p50 && quantiles.p50 <= quantiles.max);
                    assert!(quantiles.n <= self.samples);
                }
            }
        }
    }
}

/// A segment in raw IPv4; its options are none, a time stamp, a SACK block, or both.
fn segment(bytes: &[u8; SEGMENT_INPUT_BYTES]) -> (i64, Vec<u8>, u32) {
    let [
        ends,
        flags,
        seq,
        ack,
        value,
        echo,
        length,
        options,
        window,
        time_step,
    ] = *bytes;
    let (from, to) = if ends & 1 == 0 { (1, 2) } else { (2, 1) };
    // Around the end of the numbers, in steps that make segments meet.
    let wrapping_number = |step: u8| 0xffff_fff0_u32.wrapping_add(u32::from(step) * 4);
    let mut header = Vec::new();
    if options & 1 != 0 {
        header.extend([1, 1, 8, 10]);
        header.extend(wrapping_number(value).to_be_bytes());
        header.extend(wrapping_number(echo).to_be_bytes());
    }
    if options & 2 != 0 {
        header.extend([1, 1, 5, 10]);
        header.extend(wrapping_number(value).to_be_bytes());
        header.extend(wrapping_number(echo).to_be_bytes());
    }
    if options & 4 != 0 {
        header.extend([2, 4, window, 0, 3, 3, value, 0]);
    }
    let payload = u32::from(length) * if options & 8 == 0 { 1 } else { 180 };
    let total_length = 40 + header.len() as u32 + payload;
    let port = 40_000 + u16::from(ends >> 1 & 3);
    let mut segment = vec![0x45, 0];
    segment.extend((total_length as u16).to_be_bytes());
    segment.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    let ports = if from == 1 { [port, 443] } else { [443, port] };
    segment.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    segment.extend(wrapping_number(seq).to_be_bytes());
    segment.extend(wrapping_number(ack).to_be_bytes());
    segment.extend([
        (5 + header.len() as u8 / 4) << 4,
        flags,
        0,
        window & 3,
        0,
        0,
        0,
        0,
    ]);
    segment.extend(header);
    // Mostly forwards, from nanoseconds to minutes; some backwards.
    let time_step_ns = 1_i64 << (time_step & 0x3f).min(38);
    (
        if time_step & 0x80 == 0 {
            time_step_ns
        } else {
            -time_step_ns / 4
        },
        segment,
        total_length,
    )
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&limits_byte, input)) = bytes.split_first() else {
        return;
    };
    let limits = Limits {
        max_flows: usize::from(limits_byte & 3) + 1,
        max_pending_bytes: usize::from(limits_byte >> 2) * 1_000,
        ..Limits::default()
    };
    let (mut table, mut totals) = (Table::new(limits), FlowTotals::default());
    let mut now = 1_700_000_000_000_000_000;
    let (segments, _) = input.as_chunks::<SEGMENT_INPUT_BYTES>();
    for chunk in segments {
        let (time_step, bytes, total_length) = segment(chunk);
        now += time_step;
        let dissected = dissect(Link::Ip, &bytes, total_length).expect("a packet");
        table.add_packet(Wall::from_unix_nanos(now), &dissected, &mut totals);
        assert!(table.len() <= limits.max_flows);
    }
    table.flush(&mut totals);
    assert!(table.memory_bytes() <= limits.max_pending_bytes + limits.max_flows * FLOW_BASE_BYTES);
    table.end(&mut totals);
    assert!(table.is_empty());
    assert_eq!(totals.packets, segments.len() as u64);
});
