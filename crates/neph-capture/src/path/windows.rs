//! Windows over growing captures: which packets are evaluated together, and when all of them are there.
//!
//! Owns the times, by the one clock of the points. Reads no clock and no file. A delay belongs to the window
//! in which its packet entered the segment, as that timestamp is known, however long the packet was in
//! flight. More than the window is read, by the longest delay that is waited for. After it, because its last
//! packets are still in their segments; before it, to recognize packets of earlier windows that leave within
//! it.

use std::ops::Range;

use crate::{Direction, Followed, Passage};

const SECOND: i64 = 1_000_000_000;
/// Length in nanoseconds. A shorter window is reported sooner, but each packet is read more often.
const LENGTH_NANOS: i64 = 2 * SECOND;

/// The windows of a recording, one after the other.
#[derive(Debug)]
pub struct Windows {
    delays: WindowDelays,
    next_range: Range<i64>,
}

/// What a window waits for, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDelays {
    /// The longest delay that a packet is waited for.
    pub longest_nanos: i64,
    /// Time from the passage of a packet until it can be read.
    pub readable_after_nanos: i64,
}

impl WindowDelays {
    /// That time for an interface of this host: longer than a recording buffers packets.
    pub const READABLE_LOCALLY_NANOS: i64 = SECOND / 2;
    /// That time for a sample from an agent, which sends one each half second.
    pub const READABLE_AT_AGENTS_NANOS: i64 = 2 * SECOND;
}

/// Times in nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Delays of packets that entered their segment in this range are evaluated.
    pub evaluated_range: Range<i64>,
    /// Packets that passed any point in this range are read.
    pub read_range: Range<i64>,
}

/// A packet that passed a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentDelay {
    pub segment: usize,
    pub direction: Direction,
    /// When it entered the segment, in nanoseconds since 1970.
    pub entered_at: i64,
    /// Its delay in the segment, in nanoseconds.
    pub delay_nanos: i64,
}

impl Windows {
    /// Starts windows for a recording that begins about `now`.
    pub const fn begin(now: i64, delays: WindowDelays) -> Self {
        Self {
            delays,
            next_range: i64::MIN..now.saturating_add(LENGTH_NANOS),
        }
    }

    /// The next window, if all of its packets are in the captures at `now`.
    pub fn next(&mut self, now: i64) -> Option<Window> {
        let Range { start, end } = self.next_range;
        let WindowDelays {
            longest_nanos,
            readable_after_nanos,
        } = self.delays;
        let until = end.saturating_add(longest_nanos);
        if now < until.saturating_add(readable_after_nanos) {
            return None;
        }
        self.next_range = end..end.saturating_add(LENGTH_NANOS);
        Some(Window {
            evaluated_range: start..end,
            read_range: start.saturating_sub(longest_nanos)..until,
        })
    }
}

impl Window {
    /// Packets before this are not read again.
    pub const fn next_from(&self) -> i64 {
        let longest_nanos = self.read_range.end.saturating_sub(self.evaluated_range.end);
        self.evaluated_range.end.saturating_sub(longest_nanos)
    }

    /// The delays that belong to this window, in the order of time.
    pub fn segment_delays(&self, followed: &Followed) -> Vec<SegmentDelay> {
        let mut delays: Vec<SegmentDelay> = followed
            .passages()
            .filter_map(|passage| Some((passage, passage.direction?)))
            .flat_map(|(passage, direction)| segment_delays(followed, passage, direction))
            .filter(|delay| self.evaluated_range.contains(&delay.entered_at))
            .collect();
        // The same order as for whole captures: by entry, then by delay.
        delays.sort_by_key(|delay| (delay.entered_at, delay.delay_nanos));
        delays
    }
}

