use neph_model::{BitRate, ByteSize};
use proptest::prelude::*;

use super::*;

const fn percent(percent: u32) -> Share {
    Share::from_billionths(percent * 10_000_000)
}

fn shape_with_delay(delay: Span, jitter: Jitter) -> Shape {
    let wire = Wire {
        delay,
        jitter,
        ..Wire::default()
    };
    Shape {
        wire,
        ..Shape::default()
    }
}

fn bytes(bytes: u64) -> QueueLimit {
    QueueLimit::Bytes(ByteSize(bytes))
}

const fn arrival(at: Moment, length: u32) -> Arrival {
    Arrival {
        at,
        length,
        flow: None,
    }
}

/// Arrival time and outcome of each packet, given as the gap before it and its length.
fn outcomes(gate: &mut Gate, packets: &[(Span, u32)]) -> Vec<(Moment, PacketOutcome)> {
    let mut outcomes: Vec<(Moment, Option<PacketOutcome>)> = Vec::new();
    let mut at = Moment(0);
    for &(gap, length) in packets {
        at = at + gap;
        outcomes.push((at, gate.admit(arrival(at, length))));
    }
    gate.advance(Moment::NEVER);
    let mut later = std::iter::from_fn(|| gate.next_outcome());
    let outcomes = outcomes.into_iter();
    outcomes
        .map(|(at, outcome)| (at, outcome.or_else(|| later.next()).expect("decided")))
        .collect()
}

/// The delays of as many packets of `length` bytes, `gap` apart; none for those that are dropped.
fn delays(shape: &Shape, packets: usize, (gap, length): (Span, u32)) -> Vec<Option<Span>> {
    let mut gate = Gate::new(shape.clone(), 7);
    let outcomes = outcomes(&mut gate, &vec![(gap, length); packets]);
    outcomes
        .into_iter()
        .map(|(at, outcome)| match outcome {
            PacketOutcome::Forwarded(departure) => Some(departure.due - at),
            PacketOutcome::Dropped(..) => None,
        })
        .collect()
}

#[test]
fn a_full_queue_of_64_kib_at_20_mbit_delays_26_2_ms_and_forwards_20_mbit() {
    let shape = Shape {
        rate: Some(BitRate(20_000_000)),
        queue: bytes(65_536),
        ..Shape::default()
    };
    // 40 Mbit/s offered for 2 s.
    let delays = delays(&shape, 6_600, (Span::from_nanos(302_800), 1514));
    let longest = delays.iter().flatten().max().expect("some pass").nanos();
    assert!((25_600_000..=26_214_400).contains(&longest), "{longest}");
    let steady = &delays[1_000..];
    // Half of them.
    let forwarded = steady.iter().flatten().count();
    assert!((2_799..=2_801).contains(&forwarded), "{forwarded}");
}

#[test]
fn a_queue_of_ten_packets_holds_ten_whatever_their_length() {
    let shape = Shape {
        rate: Some(BitRate(8_000_000)),
        queue: QueueLimit::Packets(10),
        ..Shape::default()
    };
    for length in [100, 1_500] {
        // All at once: one is being sent, nine wait, the rest is dropped.
        let delays = delays(&shape, 30, (Span::ZERO, length));
        assert_eq!(delays.iter().flatten().count(), 10);
        let last = transmission_time(length, BitRate(8_000_000)).times(10);
        assert_eq!(delays[9], Some(last));
    }
}

#[test]
fn a_hundred_kilobytes_at_3_mbit_take_267_ms_and_are_not_dropped() {
    let shape = Shape {
        rate: Some(BitRate(3_000_000)),
        ..Shape::default()
    };
    let delays = delays(&shape, 100, (Span::ZERO, 1000));
    assert_eq!(delays.last(), Some(&Some(Span::from_nanos(266_666_700))));
}

