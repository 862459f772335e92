use proptest::prelude::*;

use super::*;

fn shape() -> Shape {
    Shape {
        delay: Span::ZERO,
        jitter: Jitter::None,
        loss: Share::default(),
        rate: None,
        queue: ByteSize(65_536),
    }
}

fn delays(shape: &Shape, packets: i64, gap: Span, length: u32) -> Vec<Option<Span>> {
    let mut gate = Gate::new(shape.clone(), 7);
    (0..packets)
        .map(|number| {
            let arrival = Moment(0) + gap.times(number);
            match gate.admit(arrival, length) {
                Fate::Leaves(due) => Some(due - arrival),
                Fate::Lost | Fate::QueueFull => None,
            }
        })
        .collect()
}

#[test]
fn a_full_queue_of_64_kib_at_20_mbit_waits_26_2_ms_and_passes_20_mbit() {
    let shape = Shape {
        rate: Some(BitRate(20_000_000)),
        ..shape()
    };
    // 40 Mbit/s offered for 2 s.
    let delays = delays(&shape, 6_600, Span::from_nanos(302_800), 1514);
    let longest = delays.iter().flatten().max().expect("some pass").nanos();
    assert!((25_600_000..=26_214_400).contains(&longest), "{longest}");
    let steady = &delays[1_000..];
    let passed = steady.iter().flatten().count();
    assert!(
        (2_799..=2_801).contains(&passed),
        "half of {}: {passed}",
        steady.len()
    );
}

#[test]
fn a_hundred_kilobytes_at_3_mbit_take_267_ms_and_are_not_dropped() {
    let queue = ByteSize(256 * 1024);
    let shape = Shape {
        rate: Some(BitRate(3_000_000)),
        queue,
        ..shape()
    };
    let delays = delays(&shape, 100, Span::ZERO, 1000);
    assert_eq!(delays.last(), Some(&Some(Span::from_nanos(266_666_700))));
}

#[test]
fn a_delay_is_exact_and_a_normal_jitter_has_its_deviation() {
    let plain = Shape {
        delay: Span::from_millis(5),
        ..shape()
    };
    assert!(
        delays(&plain, 100, Span::ZERO, 64)
            .iter()
            .all(|d| *d == Some(Span::from_millis(5)))
    );
    let jitter = Jitter::Normal(Span::from_millis(2));
    let shape = Shape {
        delay: Span::from_millis(20),
        jitter,
        ..shape()
    };
    // So far apart that none has to wait for the one before.
    let delays = delays(&shape, 20_000, Span::from_secs(1), 64);
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
    let lossy = Shape {
        loss: Share::from_billionths(100_000_000),
        ..shape()
    };
    let passed = delays(&lossy, 100_000, Span::from_micros(1), 64);
    let lost = passed.iter().filter(|delay| delay.is_none()).count();
    // Five standard deviations of the binomial.
    assert!((9_526..=10_474).contains(&lost), "{lost}");
    let all = Share::from_billionths(1_000_000_000);
    let mut gate = Gate::new(
        Shape {
            loss: all,
            rate: Some(BitRate(8_000)),
            ..shape()
        },
        1,
    );
    assert_eq!(gate.admit(Moment(0), 1000), Fate::Lost);
    assert_eq!(gate.busy_until, Moment(1_000_000_000));
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let jitter = prop_oneof![
        Just(Jitter::None),
        (0_i64..5_000_000).prop_map(|nanos| Jitter::Uniform(Span::from_nanos(nanos))),
        (0_i64..5_000_000).prop_map(|nanos| Jitter::Normal(Span::from_nanos(nanos))),
    ];
    let rate = prop::option::of((1_000_u64..1_000_000_000).prop_map(BitRate));
    (
        0_i64..100_000_000,
        jitter,
        0_u32..1_000_000_000,
        rate,
        1514_u64..1_000_000,
    )
        .prop_map(|(delay, jitter, loss, rate, queue)| Shape {
            delay: Span::from_nanos(delay),
            jitter,
            loss: Share::from_billionths(loss),
            rate,
            queue: ByteSize(queue),
        })
}

proptest! {
    #[test]
    fn packets_keep_their_order_and_never_leave_before_they_came(
        shape in any_shape(),
        packets in prop::collection::vec((0_i64..3_000_000, 60_u32..1514), 1..300),
        seed in any::<u64>(),
    ) {
        let (mut gate, mut again) = (Gate::new(shape.clone(), seed), Gate::new(shape.clone(), seed));
        let (mut now, mut last) = (Moment(0), Moment(i64::MIN));
        for (gap, length) in packets {
            now = now + Span::from_nanos(gap);
            let fate = gate.admit(now, length);
            prop_assert_eq!(fate, again.admit(now, length));
            if let Fate::Leaves(due) = fate {
                prop_assert!(due >= last && due >= now);
                if shape.jitter == Jitter::None {
                    prop_assert!(due - now >= shape.delay);
                }
                last = due;
            }
        }
    }

    #[test]
    fn nothing_waits_longer_than_a_full_queue_takes(
        rate in 1_000_u64..1_000_000_000,
        queue in 1514_u64..1_000_000,
        packets in prop::collection::vec((0_i64..3_000_000, 60_u32..1514), 1..300),
    ) {
        let (rate, queue) = (BitRate(rate), ByteSize(queue));
        let mut gate = Gate::new(Shape { rate: Some(rate), queue, ..shape() }, 1);
        // One byte and one nanosecond of rounding a packet.
        let bound = transmission_time(u32::try_from(queue.0 + 1).expect("small"), rate);
        let mut now = Moment(0);
        for (gap, length) in packets {
            now = now + Span::from_nanos(gap);
            if let Fate::Leaves(due) = gate.admit(now, length) {
                prop_assert!(due - now <= bound + Span::from_nanos(1));
                prop_assert!(due - now >= transmission_time(length, rate));
            }
        }
    }
}