fn segment_delays(
    followed: &Followed,
    passage: Passage,
    direction: Direction,
) -> impl Iterator<Item = SegmentDelay> {
    let stamp = move |point| Some(followed.stamp(point, passage.passed_at(point)?));
    (0..followed.segments()).filter_map(move |segment| {
        let (first_time, second_time) = (stamp(segment)?, stamp(segment + 1)?);
        let (entered_at, delay_nanos) = match direction {
            Direction::Forward => (first_time, second_time.saturating_sub(first_time)),
            Direction::Reverse => (second_time, first_time.saturating_sub(second_time)),
        };
        Some(SegmentDelay {
            segment,
            direction,
            entered_at,
            delay_nanos,
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::Hops;
    use neph_wire::dissect::{Link, dissect};
    use proptest::prelude::*;

    use super::*;

    const MILLI: i64 = 1_000_000;
    const READABLE_AFTER: i64 = WindowDelays::READABLE_LOCALLY_NANOS;

    /// A packet at a point: when it passed, its number, and whether it goes forward.
    type PointPacket = (i64, u16, bool);
    type PointPackets = [PointPacket];

    /// A datagram between hosts 1 and 2, as captured.
    fn datagram(number: u16, is_forward: bool) -> Vec<u8> {
        let (from, to) = if is_forward { (1, 2) } else { (2, 1) };
        let mut packet = vec![0x45, 0, 0, 28];
        packet.extend(number.to_be_bytes());
        packet.extend([0x40, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        packet.extend([0, 9, 0, 9, 0, 8, 0, 0]);
        packet
    }

    /// A delay: segment, direction, time of entry and delay in milliseconds.
    type TestDelay = (usize, Direction, i64, i64);

    /// The delays that a window reports.
    fn segment_delays(window: &Window, points: &[&PointPackets]) -> Vec<TestDelay> {
        let mut hops = Hops::with_points(points.len());
        for (point, packets) in points.iter().enumerate() {
            for (at, number, is_forward) in *packets {
                if window.read_range.contains(&(at * MILLI)) {
                    let bytes = datagram(*number, *is_forward);
                    let packet = dissect(Link::Ip, &bytes, 28).expect("a datagram");
                    hops.add_packet(point, at * MILLI, &packet);
                }
            }
        }
        let delays = window.segment_delays(&hops.end_of_window(&[true; 2]));
        let rows = delays.into_iter().map(|delay| {
            let (entered_millis, delay_millis) =
                (delay.entered_at / MILLI, delay.delay_nanos / MILLI);
            (delay.segment, delay.direction, entered_millis, delay_millis)
        });
        rows.collect()
    }

    fn windows_until(until: i64) -> Vec<Window> {
        let waiting = WindowDelays {
            longest_nanos: SECOND,
            readable_after_nanos: READABLE_AFTER,
        };
        let mut windows = Windows::begin(10 * SECOND, waiting);
        std::iter::from_fn(|| windows.next(until)).collect()
    }

    #[test]
    fn a_window_is_complete_once_its_last_packets_can_be_read() {
        assert!(windows_until(13 * SECOND + READABLE_AFTER - 1).is_empty());
        let windows = windows_until(15 * SECOND + READABLE_AFTER);
        let ranges: Vec<_> = windows
            .iter()
            .map(|window| window.evaluated_range.clone())
            .collect();
        // Points are recorded a little before their windows begin.
        assert_eq!(ranges, [i64::MIN..12 * SECOND, 12 * SECOND..14 * SECOND]);
        assert_eq!(windows[1].read_range, 11 * SECOND..15 * SECOND);
        assert_eq!(windows[0].next_from(), windows[1].read_range.start);
    }

    #[test]
    fn each_delay_counts_in_the_window_in_which_its_packet_entered() {
        let near = [(11_500, 1, true), (11_900, 2, true), (12_100, 3, true)];
        let middle = [(11_600, 1, true), (12_050, 2, true), (12_200, 3, true)];
        let far = [(11_700, 1, true), (12_900, 2, true), (12_300, 3, true)];
        let points: [&PointPackets; 3] = [&near, &middle, &far];
        let windows = windows_until(15 * SECOND + READABLE_AFTER);
        let first = segment_delays(&windows[0], &points);
        assert_eq!(
            first,
            [
                (0, Direction::Forward, 11_500, 100),
                (1, Direction::Forward, 11_600, 100),
                (0, Direction::Forward, 11_900, 150),
            ]
        );
        let second = segment_delays(&windows[1], &points);
        assert_eq!(
            second,
            [
                (1, Direction::Forward, 12_050, 850),
                (0, Direction::Forward, 12_100, 100),
                (1, Direction::Forward, 12_200, 100),
            ]
        );
    }

    #[test]
    fn reverse_packets_enter_at_the_later_point() {
        let window = &windows_until(13 * SECOND + READABLE_AFTER)[0];
        let near_packets = [(11_000, 1, true), (12_050, 2, false)];
        let far_packets = [(11_004, 1, true), (11_990, 2, false)];
        assert_eq!(
            segment_delays(window, &[&near_packets, &far_packets]),
            [
                (0, Direction::Forward, 11_000, 4),
                (0, Direction::Reverse, 11_990, 60),
            ]
        );
    }

    #[test]
    fn delays_above_the_waiting_time_are_left_out() {
        let windows = windows_until(15 * SECOND + READABLE_AFTER);
        let near_packets = [(11_000, 1, true), (11_900, 2, true)];
        let far_packets = [(11_004, 1, true), (13_100, 2, true)];
        for (window, expected_count) in windows.iter().zip([1, 0]) {
            assert_eq!(
                segment_delays(window, &[&near_packets, &far_packets]).len(),
                expected_count
            );
        }
    }

    /// A packet: departure, whether it goes forward, its delay in each segment, and where it is seen. In
    /// milliseconds; some delays are longer than the windows wait.
    #[derive(Clone, Debug)]
    struct TestPacket {
        at: i64,
        is_forward: bool,
        delay_millis: [i64; 2],
        is_seen: [bool; 3],
    }

    fn packet() -> impl Strategy<Value = TestPacket> {
        let delay_millis = || prop_oneof![1_i64..40, 900_i64..=1_000, 1_001_i64..5_000];
        let is_seen = || prop::bool::weighted(0.9);
        (
            10_000_i64..24_000,
            any::<bool>(),
            [delay_millis(), delay_millis()],
            [is_seen(), is_seen(), is_seen()],
        )
            .prop_map(|(at, is_forward, delay_millis, is_seen)| TestPacket {
                at,
                is_forward,
                delay_millis,
                is_seen,
            })
    }

    /// The packets that each point sees, in the order of time, and the delays that [`segment_delays`] must report.
    fn replay(packets: &[TestPacket]) -> (Vec<Vec<PointPacket>>, Vec<TestDelay>) {
        let (mut points, mut delays) = (vec![Vec::new(); 3], Vec::new());
        for (number, packet) in (0..).zip(packets) {
            let [first, second] = packet.delay_millis;
            let times = [packet.at, packet.at + first, packet.at + first + second];
            // The points in the order in which it passes them.
            let order = if packet.is_forward {
                [0, 1, 2]
            } else {
                [2, 1, 0]
            };
            for (point, at) in order.into_iter().zip(times) {
                if packet.is_seen[point] {
                    points[point].push((at, number, packet.is_forward));
                }
            }
            for (step, delay_millis) in packet.delay_millis.into_iter().enumerate() {
                if packet.is_seen[order[step]] && packet.is_seen[order[step + 1]] {
                    let direction = if packet.is_forward {
                        Direction::Forward
                    } else {
                        Direction::Reverse
                    };
                    let segment = order[step].min(order[step + 1]);
                    delays.push((segment, direction, times[step], delay_millis));
                }
            }
        }
        for point in &mut points {
            point.sort_unstable();
        }
        (points, delays)
    }

    proptest! {
        #[test]
        fn windows_report_each_awaited_delay_once_and_in_order(
            packets in prop::collection::vec(packet(), 1..60),
        ) {
            let (points, mut expected) = replay(&packets);
            let points: Vec<&PointPackets> = points.iter().map(Vec::as_slice).collect();
            let windows = windows_until(40 * SECOND);
            let mut windowed: Vec<_> = windows.iter().flat_map(|window| segment_delays(window, &points)).collect();
            prop_assert!(windowed.is_sorted_by_key(|(_, _, entered_millis, delay_millis)| (*entered_millis, *delay_millis)));
            windowed.sort_unstable();
            expected.sort_unstable();
            let is_waited_for = |(.., delay_millis): &TestDelay| *delay_millis <= SECOND / MILLI;
            let awaited_delays = |delays: &[_]| delays.iter().copied().filter(is_waited_for).collect::<Vec<_>>();
            prop_assert_eq!(awaited_delays(&windowed), awaited_delays(&expected));
            // Each matches one of the expected ones.
            for delays in windowed.chunk_by(PartialEq::eq) {
                let expected_count = expected.iter().filter(|delayed| **delayed == delays[0]).count();
                prop_assert!(delays.len() <= expected_count, "{:?} {} times", delays[0], delays.len());
            }
        }
    }
}
