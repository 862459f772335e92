//! Limits of the memory for changes and ended flows, and of times.

use super::*;
use crate::view::Segment;
use neph_model::{FleetOutcome, Instant, PeerReport};

/// The latest changes, and a flow's history since all of its changes are known.
#[test]
fn beyond_the_maximum_only_the_latest_changes_are_reported() {
    let world = World::default();
    let complete = world.digest().0.view();
    let truth = world.truth();
    let mut digest = Digest::new(&world.fleet(), Settings::default()).unwrap();
    digest.changes = PathChangeHistory::new(100);
    world.messages(&truth, |message| digest.push(message));
    digest.finish();
    assert_eq!(digest.changes(), complete.changes.len());
    let view = digest.view();
    let complete_since = view.pairs[0].forgotten.expect("there were more");
    let expected = complete
        .changes
        .iter()
        .filter(|change| change.at > complete_since);
    assert!(view.changes.iter().eq(expected));
    assert!((50..=100).contains(&view.changes.len()));
    let mut changes = 0;
    for (flow, complete_flow) in view.flows.iter().zip(&complete.flows) {
        let recent = complete_flow.segments.iter();
        let recent = recent.filter(|segment| segment.until > complete_since);
        let clipped = recent.map(|segment| Segment {
            from: segment.from.max(complete_since),
            ..*segment
        });
        assert!(flow.segments.iter().copied().eq(clipped), "{flow:?}");
        changes += flow.segments.len() - 1;
    }
    assert_eq!(changes, view.changes.len());
    assert_eq!(view.pairs[0].tally, complete.tally);
    assert!(complete.pairs[0].forgotten.is_none());
    // No changes that are known is not no changes.
    for (bin, complete_bin) in view.latency_bins[0].iter().zip(&complete.latency_bins[0]) {
        let expected_changes = (bin.from > complete_since).then_some(complete_bin.changes);
        assert_eq!(bin.changes, expected_changes.flatten());
        assert_eq!(bin.base.is_some(), bin.from > complete_since);
    }
}

#[test]
fn beyond_the_maximum_only_the_latest_ended_flows_are_reported() {
    let world = World::default();
    let mut digest = Digest::new(&world.fleet(), Settings::default()).unwrap();
    digest.flows.max_finished = 100;
    for second in 0..40 {
        for slot in 0..64 {
            let seq = u32::try_from(second % 5).unwrap();
            let mut message = message(slot, seq, second * SECOND, 70_000_000);
            message.source_port += u16::try_from(second / 5 * 100).unwrap();
            digest.push(&message);
        }
    }
    digest.finish();
    let view = digest.view();
    // Of each slot the flow that goes on, and the one before it, which may still be spoken of.
    assert_eq!(view.flows.len(), 100 + 2 * 64);
    assert_eq!(view.pairs[0].tally.replies, 64 * 40);
    let complete_since = view.pairs[0].forgotten.expect("there were more");
    let segments = || view.flows.iter().flat_map(|flow| &flow.segments);
    assert!(segments().count() > 100);
    assert!(
        segments().all(|segment| segment.from >= complete_since && segment.until > complete_since)
    );
}

#[test]
fn replacing_the_first_flow_of_a_slot_discards_no_history() {
    let mut digest = Digest::new(&World::default().fleet(), Settings::default()).unwrap();
    digest.flows.max_finished = 2;
    let mut push_flow = |slot: u32, number: u16| {
        let mut message = message(slot, 0, i64::from(number) * SECOND, 70_000_000);
        message.source_port += number * 100;
        digest.push(&message);
    };
    // Slot 0 fills the room for flows that are over: those that may still be spoken of are not among
    // them.
    (0..6).for_each(|number| push_flow(0, number));
    (0..2).for_each(|number| push_flow(1, 6 + number));
    digest.finish();
    let view = digest.view();
    assert_eq!((view.flows.len(), view.pairs[0].forgotten), (8, None));
}

/// Found by fuzzing: differences of such times are beyond 64 bits.
#[test]
fn an_absurd_peer_clock_does_not_affect_the_changes() {
    let world = World::default();
    let truth = world.truth();
    let changes_with = |has_absurd_clock: bool| {
        let mut digest = Digest::new(&world.fleet(), Settings::default()).unwrap();
        world.messages(&truth, |message| {
            let mut message = *message;
            if has_absurd_clock && let FleetOutcome::Reply(reply) = &mut message.outcome {
                let peer_nanos = [i64::MIN, i64::MAX][message.seq as usize % 2];
                let rx = Instant::from_nanos(peer_nanos);
                reply.peer_report = reply.peer_report.map(|peer| PeerReport { rx, ..peer });
            }
            digest.push(&message);
        });
        digest.finish();
        let changes = digest.view().changes.into_iter();
        changes
            .map(|change| (change.slot, change.at, change.before, change.after))
            .collect::<Vec<_>>()
    };
    let expected = changes_with(false);
    assert!(!expected.is_empty());
    assert_eq!(changes_with(true), expected);
}
