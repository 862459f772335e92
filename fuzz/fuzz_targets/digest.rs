//! What is made of a fleet's messages, whatever a peer told in them, as far as a session lets it
//! through: nothing is counted twice, segments follow one another, shares are shares.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_flows::{Digest, Dissector, FleetView, Settings, add_advice};
use neph_model::{
    Fleet, FleetEndpoint, FleetMessage, FleetOutcome, FleetReply, Instant, PeerReport, ProbeKind,
    ReadBy, Slot, Span,
};

const SLOTS: u32 = 6;
const INTERVAL: i64 = 200_000_000;
/// A day, and some ten years.
const MAX_SPAN: i64 = 86_400 * 1_000_000_000;
const MAX_TIME: i64 = MAX_SPAN * 3_650;

fuzz_target!(|bytes: &[u8]| {
    let mut digest = Digest::new(&fleet(), Settings::default()).expect("its numbers fit");
    let messages = messages(bytes);
    for message in &messages {
        digest.push(message);
    }
    digest.finish();
    let known_messages = messages
        .iter()
        .filter(|message| message.slot.0 < SLOTS)
        .count();
    let changes = digest.changes();
    let mut view = digest.view();
    assert_eq!(view.tally.messages(), known_messages as u64);
    assert_eq!(view.changes.len(), changes);
    assert_view_invariants(&view);
    add_advice(&mut view);
    let mut dissector = Dissector::new(&view, 3);
    messages.iter().for_each(|message| dissector.push(message));
    dissector.finish();
});

fn fleet() -> Fleet {
    let endpoint = |last_octet| FleetEndpoint {
        name: format!("e{last_octet}"),
        address: ([192, 0, 2, last_octet], 862).into(),
    };
    Fleet {
        probe: ProbeKind::Udp,
        slots: SLOTS,
        endpoints: vec![endpoint(1), endpoint(2)],
        interval: Span::from_nanos(INTERVAL),
        lifetime: None,
        criteria: None,
    }
}

fn assert_view_invariants(view: &FleetView) {
    assert!(view.changes.is_sorted_by_key(|change| change.at));
    for flow in &view.flows {
        assert!(
            flow.segments
                .windows(2)
                .all(|pair| pair[0].until == pair[1].from),
            "{flow:?}"
        );
    }
    for class in view.classes.iter().flatten() {
        assert!((0.0..=1.000_001).contains(&class.share), "{class:?}");
        assert!(
            class.range.0 <= class.base && class.base <= class.range.1,
            "{class:?}"
        );
    }
    for bin in view.latency_bins.iter().flatten() {
        assert!(bin.latency.is_sorted(), "{bin:?}");
    }
    for spectrum in &view.spectra {
        assert!(
            spectrum.step > Span::ZERO && spectrum.row > Span::ZERO,
            "{spectrum:?}"
        );
    }
}

/// A message for every four bytes, and for the bytes that its flags ask for.
fn messages(bytes: &[u8]) -> Vec<FleetMessage> {
    let mut input = bytes.iter().copied();
    let mut next = || input.next();
    let (mut sent_at, mut messages) = (0_i64, Vec::new());
    let mut numbers = [0_u32; SLOTS as usize + 1];
    while let (Some(slot_byte), Some(flags), Some(path_byte), Some(noise_byte)) =
        (next(), next(), next(), next())
    {
        let mut arbitrary = || {
            let mut bytes = [0; 8];
            bytes
                .iter_mut()
                .for_each(|byte| *byte = next().unwrap_or(0));
            i64::from_le_bytes(bytes)
        };
        let number = &mut numbers[usize::from(slot_byte) % numbers.len()];
        // Usually one interval after the one before, rarely much later; no clock runs backwards.
        sent_at = match flags & 7 {
            0 => sent_at.saturating_add(INTERVAL * 600),
            1 if flags & 0x80 != 0 => sent_at.max(arbitrary() % MAX_TIME),
            _ => sent_at.saturating_add(INTERVAL / i64::from(SLOTS)),
        };
        // A session tells no round trip beyond its timeout, and no stay at the peer beyond that.
        let round_trip = match path_byte {
            255 => arbitrary().rem_euclid(MAX_SPAN),
            _ => 10_000_000 + i64::from(path_byte & 7) * 4_000_000 + i64::from(noise_byte) * 1_000,
        };
        let (residence, rx) = match flags >> 3 & 7 {
            0 if noise_byte & 1 == 0 => (arbitrary().rem_euclid(round_trip + 1), arbitrary()),
            _ => (
                1_000.min(round_trip),
                sent_at.saturating_add(round_trip / 2),
            ),
        };
        let outcome = match path_byte >> 3 & 15 {
            0 => FleetOutcome::Lost,
            1 => FleetOutcome::Failed,
            _ => FleetOutcome::Reply(FleetReply {
                round_trip: Span::from_nanos(round_trip),
                read_by: ReadBy::Kernel,
                peer_report: (flags & 0x40 == 0).then_some(PeerReport {
                    rx: Instant::from_nanos(rx),
                    residence: Span::from_nanos(residence),
                    count: (noise_byte & 2 == 0).then_some(*number),
                    ttl: Some(path_byte & 7),
                }),
                ttl: Some(64),
                copies: noise_byte & 1,
                answer: None,
            }),
        };
        let slot = u32::from(slot_byte) % (SLOTS + 1);
        // Now and then a slot's next flow begins.
        if slot_byte >= 0xf0 {
            *number = 0;
        }
        messages.push(FleetMessage {
            slot: Slot(slot),
            source_port: 1_000 + u16::from(slot_byte >> 4) / 15 * 7 + slot as u16,
            seq: *number,
            sent: Instant::from_nanos(sent_at),
            late: Span::ZERO,
            outcome,
        });
        *number = number.wrapping_add(1 + u32::from(flags == 0xff));
    }
    messages
}
