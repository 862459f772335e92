use neph_model::{PeerReport, ReadBy, Slot, Span};
use proptest::prelude::*;

use super::*;

/// A flow of a message each 200 ms: what happens to each on the way there and back.
#[derive(Clone, Copy, Debug)]
enum OutcomeCounts {
    /// Milliseconds there and back.
    Takes(i64, i64),
    LostThere,
    LostBack,
}

fn run(every: i64, loss_by_base: &[OutcomeCounts]) -> FlowTally {
    run_as(ProbeKind::Udp, every, loss_by_base, |_| ReadBy::Kernel)
}

/// The same of messages of this kind, whose stamps are these's by their numbers.
fn run_as(
    probe: ProbeKind,
    every: i64,
    loss_by_base: &[OutcomeCounts],
    read_by: impl Fn(usize) -> ReadBy,
) -> FlowTally {
    // The peer counts in the order of arrival.
    let mut peer_report: Vec<(i64, usize)> = loss_by_base
        .iter()
        .enumerate()
        .filter_map(|(seq, outcome_counts)| match outcome_counts {
            OutcomeCounts::Takes(there, _) => {
                Some((i64::try_from(seq).unwrap() * every + there, seq))
            }
            OutcomeCounts::LostBack => Some((i64::try_from(seq).unwrap() * every + 10, seq)),
            OutcomeCounts::LostThere => None,
        })
        .collect();
    peer_report.sort_unstable();
    let mut order = Order::default();
    for (seq, outcome_counts) in loss_by_base.iter().enumerate() {
        let sent = i64::try_from(seq).unwrap() * every;
        let outcome = match *outcome_counts {
            OutcomeCounts::LostThere | OutcomeCounts::LostBack => FleetOutcome::Lost,
            OutcomeCounts::Takes(there, back) => {
                let count = peer_report.iter().position(|(_, who)| *who == seq).unwrap();
                FleetOutcome::Reply(FleetReply {
                    round_trip: Span::from_millis(there + back),
                    read_by: read_by(seq),
                    peer_report: Some(PeerReport {
                        rx: Instant::from_nanos((sent + there) * 1_000_000),
                        residence: Span::ZERO,
                        count: Some(u32::try_from(count).unwrap()),
                        ttl: None,
                    }),
                    ttl: None,
                    copies: 0,
                    answer: None,
                })
            }
        };
        let message = FleetMessage {
            slot: Slot(0),
            source_port: 1,
            seq: u32::try_from(seq).unwrap(),
            sent: Instant::from_nanos(sent * 1_000_000),
            late: Span::ZERO,
            outcome,
        };
        order.push(&message, probe, Span::from_millis(every));
    }
    order.tally().to_tally()
}

#[test]
fn messages_that_the_peer_counted_were_lost_on_the_reverse_path() {
    use OutcomeCounts::{LostBack, LostThere, Takes};
    let ok = Takes(10, 10);
    let tally = run(200, &[LostThere, ok, LostBack, LostThere, ok, LostBack, ok]);
    assert_eq!((tally.replies, tally.lost), (3, 4));
    assert_eq!((tally.lost_forward, tally.lost_reverse), (2, 2));
}

#[test]
fn a_shorter_way_there_lets_requests_overtake() {
    let mut loss_by_base = vec![OutcomeCounts::Takes(20, 10); 5];
    loss_by_base.extend([OutcomeCounts::Takes(8, 10); 5]);
    // At 5 ms the first on the new path overtakes two, the second one of these.
    let tally = run(5, &loss_by_base);
    assert_eq!(tally.reordered_forward, 2);
    assert_eq!((tally.reordered_reverse, tally.reordered), (0, 2));
    // At 200 ms nobody meets anybody.
    assert_eq!(run(200, &loss_by_base).reordered, 0);
}

#[test]
fn a_shorter_way_back_lets_replies_overtake() {
    let mut loss_by_base = vec![OutcomeCounts::Takes(10, 20); 5];
    loss_by_base.extend([OutcomeCounts::Takes(10, 8); 5]);
    let tally = run(5, &loss_by_base);
    assert_eq!(tally.reordered_reverse, 2);
    assert_eq!((tally.reordered_forward, tally.reordered), (0, 2));
}

#[test]
fn tcp_messages_are_never_reordered_within_a_connection() {
    // Stamps of TCP's messages cross where several come in one piece.
    let mut loss_by_base = vec![OutcomeCounts::Takes(20, 10); 5];
    loss_by_base.extend([OutcomeCounts::Takes(8, 8); 5]);
    assert!(
        run(5, &loss_by_base).reordered > 0,
        "it is reported of datagrams"
    );
    let tally = run_as(ProbeKind::Tcp, 5, &loss_by_base, |_| ReadBy::Kernel);
    let replies = 10;
    assert_eq!(
        tally,
        FlowTally {
            replies,
            ..FlowTally::default()
        }
    );
}

