use neph_wire::marks::PreviousTx;
use proptest::prelude::*;

use super::*;

fn at(nanos: i64) -> Instant<Local> {
    Instant::from_nanos(nanos)
}

fn reply(now: i64) -> Reply {
    Reply {
        nic_rx: Some(at(now - 1)),
        app_recv: at(now),
        marks: None,
        answer: None,
        outcome: Outcome::Reply,
    }
}

fn exchange(expect: Expect) -> Exchange {
    Exchange::new(
        FlowIndex(0),
        Span::from_nanos(10),
        Span::from_nanos(100),
        expect,
    )
}

/// Enters and sends `count` messages, one every 10 ns.
fn sent(expect: Expect, count: i64) -> Exchange {
    let mut exchange = exchange(expect);
    for n in 0..count {
        let seq = exchange.enter(at(n * 10));
        exchange.sent(seq, at(n * 10 + 1), 0);
    }
    exchange
}

fn finished(exchange: &mut Exchange, now: i64) -> Vec<(u64, Outcome)> {
    std::iter::from_fn(|| exchange.take_finished(at(now)))
        .map(|message| (message.seq.0, message.outcome))
        .collect()
}

#[test]
fn messages_are_reported_in_order_despite_reordered_replies() {
    let mut exchange = sent(Expect::default(), 3);
    exchange.replied(Seq(2), &reply(30));
    assert_eq!(finished(&mut exchange, 31), []);
    exchange.replied(Seq(0), &reply(32));
    exchange.replied(Seq(1), &reply(33));
    let expected = [
        (0, Outcome::Reply),
        (1, Outcome::Reply),
        (2, Outcome::Reply),
    ];
    assert_eq!(finished(&mut exchange, 34), expected);
    assert_eq!(exchange.tally().reordered, 2);
}

#[test]
fn an_unanswered_message_is_lost_and_a_later_reply_is_late() {
    let mut exchange = sent(Expect::default(), 1);
    assert_eq!(exchange.next_deadline(), Some(at(101)));
    exchange.expire(at(100));
    assert!(!exchange.all_decided());
    exchange.expire(at(101));
    assert_eq!(finished(&mut exchange, 101), [(0, Outcome::Lost)]);
    assert!(exchange.replied(Seq(0), &reply(140)).is_none());
    assert_eq!((exchange.tally().lost, exchange.tally().late), (1, 1));
}

#[test]
fn a_second_reply_is_a_duplicate_before_and_after_the_message_is_finished() {
    let mut exchange = sent(Expect::default(), 1);
    exchange.replied(Seq(0), &reply(20));
    exchange.replied(Seq(0), &reply(21));
    let message = exchange.take_finished(at(22)).expect("replied to");
    assert_eq!(message.duplicates, 1);
    exchange.replied(Seq(0), &reply(23));
    assert_eq!(
        (exchange.tally().duplicates, exchange.tally().replies),
        (2, 1)
    );
}

#[test]
fn an_unexpected_reply_changes_nothing() {
    let mut exchange = sent(Expect::default(), 1);
    assert!(exchange.replied(Seq(7), &reply(20)).is_none());
    assert_eq!(*exchange.tally(), Tally::default());
}

#[test]
fn the_peers_tx_timestamp_arrives_with_the_next_reply() {
    let mut exchange = sent(
        Expect {
            sent: false,
            peer_send: true,
            ack: false,
        },
        2,
    );
    let marks = |previous| {
        Some(WireMarks {
            app_tx: Some(5),
            previous,
            ..WireMarks::default()
        })
    };
    exchange.replied(
        Seq(0),
        &Reply {
            marks: marks(None),
            ..reply(20)
        },
    );
    assert_eq!(finished(&mut exchange, 21), [], "waits for the stamp");
    let previous = Some(PreviousTx { seq: 0, nic_tx: 7 });
    exchange.replied(
        Seq(1),
        &Reply {
            marks: marks(previous),
            ..reply(30)
        },
    );
    let first = exchange.take_finished(at(31)).expect("complete now");
    assert_eq!(first.marks.peer.nic_tx, Some(Instant::from_nanos(7)));
    assert!(exchange.lacks_peer_send());
    assert!(exchange.take_finished(at(31)).is_none());
    let much_later = at(31 + 2_000_000_000);
    let second = exchange
        .take_finished(much_later)
        .expect("nobody waits for ever");
    assert_eq!(second.marks.peer.nic_tx, None);
}

