//! What reading a capture costs, step by step: `passive FILE.pcap
//! [records|headers|flows|periods]`; periods as `neph watch` has them, of a second each.

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;

use neph_capture::{
    Event, FlowName, Half, Limits, Listener, Method, Sample, Side, Table, read_capture,
};
use neph_model::Wall;
use neph_wire::dissect::{Transport, dissect, plain};

/// In nanoseconds.
const SECOND: i64 = 1_000_000_000;

#[derive(Default)]
struct Counts {
    samples: [u64; 2],
    events: u64,
}

impl Listener for Counts {
    fn sample(&mut self, _: &FlowName, sample: &Sample) {
        self.samples[usize::from(sample.method == Method::Echo)] += 1;
    }
    fn event(&mut self, _: &FlowName, _: Wall, _: Side, _: Event) {
        self.events += 1;
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, step) = match &arguments[..] {
        [path] => (path, "flows"),
        [path, step] => (path, step.as_str()),
        _ => {
            return Err(io::Error::other(
                "passive FILE.pcap [records|headers|flows|periods]",
            ));
        }
    };
    let (mut table, mut counts) = (Table::new(Limits::default()), Counts::default());
    let (mut bytes, mut segments, mut max_flows) = (0, 0, 0);
    let mut due = 0;
    let summary = read_capture(&mut File::open(path)?, |record| {
        bytes += u64::from(record.length);
        if step == "records" {
            return ControlFlow::Continue(());
        }
        if step == "flows"
            && let Some(read) = plain(record.link, record.bytes)
        {
            segments += 1;
            let at = Wall::from_unix_nanos(record.at.unwrap_or(0));
            table.add_segment(at, &read, &mut counts);
            return ControlFlow::Continue(());
        }
        let packet = dissect(record.link, record.bytes, record.length);
        // Where it lies: it is large.
        let Some(packet) = &packet else {
            return ControlFlow::Continue(());
        };
        segments += u64::from(matches!(packet.transport, Transport::Tcp { .. }));
        if step == "flows" || step == "periods" {
            let nanos = record.at.unwrap_or(0);
            let at = Wall::from_unix_nanos(nanos);
            if step == "periods" && nanos >= due {
                table.flush(&mut counts);
                let totals = table.end_period(|_, recent| {
                    let round_trips = recent.round_trips(Half::Server);
                    std::hint::black_box(round_trips.path_quantiles(Method::Acknowledgement));
                });
                std::hint::black_box(totals);
                due = nanos + SECOND;
            }
            table.add_packet(at, packet, &mut counts);
            max_flows = max_flows.max(table.len());
        }
        ControlFlow::Continue(())
    });
    let memory = table.memory_bytes();
    table.end(&mut counts);
    writeln!(
        io::stdout(),
        "{} packets, {bytes} bytes, {segments} segments, {:?}; {max_flows} flows in {memory} bytes; samples {:?}, events {}",
        summary.packets,
        summary.ending,
        counts.samples,
        counts.events
    )
}