#[test]
fn messages_without_kernel_timestamps_are_ignored_for_reordering() {
    // The program read the fifth one's reply 10 ms after it came.
    let mut loss_by_base = vec![OutcomeCounts::Takes(10, 8); 10];
    loss_by_base[4] = OutcomeCounts::Takes(10, 18);
    assert_eq!(run(5, &loss_by_base).reordered, 1);
    let by_program = |late: usize| {
        move |seq: usize| {
            if seq == late {
                ReadBy::Program
            } else {
                ReadBy::Kernel
            }
        }
    };
    let tally = run_as(ProbeKind::Udp, 5, &loss_by_base, by_program(4));
    assert_eq!((tally.replies, tally.reordered), (10, 0));
    // Those around it are compared with each other as before.
    let mut loss_by_base = vec![OutcomeCounts::Takes(20, 10); 5];
    loss_by_base.extend([OutcomeCounts::Takes(8, 10); 5]);
    let tally = run_as(ProbeKind::Udp, 5, &loss_by_base, by_program(0));
    assert_eq!(tally.reordered_forward, 2);
}

#[test]
fn a_longer_way_reorders_nothing() {
    let mut loss_by_base = vec![OutcomeCounts::Takes(8, 8); 5];
    loss_by_base.extend([OutcomeCounts::Takes(30, 30); 5]);
    let tally = run(5, &loss_by_base);
    assert_eq!(
        tally,
        FlowTally {
            replies: 10,
            ..FlowTally::default()
        }
    );
}

/// What happens to a message that is lost, or doubled, on one of the two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Single,
    DoubledThere,
    DoubledBack,
    LostThere,
    LostBack,
}

/// What is reported about a flow whose peer counts each request that arrives, doubled ones twice.
fn to_tally(ways: &[Way]) -> FlowTally {
    let (mut order, mut count) = (Order::default(), 0);
    for (seq, way) in (0..).zip(ways) {
        let own = count;
        count += match way {
            Way::Single | Way::DoubledBack | Way::LostBack => 1,
            Way::DoubledThere => 2,
            Way::LostThere => 0,
        };
        let sent = i64::from(seq) * 200_000_000;
        let mut message = crate::world::message(0, seq, sent, 10_000_000);
        if let FleetOutcome::Reply(reply) = &mut message.outcome
            && let Some(peer) = &mut reply.peer_report
        {
            peer.count = Some(own);
            reply.copies = u8::from(matches!(way, Way::DoubledThere | Way::DoubledBack));
        }
        if matches!(way, Way::LostThere | Way::LostBack) {
            message.outcome = FleetOutcome::Lost;
        }
        order.push(&message, ProbeKind::Udp, Span::from_millis(200));
    }
    order.tally().to_tally()
}

#[test]
fn the_last_replys_copies_raise_the_next_count() {
    use Way::{DoubledThere, LostBack, LostThere, Single};
    // Either the request was doubled and the next one lost there, or the reply was doubled and
    // the next one's reply lost: the count is the same.
    let tally = to_tally(&[Single, DoubledThere, LostThere, Single]);
    assert_eq!((tally.lost_forward, tally.lost_reverse), (0, 0));
    let tally = to_tally(&[Single, DoubledThere, LostBack, Single]);
    assert_eq!((tally.lost_forward, tally.lost_reverse), (0, 1));
    // Of its own copy a reply's count tells nothing.
    let tally = to_tally(&[Single, LostBack, DoubledThere]);
    assert_eq!((tally.lost_forward, tally.lost_reverse), (0, 1));
}

proptest! {
    #[test]
    fn with_loss_and_doubling_no_loss_gets_the_wrong_direction(
        ways in prop::collection::vec(prop::sample::select(vec![
            Way::Single, Way::DoubledThere, Way::DoubledBack, Way::LostThere, Way::LostBack,
        ]), 1..60)
    ) {
        let mut ways = ways;
        ways.push(Way::Single);
        let count = |wanted: Way| ways.iter().map(|way| u64::from(*way == wanted)).sum::<u64>();
        let tally = to_tally(&ways);
        prop_assert_eq!(tally.lost, count(Way::LostThere) + count(Way::LostBack));
        prop_assert!(tally.lost_forward <= count(Way::LostThere));
        prop_assert!(tally.lost_reverse <= count(Way::LostBack));
        // Each copy leaves one loss undivided at most.
        let known = tally.lost_forward + tally.lost_reverse;
        prop_assert!(tally.lost - known <= tally.copies);
    }
}

proptest! {
    #[test]
    fn without_reordering_each_loss_before_a_reply_gets_its_direction(
        choices in prop::collection::vec(0..3_u8, 1..60)
    ) {
        let mut loss_by_base: Vec<OutcomeCounts> = choices.iter().map(|choice| match choice {
            0 => OutcomeCounts::Takes(10, 10),
            1 => OutcomeCounts::LostThere,
            _ => OutcomeCounts::LostBack,
        }).collect();
        loss_by_base.push(OutcomeCounts::Takes(10, 10));
        let count = |wanted: u8| {
            choices.iter().map(|choice| u64::from(*choice == wanted)).sum::<u64>()
        };
        let tally = run(200, &loss_by_base);
        prop_assert_eq!(tally.lost_forward, count(1));
        prop_assert_eq!(tally.lost_reverse, count(2));
        prop_assert_eq!(tally.reordered, 0);
    }
}
