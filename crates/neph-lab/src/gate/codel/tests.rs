use super::*;

const MILLI: i64 = 1_000_000;

/// Asks at each of these milliseconds for a packet that stood `standing` of them, from a queue
/// that holds ten full frames more; the milliseconds at which one was dropped.
fn drops(
    controller: &mut Controller,
    millis: std::ops::Range<i64>,
    queued_ms: i64,
) -> Vec<(i64, u32)> {
    let mut drops = Vec::new();
    for milli in millis {
        let now = Moment(milli * MILLI);
        let mut queue = Fifo::default();
        for _ in 0..11 {
            queue.push(Arrival {
                at: Moment(now.0 - queued_ms * MILLI),
                length: 1_514,
                flow: None,
            });
        }
        let taken = controller.dequeue(&mut queue, now, CoDel::default());
        assert!(taken.packet.is_some());
        if taken.dropped > 0 {
            drops.push((milli, taken.dropped));
        }
    }
    drops
}

/// The milliseconds at which a queue is asked that drops at `first`, then after each 100 ms over
/// the square root of `count`, `count` + 1 and so on: the trajectory of RFC 8289, section 4.
#[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
fn trajectory(first: i64, mut count: i32, until: i64) -> Vec<(i64, u32)> {
    let mut drops = vec![(first, 1)];
    let mut next = f64::from(i32::try_from(first).expect("small"));
    loop {
        next += 100.0 / f64::from(count).sqrt();
        count += 1;
        let requested = next.ceil() as i64;
        if requested >= until {
            return drops;
        }
        drops.push((requested, 1));
    }
}

#[test]
fn a_standing_queue_is_dropped_from_after_an_interval_and_then_ever_faster() {
    let mut controller = Controller::default();
    let dropped_at = drops(&mut controller, 0..2_000, 50);
    assert_eq!(dropped_at[..4], [(100, 1), (200, 1), (271, 1), (329, 1)]);
    assert_eq!(dropped_at, trajectory(100, 1, 2_000));
}

#[test]
fn codel_never_drops_below_its_target_delay() {
    let mut controller = Controller::default();
    assert_eq!(drops(&mut controller, 0..5_000, 4), []);
    // One that stood briefly in between begins the interval anew.
    let mut millis = 5_000;
    for _ in 0..20 {
        assert_eq!(drops(&mut controller, millis..millis + 99, 50), []);
        assert_eq!(drops(&mut controller, millis + 99..millis + 100, 4), []);
        millis += 100;
    }
}

#[test]
fn a_queue_that_builds_up_soon_after_is_dropped_from_at_the_earlier_rate() {
    let mut controller = Controller::default();
    let first = drops(&mut controller, 0..1_000, 50);
    let count = i32::try_from(first.len()).expect("few");
    assert_eq!(drops(&mut controller, 1_000..1_500, 1), []);
    let soon = drops(&mut controller, 1_500..2_000, 50);
    assert_eq!(soon, trajectory(1_600, count - 1, 2_000));
    // More than sixteen intervals later nothing is remembered.
    assert_eq!(drops(&mut controller, 2_000..4_000, 1), []);
    let late = drops(&mut controller, 4_000..4_500, 50);
    assert_eq!(late, trajectory(4_100, 1, 4_500));
}

#[test]
fn the_last_full_frame_of_a_queue_is_sent_however_long_it_stood() {
    let mut controller = Controller::default();
    drops(&mut controller, 0..1_000, 50);
    let mut queue = Fifo::default();
    for _ in 0..2 {
        queue.push(Arrival {
            at: Moment(0),
            length: 1_514,
            flow: None,
        });
    }
    for left in [1, 0] {
        let taken = controller.dequeue(&mut queue, Moment(2_000 * MILLI), CoDel::default());
        assert_eq!((taken.dropped, taken.packet.is_some()), (0, true));
        assert_eq!(queue.bytes(), left * 1_514);
    }
    let none = controller.dequeue(&mut queue, Moment(2_000 * MILLI), CoDel::default());
    assert_eq!(none, DequeuedPacket::default());
}

#[test]
fn a_large_backlog_may_lose_several_at_once() {
    let mut controller = Controller::default();
    drops(&mut controller, 0..2_000, 50);
    // Nobody asked for 200 ms, in which some thirty drops were due: one after the other, until
    // only one full frame stands behind the one that is sent.
    let dropped_at = drops(&mut controller, 2_200..2_201, 50);
    assert_eq!(dropped_at, [(2_200, 9)]);
}
