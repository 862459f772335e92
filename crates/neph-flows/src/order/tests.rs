use neph_model::{PeerReport, ReadBy, Slot, Span};
use proptest::prelude::*;

use super::*;

/// A flow of a message each 200 ms: what happens to each on the way there and back.
#[derive(Clone, Copy, Debug)]
enum MessagePath {
    /// Milliseconds there and back.
    Takes(i64, i64),
    LostForward,
    LostReverse,
}

fn run(interval_millis: i64, message_paths: &[MessagePath]) -> FlowTally {
    run_as(ProbeKind::Udp, interval_millis, message_paths, |_| {
        ReadBy::Kernel
    })
}

/// The same of messages of this kind, whose stamps are these's by their numbers.
fn run_as(
    probe: ProbeKind,
    interval_millis: i64,
    message_paths: &[MessagePath],
    read_by: impl Fn(usize) -> ReadBy,
) -> FlowTally {
    // The peer counts in the order of arrival.
    let mut arrivals: Vec<(i64, usize)> = message_paths
        .iter()
        .enumerate()
        .filter_map(|(seq, message_path)| match message_path {
            MessagePath::Takes(forward, _) => {
                Some((i64::try_from(seq).unwrap() * interval_millis + forward, seq))
            }
            MessagePath::LostReverse => {
                Some((i64::try_from(seq).unwrap() * interval_millis + 10, seq))
            }
            MessagePath::LostForward => None,
        })
        .collect();
    arrivals.sort_unstable();
    let mut order = Order::default();
    for (seq, message_path) in message_paths.iter().enumerate() {
        let sent = i64::try_from(seq).unwrap() * interval_millis;
        let outcome = match *message_path {
            MessagePath::LostForward | MessagePath::LostReverse => FleetOutcome::Lost,
            MessagePath::Takes(forward, reverse) => {
                let count = arrivals
                    .iter()
                    .position(|(_, other_seq)| *other_seq == seq)
                    .unwrap();
                FleetOutcome::Reply(FleetReply {
                    round_trip: Span::from_millis(forward + reverse),
                    read_by: read_by(seq),
                    peer_report: Some(PeerReport {
                        rx: Instant::from_nanos((sent + forward) * 1_000_000),
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
        order.push(&message, probe, Span::from_millis(interval_millis));
    }
    order.tally().to_tally()
}

#[test]
fn messages_that_the_peer_counted_were_lost_on_the_reverse_path() {
    use MessagePath::{LostForward, LostReverse, Takes};
    let delivered = Takes(10, 10);
    let tally = run(
        200,
        &[
            LostForward,
            delivered,
            LostReverse,
            LostForward,
            delivered,
            LostReverse,
            delivered,
        ],
    );
    assert_eq!((tally.replies, tally.lost), (3, 4));
    assert_eq!((tally.lost_forward, tally.lost_reverse), (2, 2));
}

#[test]
fn a_shorter_forward_path_reorders_requests() {
    let mut message_paths = vec![MessagePath::Takes(20, 10); 5];
    message_paths.extend([MessagePath::Takes(8, 10); 5]);
    // At 5 ms the first on the new path overtakes two, the second one of these.
    let tally = run(5, &message_paths);
    assert_eq!(tally.reordered_forward, 2);
    assert_eq!((tally.reordered_reverse, tally.reordered), (0, 2));
    // At 200 ms nobody meets anybody.
    assert_eq!(run(200, &message_paths).reordered, 0);
}

#[test]
fn a_shorter_reverse_path_reorders_replies() {
    let mut message_paths = vec![MessagePath::Takes(10, 20); 5];
    message_paths.extend([MessagePath::Takes(10, 8); 5]);
    let tally = run(5, &message_paths);
    assert_eq!(tally.reordered_reverse, 2);
    assert_eq!((tally.reordered_forward, tally.reordered), (0, 2));
}

#[test]
fn tcp_messages_are_never_reordered_within_a_connection() {
    // Stamps of TCP's messages cross where several come in one piece.
    let mut message_paths = vec![MessagePath::Takes(20, 10); 5];
    message_paths.extend([MessagePath::Takes(8, 8); 5]);
    assert!(
        run(5, &message_paths).reordered > 0,
        "it is reported of datagrams"
    );
    let tally = run_as(ProbeKind::Tcp, 5, &message_paths, |_| ReadBy::Kernel);
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
    let mut message_paths = vec![MessagePath::Takes(10, 8); 10];
    message_paths[4] = MessagePath::Takes(10, 18);
    assert_eq!(run(5, &message_paths).reordered, 1);
    let by_program = |late_seq: usize| {
        move |seq: usize| {
            if seq == late_seq {
                ReadBy::Program
            } else {
                ReadBy::Kernel
            }
        }
    };
    let tally = run_as(ProbeKind::Udp, 5, &message_paths, by_program(4));
    assert_eq!((tally.replies, tally.reordered), (10, 0));
    // Those around it are compared with each other as before.
    let mut message_paths = vec![MessagePath::Takes(20, 10); 5];
    message_paths.extend([MessagePath::Takes(8, 10); 5]);
    let tally = run_as(ProbeKind::Udp, 5, &message_paths, by_program(0));
    assert_eq!(tally.reordered_forward, 2);
}

#[test]
fn a_longer_path_reorders_nothing() {
    let mut message_paths = vec![MessagePath::Takes(8, 8); 5];
    message_paths.extend([MessagePath::Takes(30, 30); 5]);
    let tally = run(5, &message_paths);
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
enum Transmission {
    Single,
    DuplicatedForward,
    DuplicatedReverse,
    LostForward,
    LostReverse,
}

/// What is reported about a flow whose peer counts each request that arrives, doubled ones twice.
fn tally_of(transmissions: &[Transmission]) -> FlowTally {
    let (mut order, mut count) = (Order::default(), 0);
    for (seq, transmission) in (0..).zip(transmissions) {
        let request_count = count;
        count += match transmission {
            Transmission::Single | Transmission::DuplicatedReverse | Transmission::LostReverse => 1,
            Transmission::DuplicatedForward => 2,
            Transmission::LostForward => 0,
        };
        let sent = i64::from(seq) * 200_000_000;
        let mut message = crate::world::message(0, seq, sent, 10_000_000);
        if let FleetOutcome::Reply(reply) = &mut message.outcome
            && let Some(peer) = &mut reply.peer_report
        {
            peer.count = Some(request_count);
            reply.copies = u8::from(matches!(
                transmission,
                Transmission::DuplicatedForward | Transmission::DuplicatedReverse
            ));
        }
        if matches!(
            transmission,
            Transmission::LostForward | Transmission::LostReverse
        ) {
            message.outcome = FleetOutcome::Lost;
        }
        order.push(&message, ProbeKind::Udp, Span::from_millis(200));
    }
    order.tally().to_tally()
}

#[test]
fn duplicates_of_the_last_reply_increase_the_next_count() {
    use Transmission::{DuplicatedForward, LostForward, LostReverse, Single};
    // Either the request was doubled and the next one lost there, or the reply was doubled and
    // the next one's reply lost: the count is the same.
    let tally = tally_of(&[Single, DuplicatedForward, LostForward, Single]);
    assert_eq!((tally.lost_forward, tally.lost_reverse), (0, 0));
    let tally = tally_of(&[Single, DuplicatedForward, LostReverse, Single]);
    assert_eq!((tally.lost_forward, tally.lost_reverse), (0, 1));
    // Of its own copy a reply's count tells nothing.
    let tally = tally_of(&[Single, LostReverse, DuplicatedForward]);
    assert_eq!((tally.lost_forward, tally.lost_reverse), (0, 1));
}

proptest! {
    #[test]
    fn with_loss_and_duplicates_no_loss_gets_the_wrong_direction(
        transmissions in prop::collection::vec(prop::sample::select(vec![
            Transmission::Single, Transmission::DuplicatedForward, Transmission::DuplicatedReverse, Transmission::LostForward, Transmission::LostReverse,
        ]), 1..60)
    ) {
        let mut transmissions = transmissions;
        transmissions.push(Transmission::Single);
        let count = |wanted: Transmission| transmissions.iter().map(|transmission| u64::from(*transmission == wanted)).sum::<u64>();
        let tally = tally_of(&transmissions);
        prop_assert_eq!(tally.lost, count(Transmission::LostForward) + count(Transmission::LostReverse));
        prop_assert!(tally.lost_forward <= count(Transmission::LostForward));
        prop_assert!(tally.lost_reverse <= count(Transmission::LostReverse));
        // Each copy leaves one loss undivided at most.
        let directed_losses = tally.lost_forward + tally.lost_reverse;
        prop_assert!(tally.lost - directed_losses <= tally.copies);
    }
}

proptest! {
    #[test]
    fn without_reordering_each_loss_before_a_reply_gets_its_direction(
        choices in prop::collection::vec(0..3_u8, 1..60)
    ) {
        let mut message_paths: Vec<MessagePath> = choices.iter().map(|choice| match choice {
            0 => MessagePath::Takes(10, 10),
            1 => MessagePath::LostForward,
            _ => MessagePath::LostReverse,
        }).collect();
        message_paths.push(MessagePath::Takes(10, 10));
        let count = |wanted: u8| {
            choices.iter().map(|choice| u64::from(*choice == wanted)).sum::<u64>()
        };
        let tally = run(200, &message_paths);
        prop_assert_eq!(tally.lost_forward, count(1));
        prop_assert_eq!(tally.lost_reverse, count(2));
        prop_assert_eq!(tally.reordered, 0);
    }
}
