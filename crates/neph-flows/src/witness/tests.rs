use neph_model::{FleetOutcome, PeerReport, ReadBy, Slot};

use super::*;
use crate::direction::Direction;

const TOLERANCE: Span = Span::from_micros(500);
/// The peer's clock is that far ahead of ours, and drifts by 50 us a second.
const CLOCK_OFFSET_NANOS: i64 = 86_400_000_000_000;

fn reply(second: i64, micros: (i64, i64), ttl: u8) -> FleetMessage {
    let sent = second * 1_000_000_000;
    FleetMessage {
        slot: Slot(0),
        source_port: 1,
        seq: 0,
        sent: Instant::from_nanos(sent),
        late: Span::ZERO,
        outcome: FleetOutcome::Reply(FleetReply {
            round_trip: Span::from_micros(micros.0 + micros.1 + 70),
            read_by: ReadBy::Kernel,
            peer_report: Some(PeerReport {
                rx: Instant::from_nanos(
                    sent + CLOCK_OFFSET_NANOS + (micros.0 + second * 50) * 1000,
                ),
                residence: Span::from_micros(70),
                count: None,
                ttl: Some(60),
            }),
            ttl: Some(ttl),
            copies: 0,
            answer: None,
        }),
    }
}

/// How many messages lay elsewhere, which were asked about each second.
fn count_unexplained(witness: &mut Witness) -> u32 {
    let messages = witness.take_unexplained().map(|row| {
        let seconds = (row.until - row.from).nanos() / 1_000_000_000;
        assert_eq!(i64::from(row.messages), seconds + 1);
        row.messages
    });
    messages.sum()
}

/// 40 messages, then so many at 20 ms there, which nobody tells as a path, then four at the end's
/// latency: what is said of it, and how many messages were elsewhere.
fn evidence_after_level(length: i64, end: (i64, i64)) -> (Option<Direction>, u32) {
    let (mut witness, mut drift) = (Witness::default(), Drift::default());
    let base = Some(Span::from_micros(20_000));
    let conditions = WitnessConditions {
        base,
        shared_drift: Span::ZERO,
        tolerance: TOLERANCE,
        window: 4,
    };
    let change = 40 + length;
    for second in 0..change + 4 {
        let delays = match second {
            0..40 => (10_000, 10_000),
            _ if second < change => (20_000, 10_000),
            _ => end,
        };
        let message = reply(second, delays, 60);
        for _ in 0..20 {
            let mut other = witness.clone();
            other.push(&message, message.reply().unwrap(), conditions, &mut drift);
        }
        witness.push(&message, message.reply().unwrap(), conditions, &mut drift);
    }
    let evidence = witness.collect_evidence(&Claim {
        at: Instant::from_nanos(change * 1_000_000_000),
        before: Span::from_micros(20_000),
        after: Span::from_micros(end.0 + end.1),
        tolerance: TOLERANCE,
        window: 4,
        interval: Span::from_secs(1),
        overtaking: None,
        drift,
    });
    (evidence.direction, count_unexplained(&mut witness))
}

/// The way there moved, nobody noticed, and then the way back did: no change was of both ways.
#[test]
fn two_changes_reported_as_one_have_no_direction() {
    assert_eq!(evidence_after_level(15, (20_000, 13_000)), (None, 15));
    // A queue of a moment is no reason to say nothing.
    let forward = Some(Direction::Forward);
    assert_eq!(evidence_after_level(3, (13_000, 10_000)), (forward, 0));
    assert_eq!(evidence_after_level(0, (13_000, 10_000)), (forward, 0));
}

#[test]
fn messages_of_a_temporary_level_are_counted_but_scattered_ones_are_not() {
    let unexplained = |latency: fn(i64) -> i64| {
        let (mut witness, mut drift) = (Witness::default(), Drift::default());
        let conditions = WitnessConditions {
            base: Some(Span::from_micros(20_070)),
            shared_drift: Span::ZERO,
            tolerance: TOLERANCE,
            window: 4,
        };
        for second in 0..60 {
            let forward = if (20..50).contains(&second) {
                latency(second)
            } else {
                10_000
            };
            let message = reply(second, (forward, 10_000), 60);
            witness.push(&message, message.reply().unwrap(), conditions, &mut drift);
        }
        count_unexplained(&mut witness)
    };
    assert_eq!(unexplained(|_| 20_000), 30);
    assert_eq!(unexplained(|second| 12_000 + second % 3 * 4_000), 0);
}

/// 40 messages at one level, then 4 at another; what is said of it.
fn evidence_of_change(before: (i64, i64), after: (i64, i64), ttls: (u8, u8)) -> Evidence {
    let (mut witness, mut drift) = (Witness::default(), Drift::default());
    let sum = |(forward, reverse): (i64, i64)| Span::from_micros(forward + reverse);
    let conditions = WitnessConditions {
        base: Some(sum(before)),
        shared_drift: Span::ZERO,
        tolerance: TOLERANCE,
        window: 4,
    };
    for second in 0..44 {
        let message = match second {
            0..40 => reply(second, before, ttls.0),
            _ => reply(second, after, ttls.1),
        };
        let reply = message.reply().unwrap();
        // The other flows of a fleet learn too.
        for other in 0..20 {
            let mut other_witness = witness.clone();
            if other > 0 {
                other_witness.push(&message, reply, conditions, &mut drift);
            }
        }
        witness.push(&message, reply, conditions, &mut drift);
    }
    witness.collect_evidence(&Claim {
        at: Instant::from_nanos(40_000_000_000),
        before: sum(before),
        after: sum(after),
        tolerance: TOLERANCE,
        window: 4,
        interval: Span::from_secs(1),
        overtaking: Some(Instant::from_nanos(40_000_000_000)),
        drift,
    })
}

#[test]
fn peer_timestamps_show_which_direction_moved_despite_clock_drift() {
    let direction = |after| evidence_of_change((10_000, 10_000), after, (60, 60)).direction;
    assert_eq!(direction((12_000, 10_000)), Some(Direction::Forward));
    assert_eq!(direction((10_000, 8_000)), Some(Direction::Reverse));
    assert_eq!(direction((12_000, 13_000)), Some(Direction::Both));
    assert_eq!(direction((13_000, 9_000)), Some(Direction::Both));
}

#[test]
fn a_changed_ttl_is_evidence_for_a_path_change() {
    assert!(evidence_of_change((10_000, 10_000), (12_000, 10_000), (60, 58)).ttl);
    assert!(!evidence_of_change((10_000, 10_000), (12_000, 10_000), (60, 60)).ttl);
}

#[test]
fn reordering_is_evidence_for_a_decrease_and_not_for_an_increase() {
    assert!(evidence_of_change((10_000, 10_000), (8_000, 10_000), (60, 60)).reordered);
    assert!(!evidence_of_change((10_000, 10_000), (12_000, 10_000), (60, 60)).reordered);
}

#[test]
fn without_peer_timestamps_there_is_no_evidence() {
    let claim = Claim {
        at: Instant::from_nanos(0),
        before: Span::from_millis(20),
        after: Span::from_millis(18),
        tolerance: TOLERANCE,
        window: 4,
        interval: Span::from_secs(1),
        overtaking: None,
        drift: Drift::default(),
    };
    assert_eq!(
        Witness::default().collect_evidence(&claim),
        Evidence::default()
    );
}
