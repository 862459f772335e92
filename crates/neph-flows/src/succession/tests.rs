use neph_model::{Fleet, Span};

use super::*;
use crate::digest::{Digest, PathEvent};
use crate::settings::Settings;
use crate::view::FleetView;
use crate::world::{World, message};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;
const SLOTS: u32 = 20;
/// Time between two messages of a flow.
const INTERVAL: i64 = 50 * MS;

/// What a slot's flow of this number has as its base at its message of this number, nanoseconds.
type Base = fn(u32, i64, i64) -> i64;

/// Flows of so many messages each, one slot's ends after the other's as they do where flows are
/// replaced, for `rounds` messages of each slot.
fn run_with_replacements(messages: i64, rounds: i64, base: Base) -> FleetView {
    let fleet = Fleet {
        slots: SLOTS,
        interval: Span::from_nanos(INTERVAL),
        lifetime: Some(Span::from_nanos(messages * INTERVAL)),
        ..World::default().fleet()
    };
    let mut digest = Digest::new(&fleet, Settings::default()).unwrap();
    for round in 0..rounds {
        for slot in 0..SLOTS {
            let messages_before = round + messages * i64::from(slot) / i64::from(SLOTS);
            let (flow, seq) = (messages_before / messages, messages_before % messages);
            let sent = round * INTERVAL + INTERVAL * i64::from(slot) / i64::from(SLOTS);
            let round_trip = base(slot, flow, seq) + (7 * round + 3 * i64::from(slot)) % 11 * 1000;
            let mut message = message(slot, u32::try_from(seq).unwrap(), sent, round_trip);
            message.source_port += u16::try_from(flow).unwrap() * 100;
            digest.push(&message);
        }
    }
    digest.finish();
    digest.view()
}

/// The detector speaks 2 s late: of flows that were followed by one, two or ten others.
#[test]
fn short_lived_flows_on_stable_paths_report_no_changes() {
    let one_path: Base = |_, _, _| 12 * MS;
    let several_paths: Base = |slot, flow, _| (12 + 2 * ((i64::from(slot) + flow) % 4)) * MS;
    for messages in [4, 10, 20, 40, 60, 100] {
        for base in [one_path, several_paths] {
            let view = run_with_replacements(messages, 400, base);
            assert_eq!(view.changes, [], "{messages}");
            let rate = view.pairs[0].changes_per_flow_hour();
            let expected = (messages >= 24).then_some(0.0);
            assert_eq!(rate, expected, "{messages}");
            for flow in &view.flows {
                let number = (u32::from(flow.source_port) - 1024) / 100;
                let expected = base(flow.slot.0, number.into(), 0);
                let base_nanos = |segment: &crate::view::Segment| segment.base.nanos();
                // What all flows drift by is an estimate: it may be below by as little.
                let is_expected =
                    |base: i64| (expected - MS / 1000..expected + MS / 10).contains(&base);
                assert!(flow.segments.len() <= 1, "{messages}: {flow:?}");
                assert!(
                    flow.segments.iter().map(base_nanos).all(is_expected),
                    "{flow:?}"
                );
                // A flow that was begun before the measurement, or ends after it, is too short.
                let is_whole = flow.tally.messages() >= 4;
                assert_eq!(flow.segments.len(), usize::from(is_whole), "{flow:?}");
            }
        }
    }
}

/// The third flow that a slot begins moves with its 20th message.
#[test]
fn a_step_of_a_short_lived_flow_is_attributed_to_that_flow() {
    const STEP: i64 = 20;
    let base: Base = |slot, flow, seq| {
        let path_steps = i64::from(flow == 3 && seq >= STEP);
        (12 + 2 * ((i64::from(slot) + flow + path_steps) % 4)) * MS
    };
    for messages in [26, 40, 60] {
        let view = run_with_replacements(messages, 400, base);
        assert_eq!(view.changes.len(), SLOTS as usize, "{messages}");
        for change in &view.changes {
            let slot = change.slot.0;
            let round = 3 * messages + STEP - messages * i64::from(slot) / i64::from(SLOTS);
            let at = round * INTERVAL + INTERVAL * i64::from(slot) / i64::from(SLOTS);
            let port = crate::world::port(slot) + 300;
            assert_eq!((change.source_port, change.at.nanos()), (port, at));
            let is_near = |span: Span, expected: i64| (span.nanos() - expected).abs() < MS / 10;
            assert!(is_near(change.before, base(slot, 3, 0)), "{change:?}");
            assert!(is_near(change.after, base(slot, 3, STEP)), "{change:?}");
        }
        let rate = view.pairs[0].changes_per_flow_hour();
        assert!(rate.is_some_and(|rate| rate > 0.0), "{rate:?}");
    }
}

/// All began in a queue that ends after 10 s: a change between levels in it was none, although the
/// flow that made it was followed by two others since.
#[test]
fn false_changes_of_ended_flows_are_withdrawn() {
    let fleet = World::default().fleet();
    let mut digest = Digest::new(&fleet, Settings::default()).unwrap();
    let mut changes_in_queue = 0;
    for round in 0..75 {
        let at = round * SECOND / 5;
        let queue = if at < 10 * SECOND { 5 * MS } else { 0 };
        for slot in 0..64 {
            let has_moved = slot % 8 == 0 && at >= 4 * SECOND;
            let path = 70 + 4 * (i64::from(slot) % 4 + i64::from(has_moved));
            let sent = at + i64::from(slot) * MS;
            let mut message = message(slot, 0, sent, path * MS + queue);
            let replacement_times = [6 * SECOND, 84 * SECOND / 10];
            let nth = replacement_times
                .iter()
                .filter(|begin| at >= **begin)
                .count();
            message.source_port += 100 * u16::try_from(nth).unwrap();
            digest.push(&message);
        }
        if queue > 0 {
            changes_in_queue = digest.changes();
        }
    }
    digest.finish();
    assert_eq!((changes_in_queue, digest.changes()), (8, 0));
    let events: Vec<_> = digest.events().collect();
    let is_withdrawn = |event: &&PathEvent| matches!(event, PathEvent::Withdrawn(change) if change.slot.0 % 8 == 0);
    assert_eq!(events.iter().filter(is_withdrawn).count(), 8);
    for flow in digest.view().flows {
        let min_segments = usize::from(flow.source_port < 1124);
        assert!(
            flow.segments.len() >= min_segments && flow.segments.len() <= 1,
            "{flow:?}"
        );
    }
}

/// The detector's part is `neph-stats`' own, that of the bins a few bytes for each reply in one.
#[test]
fn a_flow_takes_at_most_216_bytes() {
    let bytes = std::mem::size_of::<Option<Flow>>();
    assert!(bytes <= 216, "{bytes}");
}
