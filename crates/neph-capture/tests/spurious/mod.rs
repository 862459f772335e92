//! Retransmissions that neph calls spurious, beside what the simulation knows of each: whether what was sent first
//! arrived.

use std::collections::BTreeMap;

use neph_capture::{Event, Flow, FlowName, Limits, Listener, Sample, Side, Table};
use neph_model::Wall;
use neph_wire::dissect::{Link, Transport, dissect};

use super::traffic::{TrafficSpec, traffic};

/// Of each flow and side: packets that were sent again for nothing, of all that were sent again.
type Counts = BTreeMap<(u16, u16, usize), (u64, u64)>;

#[derive(Default)]
struct SpuriousCounts {
    counts: Counts,
    found_later: u64,
}

impl Listener for SpuriousCounts {
    fn sample(&mut self, _: &FlowName, _: &Sample) {}

    fn found_spurious(&mut self, _: &FlowName, _: Wall, _: Side, previous: Event) {
        assert!(matches!(
            previous,
            Event::Retransmission | Event::FastRetransmission
        ));
        self.found_later += 1;
    }

    fn ended(&mut self, flow: &Flow) {
        let ports = (flow.name().client().port(), flow.name().server().port());
        for side in [Side::Client, Side::Server] {
            let sent = flow.sent(side);
            let counters = self
                .counts
                .entry((ports.0, ports.1, side as usize))
                .or_default();
            counters.0 += u64::from(sent.spurious());
            counters.1 += u64::from(sent.retransmitted_segments());
        }
    }
}

#[test]
fn spurious_retransmissions_are_true_positives_and_mostly_detected() {
    let mut truth = Counts::new();
    let (mut table, mut ours) = (Table::new(Limits::default()), SpuriousCounts::default());
    let spec = TrafficSpec {
        flows: 1_000,
        requests: 6,
        spacing_nanos: 20_000_000,
        seed: 7,
        is_clean: false,
    };
    traffic(spec, |captured| {
        let length = u32::try_from(captured.length).expect("short");
        let Some(packet) = dissect(Link::Ethernet, &captured.bytes, length) else {
            return;
        };
        if let Transport::Tcp {
            header,
            payload_len,
        } = &packet.transport
        {
            let ports = [header.source, header.destination];
            let from = captured.truth.from;
            let truth_counts = truth
                .entry((ports[from], ports[1 - from], from))
                .or_default();
            // A single byte may be a probe, which is not taken although it arrives.
            let is_probe = *payload_len == 1;
            truth_counts.0 += u64::from(captured.truth.is_spurious && !is_probe);
            truth_counts.1 += u64::from(captured.truth.is_repeated);
        }
        table.add_packet(
            Wall::from_unix_nanos(captured.at.cast_signed()),
            &packet,
            &mut ours,
        );
    });
    table.end(&mut ours);
    let (mut reported, mut correct, mut total, mut retransmissions) = (0, 0, 0, 0);
    for (key, (spurious, retransmitted_segments)) in &truth {
        let (ours, _) = ours.counts.get(key).copied().unwrap_or_default();
        reported += ours;
        correct += ours.min(*spurious);
        total += spurious;
        retransmissions += retransmitted_segments;
    }
    let reported_later = ours.found_later;
    println!(
        "{retransmissions} retransmissions, {total} spurious; {reported} called so, {reported_later} of them later, {correct} rightly"
    );
    assert!(reported_later > 20);
    assert!(correct * 1_000 >= reported * 995, "{correct} of {reported}");
    assert!(correct * 10 >= total * 9, "{correct} of {total}");
}