#[test]
fn a_delay_is_exact_and_a_normal_jitter_has_its_deviation() {
    let constant = shape_with_delay(Span::from_millis(5), Jitter::None);
    assert!(
        delays(&constant, 100, (Span::ZERO, 64))
            .iter()
            .all(|d| *d == Some(Span::from_millis(5)))
    );
    let jitter = Jitter::Normal(Span::from_millis(2));
    let shape = shape_with_delay(Span::from_millis(20), jitter);
    // So far apart that none has to wait for the one before.
    let delays = delays(&shape, 20_000, (Span::from_secs(1), 64));
    let millis: Vec<f64> = delays
        .iter()
        .flatten()
        .map(|span| span.millis_f64())
        .collect();
    let count = f64::from(20_000);
    let mean = millis.iter().sum::<f64>() / count;
    let deviation = (millis.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt();
    assert!(
        (mean - 20.0).abs() < 0.06 && (deviation - 2.0).abs() < 0.05,
        "{mean} {deviation}"
    );
}

#[test]
fn loss_is_near_its_share_and_still_takes_transmission_time() {
    let mut lossy = Shape::default();
    lossy.wire.loss = Loss::Random(percent(10));
    let delays = delays(&lossy, 100_000, (Span::from_micros(1), 64));
    let lost = delays.iter().filter(|delay| delay.is_none()).count();
    // Five standard deviations of the binomial.
    assert!((9_526..=10_474).contains(&lost), "{lost}");
    lossy.wire.loss = Loss::Random(Share::ALL);
    lossy.rate = Some(BitRate(8_000));
    lossy.queue = bytes(1_514);
    let mut gate = Gate::new(lossy, 1);
    let packet_at = |nanos| arrival(Moment(nanos), 1000);
    assert_eq!(
        gate.admit(packet_at(0)),
        Some(PacketOutcome::Dropped(DropCause::Random, Some(0)))
    );
    // A thousand bytes take one second, of which this much is left.
    assert_eq!(
        gate.admit(packet_at(300_000_000)),
        Some(PacketOutcome::Dropped(DropCause::QueueFull, None))
    );
    assert_eq!(gate.admit(packet_at(999_999_999)), None);
}

#[test]
fn a_frame_over_the_mtu_is_dropped_and_takes_no_time() {
    let shape = Shape {
        mtu: Some(1_400),
        rate: Some(BitRate(8_000)),
        ..Shape::default()
    };
    let mut gate = Gate::new(shape, 1);
    let packet_of_length = |length| arrival(Moment(0), length);
    let over_mtu = Some(PacketOutcome::Dropped(DropCause::OverMtu, None));
    assert_eq!(gate.admit(packet_of_length(1_415)), over_mtu);
    let outcome = gate.admit(packet_of_length(1_414));
    let Some(PacketOutcome::Forwarded(departure)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(departure.due, Moment(1_414_000_000));
}

#[test]
fn each_configured_share_of_packets_is_treated_independently() {
    let mut shape = shape_with_delay(Span::from_millis(10), Jitter::None);
    shape.wire.corrupt = percent(10);
    shape.wire.duplicate = percent(20);
    shape.wire.reorder = percent(30);
    let mut gate = Gate::new(shape, 3);
    let (mut corrupt, mut duplicate, mut early, mut all_treatments) = (0, 0, 0, 0);
    for (at, outcome) in outcomes(&mut gate, &vec![(Span::from_micros(1), 64); 100_000]) {
        let PacketOutcome::Forwarded(Departure { due, treatment, .. }) = outcome else {
            panic!("nothing is lost");
        };
        let delay = if treatment.is_early { 0 } else { 10 };
        assert_eq!(due - at, Span::from_millis(delay));
        corrupt += i32::from(treatment.corrupt.is_some());
        duplicate += i32::from(treatment.is_duplicated);
        early += i32::from(treatment.is_early);
        let has_all = treatment.is_early && treatment.is_duplicated && treatment.corrupt.is_some();
        all_treatments += i32::from(has_all);
    }
    // Within five standard deviations of the binomial.
    for (count, expected, bound) in [
        (corrupt, 10_000, 474),
        (duplicate, 20_000, 632),
        (early, 30_000, 725),
        (all_treatments, 600, 122),
    ] {
        assert!((count - expected).abs() <= bound, "{count}, not {expected}");
    }
}

#[test]
fn early_packets_are_reordered_and_the_others_stay_in_order() {
    let mut shape = shape_with_delay(Span::from_millis(10), Jitter::None);
    shape.wire.reorder = percent(50);
    let mut gate = Gate::new(shape, 3);
    let outcomes = outcomes(&mut gate, &vec![(Span::from_millis(1), 64); 200]);
    let due: Vec<(Moment, bool)> = outcomes
        .iter()
        .filter_map(|(_, outcome)| match outcome {
            PacketOutcome::Forwarded(departure) => {
                Some((departure.due, departure.treatment.is_early))
            }
            PacketOutcome::Dropped(..) => None,
        })
        .collect();
    let out_of_order = due.windows(2).filter(|pair| pair[1].0 < pair[0].0);
    assert!(out_of_order.count() > 30);
    let in_order: Vec<Moment> = due.iter().filter(|due| !due.1).map(|due| due.0).collect();
    assert!(in_order.is_sorted());
}

#[test]
fn the_deadline_of_a_gate_precedes_the_due_times_of_its_queued_packets() {
    let mut shape = shape_with_delay(Span::from_millis(5), Jitter::None);
    shape.rate = Some(BitRate(8_000_000));
    let mut gate = Gate::new(shape, 1);
    let packet = arrival(Moment(0), 1000);
    assert!(gate.admit(packet).is_some() && gate.next_deadline().is_none());
    assert_eq!(gate.admit(packet), None);
    // The second begins after a millisecond and is due six later.
    let deadline = gate.next_deadline().expect("one stands in the queue");
    assert_eq!(deadline, Moment(6_000_000));
    gate.advance(deadline);
    let outcome = gate.next_outcome();
    let Some(PacketOutcome::Forwarded(departure)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(departure.due, Moment(7_000_000));
    assert_eq!(gate.next_deadline(), None);
}

#[test]
fn codel_keeps_a_standing_queue_shorter_than_drop_tail() {
    // A sender at 12 Mbit/s, on a link of 10 Mbit/s, halves its rate at each drop and increases it after each
    // 100 ms without a drop. The result is the median delay of the last ten seconds.
    let standing_delay = |discipline| {
        let shape = Shape {
            rate: Some(BitRate(10_000_000)),
            queue: bytes(1_000_000),
            discipline,
            ..Shape::default()
        };
        let mut gate = Gate::new(shape, 1);
        let (mut at, mut rate, mut last_rate_change) = (Moment(0), 12_000_000_u64, Moment(0));
        let (mut queue, mut delays) = (VecDeque::new(), Vec::new());
        while at < Moment(30_000_000_000) {
            at = at + transmission_time(1_514, BitRate(rate));
            let outcome = gate.admit(arrival(at, 1_514));
            queue.extend(outcome.is_none().then_some(at));
            let mut outcomes: Vec<(Moment, PacketOutcome)> =
                std::iter::from_fn(|| gate.next_outcome())
                    .filter_map(|outcome| queue.pop_front().map(|arrival| (arrival, outcome)))
                    .collect();
            outcomes.extend(outcome.map(|outcome| (at, outcome)));
            for (arrival, outcome) in outcomes {
                match outcome {
                    PacketOutcome::Forwarded(departure) => delays.push(departure.due - arrival),
                    PacketOutcome::Dropped(..) => {
                        (rate, last_rate_change) = ((rate / 2).max(1_000_000), at);
                    }
                }
            }
            if at - last_rate_change >= Span::from_millis(100) {
                (rate, last_rate_change) = (rate + 500_000, at);
            }
        }
        let mut last = delays.split_off(delays.len() * 2 / 3);
        last.sort_unstable();
        last[last.len() / 2]
    };
    let drop_tail = standing_delay(Discipline::DropTail);
    let codel = standing_delay(Discipline::CoDel(CoDel::default()));
    assert!(drop_tail > Span::from_millis(100), "{drop_tail:?}");
    assert!(codel < Span::from_millis(15), "{codel:?}");
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let span = |limit| (0_i64..limit).prop_map(Span::from_nanos);
    let jitter = prop_oneof![
        Just(Jitter::None),
        span(5_000_000).prop_map(Jitter::Uniform),
        span(5_000_000).prop_map(Jitter::Normal),
        span(5_000_000).prop_map(Jitter::Pareto),
    ];
    let rate = prop::option::of((1_000_u64..1_000_000_000).prop_map(BitRate));
    let queue = prop_oneof![
        (1514_u64..1_000_000).prop_map(bytes),
        (1_u32..200).prop_map(QueueLimit::Packets),
    ];
    let loss = (0_u32..1_000_000_000).prop_map(Share::from_billionths);
    let (target, interval) = (Span::from_micros(500), Span::from_millis(10));
    let discipline = prop_oneof![
        Just(Discipline::DropTail),
        Just(Discipline::CoDel(CoDel { target, interval })),
    ];
    let transmitter = (rate, queue, discipline);
    (span(100_000_000), jitter, loss, transmitter).prop_map(|(delay, jitter, loss, transmitter)| {
        let (rate, queue, discipline) = transmitter;
        let mut shape = shape_with_delay(delay, jitter);
        shape.wire.loss = Loss::Random(loss);
        Shape {
            rate,
            queue,
            discipline,
            ..shape
        }
    })
}

fn any_packets() -> impl Strategy<Value = Vec<(Span, u32)>> {
    let gap = (0_i64..3_000_000).prop_map(Span::from_nanos);
    prop::collection::vec((gap, 60_u32..1514), 1..300)
}

proptest! {
    #[test]
    fn packets_stay_in_order_and_never_depart_before_they_arrive(
        shape in any_shape(),
        packets in any_packets(),
        seed in any::<u64>(),
    ) {
        let mut gate = Gate::new(shape.clone(), seed);
        let mut second_gate = Gate::new(shape.clone(), seed);
        let first = outcomes(&mut gate, &packets);
        prop_assert_eq!(&first, &outcomes(&mut second_gate, &packets));
        let mut last = Moment(i64::MIN);
        for (now, outcome) in first {
            if let PacketOutcome::Forwarded(Departure { due, .. }) = outcome {
                prop_assert!(due >= last && due >= now);
                if matches!(shape.wire.jitter, Jitter::None | Jitter::Pareto(_)) {
                    prop_assert!(due - now >= shape.wire.delay);
                }
                last = due;
            }
        }
    }

    #[test]
    fn outcomes_do_not_depend_on_how_often_a_gate_is_advanced(
        shape in any_shape(),
        packets in any_packets(),
    ) {
        let (mut gate, mut often_advanced) = (Gate::new(shape.clone(), 1), Gate::new(shape, 1));
        let expected = outcomes(&mut gate, &packets);
        let (mut at, mut queued, mut outcomes) = (Moment(0), Vec::new(), Vec::new());
        for (number, (gap, length)) in packets.into_iter().enumerate() {
            let from = at;
            at = at + gap;
            for quarter in 1..=4 {
                often_advanced.advance(from + Span::from_nanos((at - from).nanos() * quarter / 4));
            }
            match often_advanced.admit(arrival(at, length)) {
                Some(outcome) => outcomes.push((number, outcome)),
                None => queued.push(number),
            }
        }
        often_advanced.advance(Moment::NEVER);
        for number in queued {
            outcomes.push((number, often_advanced.next_outcome().expect("all are decided")));
        }
        outcomes.sort_by_key(|(number, _)| *number);
        for ((_, expected), (_, outcome)) in expected.into_iter().zip(outcomes) {
            prop_assert_eq!(expected, outcome);
        }
    }

    #[test]
    fn no_packet_waits_longer_than_a_full_queue_takes(
        rate in 1_000_u64..1_000_000_000,
        queue in 1514_u64..1_000_000,
        packets in any_packets(),
    ) {
        let rate = BitRate(rate);
        let shape = Shape { rate: Some(rate), queue: bytes(queue), ..Shape::default() };
        // One byte, and one nanosecond of rounding a packet.
        let max_delay = transmission_time(u32::try_from(queue + 1).expect("small"), rate);
        let rounding = Span::from_nanos(i64::try_from(packets.len()).expect("few"));
        for ((now, outcome), (_, length)) in outcomes(&mut Gate::new(shape, 1), &packets).iter().zip(&packets) {
            if let PacketOutcome::Forwarded(Departure { due, .. }) = outcome {
                prop_assert!(*due - *now <= max_delay + rounding);
                prop_assert!(*due - *now >= transmission_time(*length, rate));
            }
        }
    }
}
