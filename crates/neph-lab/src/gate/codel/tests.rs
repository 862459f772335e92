use super::*;

const MILLI: i64 = 1_000_000;

/// Dequeues a packet at each of these milliseconds, after it waited `waited_ms`, from a queue with ten more
/// full frames. Returns the milliseconds with drops, and the number of drops.
fn drops(
    codel: &mut CoDelState,
    polls_ms: std::ops::Range<i64>,
    waited_ms: i64,
) -> Vec<(i64, u32)> {
    let mut drops = Vec::new();
    for now_ms in polls_ms {
        let now = Moment(now_ms * MILLI);
        let mut queue = Fifo::default();
        for _ in 0..11 {
            queue.push(Arrival {
                at: Moment(now.0 - waited_ms * MILLI),
                length: 1_514,
                flow: None,
            });
        }
        let dequeued = codel.dequeue(&mut queue, now, CoDel::default());
        assert!(dequeued.packet.is_some());
        if dequeued.dropped > 0 {
            drops.push((now_ms, dequeued.dropped));
        }
    }
    drops
}

/// The drops of a queue that drops at `first_ms`, then after each 100 ms divided by the square root of
/// `count`, `count` + 1 and so on: the trajectory of RFC 8289, section 4.
#[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
fn expected_drops(first_ms: i64, mut count: i32, until_ms: i64) -> Vec<(i64, u32)> {
    let mut drops = vec![(first_ms, 1)];
    let mut next_ms = f64::from(i32::try_from(first_ms).expect("small"));
    loop {
        next_ms += 100.0 / f64::from(count).sqrt();
        count += 1;
        let poll_ms = next_ms.ceil() as i64;
        if poll_ms >= until_ms {
            return drops;
        }
        drops.push((poll_ms, 1));
    }
}

#[test]
fn codel_drops_after_an_interval_and_then_at_an_increasing_rate() {
    let mut codel = CoDelState::default();
    let dropped_at = drops(&mut codel, 0..2_000, 50);
    assert_eq!(dropped_at[..4], [(100, 1), (200, 1), (271, 1), (329, 1)]);
    assert_eq!(dropped_at, expected_drops(100, 1, 2_000));
}

#[test]
fn codel_never_drops_below_its_target_delay() {
    let mut codel = CoDelState::default();
    assert_eq!(drops(&mut codel, 0..5_000, 4), []);
    // One that stood briefly in between begins the interval anew.
    let mut millis = 5_000;
    for _ in 0..20 {
        assert_eq!(drops(&mut codel, millis..millis + 99, 50), []);
        assert_eq!(drops(&mut codel, millis + 99..millis + 100, 4), []);
        millis += 100;
    }
}

#[test]
fn codel_continues_at_its_earlier_rate_if_the_queue_returns_soon() {
    let mut codel = CoDelState::default();
    let first = drops(&mut codel, 0..1_000, 50);
    let count = i32::try_from(first.len()).expect("few");
    assert_eq!(drops(&mut codel, 1_000..1_500, 1), []);
    let soon = drops(&mut codel, 1_500..2_000, 50);
    assert_eq!(soon, expected_drops(1_600, count - 1, 2_000));
    // More than sixteen intervals later nothing is remembered.
    assert_eq!(drops(&mut codel, 2_000..4_000, 1), []);
    let late = drops(&mut codel, 4_000..4_500, 50);
    assert_eq!(late, expected_drops(4_100, 1, 4_500));
}

#[test]
fn the_last_full_frame_of_a_queue_is_never_dropped() {
    let mut codel = CoDelState::default();
    drops(&mut codel, 0..1_000, 50);
    let mut queue = Fifo::default();
    for _ in 0..2 {
        queue.push(Arrival {
            at: Moment(0),
            length: 1_514,
            flow: None,
        });
    }
    for remaining_frames in [1, 0] {
        let dequeued = codel.dequeue(&mut queue, Moment(2_000 * MILLI), CoDel::default());
        assert_eq!((dequeued.dropped, dequeued.packet.is_some()), (0, true));
        assert_eq!(queue.bytes(), remaining_frames * 1_514);
    }
    let last = codel.dequeue(&mut queue, Moment(2_000 * MILLI), CoDel::default());
    assert_eq!(last, DequeuedPacket::default());
}

#[test]
fn several_packets_are_dropped_at_once_after_a_long_pause() {
    let mut codel = CoDelState::default();
    drops(&mut codel, 0..2_000, 50);
    // No packet was dequeued for 200 ms, in which about thirty drops were due. They happen now, until only
    // one full frame is behind the packet that is sent.
    let dropped_at = drops(&mut codel, 2_200..2_201, 50);
    assert_eq!(dropped_at, [(2_200, 9)]);
}