#[test]
fn the_first_of_two_tx_timestamps_counts() {
    let mut exchange = sent(Expect::default(), 1);
    exchange.stamped(Seq(0), SendPoint::NicTx, at(5), None);
    exchange.stamped(Seq(0), SendPoint::NicTx, at(50), None);
    exchange.replied(Seq(0), &reply(60));
    let message = exchange.take_finished(at(61)).expect("replied to");
    assert_eq!(message.marks.nic_tx, Some(at(5)));
}

#[test]
fn a_message_is_reported_after_its_own_tx_timestamp() {
    let sent_expected = Expect {
        sent: true,
        ..Expect::default()
    };
    let mut exchange = sent(sent_expected, 1);
    exchange.replied(Seq(0), &reply(20));
    assert_eq!(
        finished(&mut exchange, 21),
        [],
        "its stamp is still to come"
    );
    exchange.stamped(Seq(0), SendPoint::NicTx, at(5), None);
    let message = exchange.take_finished(at(22)).expect("complete");
    assert_eq!(message.marks.nic_tx, Some(at(5)));
    exchange.stamped(Seq(0), SendPoint::NicTx, at(6), None);
    assert_eq!(
        exchange.len(),
        0,
        "a stamp of what is finished changes nothing"
    );
}

#[test]
fn an_unanswered_connection_attempt_is_lost_and_a_refused_one_failed() {
    let mut exchange = exchange(Expect::default());
    exchange.set_asks(Asks::Connections);
    for _ in 0..2 {
        let seq = exchange.enter(at(0));
        exchange.with_marks(seq, |marks| marks.dialled = Some(at(1)));
    }
    exchange.failed(Seq(1), None, at(2));
    exchange.expire(at(101));
    let expected = [(0, Outcome::Lost), (1, Outcome::Failed)];
    assert_eq!(finished(&mut exchange, 101), expected);
}

#[test]
fn a_tx_timestamp_of_another_reply_is_ignored() {
    let mut exchange = sent(Expect::default(), 2);
    let mut marks = WireMarks {
        app_tx: Some(50),
        ..WireMarks::default()
    };
    let first = Reply {
        marks: Some(marks),
        ..reply(60)
    };
    exchange.replied(Seq(0), &first);
    marks.previous = Some(PreviousTx { seq: 0, nic_tx: 49 });
    let second = Reply {
        marks: Some(marks),
        ..reply(70)
    };
    exchange.replied(Seq(1), &second);
    let message = exchange.take_finished(at(71)).expect("replied to");
    assert_eq!(message.marks.peer.nic_tx, None);
}

#[test]
fn outstanding_messages_at_the_end_are_not_counted() {
    let mut exchange = sent(Expect::default(), 4);
    exchange.replied(Seq(1), &reply(60));
    exchange.replied(Seq(2), &reply(61));
    let remaining = std::iter::from_fn(|| exchange.take_rest()).map(|message| message.seq.0);
    assert_eq!(remaining.collect::<Vec<_>>(), [1, 2]);
    let tally = *exchange.tally();
    assert_eq!((tally.messages, tally.replies, tally.lost), (2, 2, 0));
}

#[test]
fn unsent_messages_are_failed_and_not_lost() {
    let mut exchange = exchange(Expect::default());
    let seq = exchange.enter(at(0));
    exchange.lost(seq, None, at(3));
    assert_eq!(finished(&mut exchange, 3), [(0, Outcome::Failed)]);
}

proptest! {
    /// Loss, duplication and reordering at random: every message comes out exactly once, in
    /// order, and the tally adds up.
    #[test]
    fn every_message_is_reported_once(replies in proptest::collection::vec(0_u64..60, 0..120)) {
        let mut exchange = sent(Expect::default(), 50);
        let mut out = Vec::new();
        for (now, seq) in (500..).zip(&replies) {
            exchange.replied(Seq(*seq), &reply(now));
            out.extend(finished(&mut exchange, now));
        }
        exchange.expire(at(10_000));
        while let Some(message) = exchange.take_rest() {
            out.push((message.seq.0, message.outcome));
        }
        prop_assert_eq!(out.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
        let answered: std::collections::BTreeSet<u64> = replies.iter().copied().filter(|seq| *seq < 50).collect();
        let tally = *exchange.tally();
        prop_assert_eq!(tally.replies, answered.len() as u64);
        prop_assert_eq!(tally.messages, tally.replies + tally.lost + tally.failed);
        let unmatched = replies.iter().filter(|seq| **seq >= 50).count() as u64;
        prop_assert_eq!(tally.duplicates, replies.len() as u64 - unmatched - tally.replies);
    }
}
