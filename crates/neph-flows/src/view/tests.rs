//! Late replies in a view of all flows.

use neph_model::FleetOutcome;

use super::*;
use crate::digest::Digest;
use crate::world::{World, message};

const SECOND: i64 = 1_000_000_000;

/// The peer counts both of the first flow's requests that are lost; one of the second's never came.
#[test]
fn a_message_with_a_late_reply_is_lost_in_neither_direction() {
    let fleet = World {
        slots: 2,
        ..World::default()
    }
    .fleet();
    let lost_counts = |late| {
        let mut digest = Digest::new(&fleet, Settings::default()).unwrap();
        for (slot, seq, count) in [(0, 0, 0), (1, 0, 0), (0, 3, 3), (1, 2, 1)] {
            for lost_seq in 1..if seq > 0 { seq } else { 0 } {
                let mut message = message(slot, lost_seq, i64::from(lost_seq) * SECOND, 0);
                message.outcome = FleetOutcome::Lost;
                digest.push(&message);
            }
            let mut message = message(slot, seq, i64::from(seq) * SECOND, 70_000_000);
            let FleetOutcome::Reply(reply) = &mut message.outcome else {
                panic!("a reply");
            };
            reply.peer_report.as_mut().unwrap().count = Some(count);
            digest.push(&message);
        }
        let mut view = digest.view();
        view.record_late_replies(late);
        let tally = view.tally;
        assert_eq!((tally, tally.lost), (view.pairs[0].tally, 3));
        let flow_lost_reverse = view.flows[0].tally.lost_reverse;
        (
            tally.lost_forward,
            tally.lost_reverse,
            flow_lost_reverse,
            view.pairs[0].late,
        )
    };
    assert_eq!(lost_counts(0), (1, 2, 2, Some(0)));
    assert_eq!(lost_counts(1), (1, 1, 1, Some(1)));
    assert_eq!(
        lost_counts(3),
        (1, 0, 0, Some(3)),
        "one after the last reply too"
    );
}
