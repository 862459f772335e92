//! Capture files: the same packets however the bytes come, each within its bounds, in memory that
//! does not follow what a file announces; and flows of them that add up.
#![no_main]

use std::io;
use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use neph_capture::{
    Ending, Exchanges, Flow, FlowName, Half, HostPair, Limits, Listener, Method, Sample, Side,
    Table, read_capture,
};
use neph_model::Wall;
use neph_wire::capture::{MAX_FRAME_BYTES, Record};
use neph_wire::dissect::{Transport, dissect};

/// Gives at most so many bytes at once.
struct ShortReads<'a>(&'a [u8], usize);

impl io::Read for ShortReads<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.1.min(buffer.len());
        io::Read::read(&mut self.0, &mut buffer[..length])
    }
}

#[derive(Default)]
struct Counts {
    segments: u64,
    samples: u64,
    path_samples: u64,
}

impl Listener for Counts {
    fn sample(&mut self, _: &FlowName, _: &Sample) {
        self.samples += 1;
    }
    fn ended(&mut self, flow: &Flow) {
        for side in [Side::Client, Side::Server] {
            self.segments += flow.sent(side).packets;
        }
        for half in [Half::Client, Half::Server] {
            for method in Method::ALL {
                let path = flow.round_trips(half).path_quantiles(method);
                self.path_samples += path.map_or(0, |path| path.n);
                assert!(path.is_none_or(|path| path.min <= path.p50 && path.p50 <= path.max));
            }
        }
    }
}

/// What a pair says of itself holds together.
fn assert_pair_invariants(pair: &HostPair) {
    let total = pair.counts();
    assert!(total.answered() <= total.requests());
    if let Some(trips) = total.round_trips(Half::Server) {
        assert!(trips.min <= trips.mean && trips.mean <= trips.max);
    }
}

/// Lengths and times of the packets, how much of it was understood, and whether it ended in no capture.
type CaptureContents = (Vec<(Option<i64>, u32, usize)>, u64, bool);

/// What a capture holds; each packet is handed on.
fn read_packets(
    source: &mut impl io::Read,
    mut on_packet: impl FnMut(&Record<'_>),
) -> CaptureContents {
    let mut packets = Vec::new();
    let summary = read_capture(source, |record| {
        assert!(record.bytes.len() as u64 <= u64::from(MAX_FRAME_BYTES));
        assert!(record.bytes.len() as u64 <= u64::from(record.length));
        packets.push((record.at, record.length, record.bytes.len()));
        on_packet(&record);
        ControlFlow::Continue(())
    });
    assert_eq!(summary.packets, packets.len() as u64);
    let is_broken = matches!(summary.ending, Ending::Broken(_));
    (packets, summary.bytes, is_broken)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&cut, file)) = bytes.split_first() else {
        return;
    };
    let limits = Limits {
        max_flows: usize::from(cut % 8) + 1,
        ..Limits::default()
    };
    let (mut table, mut counts, mut tcp_packets) = (Table::new(limits), Counts::default(), 0);
    let mut exchanges = Exchanges::new(limits.max_flows, limits.idle_timeout);
    let contents = read_packets(&mut &*file, |record| {
        let at = Wall::from_unix_nanos(record.at.unwrap_or(0));
        if let Some(packet) = dissect(record.link, record.bytes, record.length) {
            exchanges.add_packet_with(at, &packet, assert_pair_invariants);
            tcp_packets += u64::from(matches!(packet.transport, Transport::Tcp { .. }));
            table.add_packet(at, &packet, &mut counts);
            assert!(table.len() <= limits.max_flows);
        }
    });
    exchanges.end(assert_pair_invariants);
    table.end(&mut counts);
    assert_eq!(counts.segments, tcp_packets);
    assert!(counts.path_samples <= counts.samples);
    assert!(contents.1 <= file.len() as u64);
    assert_eq!(
        contents,
        read_packets(&mut ShortReads(file, usize::from(cut) + 1), |_| {})
    );
});
