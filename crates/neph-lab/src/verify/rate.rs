//! The output rate of a stream, and the queue that it filled.

use neph_model::{BitRate, ByteSize, Span};

use super::exchange::{PacketTimes, Stream};
use super::replay::RequestedLink;
use super::{Check, DELAY_TOLERANCE, Z99, loss};
use crate::gate::{Discipline, transmission_time};

/// Minimum number of frames for a rate.
const MIN_ARRIVALS: usize = 20;
/// Minimum utilisation of the link by a stream that shows its rate.
const BUSY: f64 = 0.995;
/// Tolerance of a rate.
const TOLERANCE: f64 = 0.01;

/// Checks rate and queue with a stream.
pub(super) fn checks(
    stream: &Stream,
    course: &RequestedLink<'_>,
) -> (Option<Check<BitRate>>, Option<Check<ByteSize>>) {
    let expected = expected(stream, course);
    (
        check(stream, course, &expected),
        check_queue(stream, course, &expected),
    )
}

/// A frame that was sent, and its expected arrival.
type Expected = (PacketTimes, Option<i64>);

/// Checks the number of frames between the first and the last arrival. Random losses count, because they took
/// transmission time. `None` if the same frames through a correct gate would have left pauses: then they show
/// their sender's rate.
#[expect(
    clippy::cast_precision_loss,
    reason = "rates and nanoseconds far below 2^53"
)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive rate"
)]
fn check(
    stream: &Stream,
    course: &RequestedLink<'_>,
    expected: &[Expected],
) -> Option<Check<BitRate>> {
    let configured = course.shape.rate?;
    let wire = course.wire();
    let expected_arrivals: Vec<i64> = expected
        .iter()
        .filter_map(|(_, arrival)| *arrival)
        .collect();
    let arrivals: Vec<i64> = stream
        .packet_times
        .iter()
        .filter_map(|packet_times| packet_times.arrival)
        .collect();
    let expected_rate = rate_of(&expected_arrivals, stream.bytes)?;
    let lost = wire.loss.fraction();
    // With a schedule the rate at that moment may differ: the output of the gate counts.
    let configured = if course.scheduled {
        BitRate(expected_rate.round() as u64)
    } else {
        configured
    };
    if expected_rate < BUSY * configured.0 as f64 || lost >= 1.0 {
        return None;
    }
    let measured = rate_of(&arrivals, stream.bytes).unwrap_or(0.0) / (1.0 - lost);
    let frames = arrivals.len().max(1) as f64;
    let span = frames * f64::from(stream.bytes) * 8e9 / configured.0 as f64;
    let slack = TOLERANCE
        + 2.0 * wire.jitter.max_deviation().nanos() as f64 / span
        + Z99 * (lost * loss::excess(&wire.loss) / frames).sqrt();
    Some(Check {
        expected: configured,
        measured: BitRate(measured.round() as u64),
        ok: (measured / configured.0 as f64 - 1.0).abs() <= slack,
    })
}

/// Bits per second from the first to the last of these moments; `None` if there are too few.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of some seconds")]
fn rate_of(arrivals: &[i64], bytes: u32) -> Option<f64> {
    let (first, last) = (arrivals.iter().min()?, arrivals.iter().max()?);
    let bits = (arrivals.len() - 1) as f64 * f64::from(bytes) * 8.0;
    (arrivals.len() >= MIN_ARRIVALS && last > first).then(|| bits * 1e9 / (last - first) as f64)
}

/// Checks the queue by the waits of those frames that should have found it almost full. Each wait covers the
/// queue and the frame itself. `None` if none was dropped. Uses the median: a host that stops for 10 ms once
/// extends only the longest wait.
fn check_queue(
    stream: &Stream,
    course: &RequestedLink<'_>,
    expected: &[Expected],
) -> Option<Check<ByteSize>> {
    let (shape, wire) = (course.shape, course.wire());
    let rate = shape.rate?;
    let configured = shape.queue.bytes_of(stream.bytes);
    let has_drops = expected.iter().any(|(_, arrival)| arrival.is_none());
    // CoDel drops from a queue that never fills.
    if !has_drops || !stream.drained || shape.discipline != Discipline::DropTail {
        return None;
    }
    let waits = expected.iter().filter_map(|(packet_times, arrival)| {
        let expected_wait = (*arrival)? - packet_times.departure?;
        Some((expected_wait, packet_times.delay()?))
    });
    let waits: Vec<(i64, Span)> = waits.collect();
    let longest_wait = waits
        .iter()
        .map(|(expected_wait, _)| *expected_wait)
        .max()?;
    let almost_longest = longest_wait - transmission_time(stream.bytes, rate).times(2).nanos();
    let full_queue_waits = waits
        .iter()
        .filter(|(expected_wait, _)| *expected_wait >= almost_longest);
    let mut full_queue_waits: Vec<Span> = full_queue_waits.map(|(_, wait)| *wait).collect();
    full_queue_waits.sort_unstable();
    let median = *full_queue_waits.get(full_queue_waits.len() / 2)?;
    let bytes_in = |span: Span| {
        let nanos = u128::try_from(span.nanos()).unwrap_or(0);
        u64::try_from(nanos * u128::from(rate.0) / 8_000_000_000).unwrap_or(u64::MAX)
    };
    let measured = ByteSize(bytes_in(median - wire.delay));
    // The frames may miss the limit by slightly more than their own length.
    let slack = 3 * u64::from(stream.bytes)
        + configured.0 / 50
        + bytes_in(DELAY_TOLERANCE.times(2) + wire.jitter.max_deviation());
    Some(Check {
        expected: configured,
        measured,
        ok: measured.0.abs_diff(configured.0) <= slack,
    })
}

/// The frames that were sent, in order, with their expected arrivals.
fn expected(stream: &Stream, course: &RequestedLink<'_>) -> Vec<Expected> {
    let sent_packets = stream
        .packet_times
        .iter()
        .filter(|packet_times| packet_times.departure.is_some());
    let sent_packets: Vec<PacketTimes> = sent_packets.copied().collect();
    let departures: Vec<i64> = sent_packets
        .iter()
        .filter_map(|packet_times| packet_times.departure)
        .collect();
    let arrivals = course.replay_certain(&departures, stream.bytes);
    sent_packets.into_iter().zip(arrivals).collect()
}

#[cfg(test)]
mod tests {
    use super::super::replay::requested;
    use super::*;
    use crate::gate::{QueueLimit, Shape};

    fn shape(rate: u64) -> Shape {
        let mut shape = Shape {
            rate: Some(BitRate(rate)),
            queue: QueueLimit::Bytes(ByteSize(20_000)),
            ..Shape::default()
        };
        shape.wire.delay = Span::from_millis(3);
        shape
    }

    /// 200 frames of 1000 bytes, 600 us apart, through a link of `rate`.
    fn stream_through(rate: u64) -> Stream {
        let departures: Vec<i64> = (0..200).map(|number| number * 600_000).collect();
        let arrivals = requested(&shape(rate)).replay(&departures, 1_000, 0);
        let packet_times =
            departures
                .iter()
                .zip(arrivals)
                .map(|(departure, arrival)| PacketTimes {
                    departure: Some(*departure),
                    arrival,
                });
        Stream {
            packet_times: packet_times.collect(),
            bytes: 1_000,
            drained: true,
        }
    }

    #[test]
    fn a_rate_off_by_2_5_percent_fails_the_check() {
        let stream = stream_through(8_000_000);
        let rate = checks(&stream, &requested(&shape(8_000_000)))
            .0
            .expect("a rate");
        assert!(rate.ok && rate.measured == BitRate(8_000_000), "{rate:?}");
        let slower = checks(&stream, &requested(&shape(8_200_000)))
            .0
            .expect("a rate");
        assert!(!slower.ok, "{slower:?}");
        let faster = checks(&stream_through(8_200_000), &requested(&shape(8_000_000)))
            .0
            .expect("a rate");
        assert!(!faster.ok, "{faster:?}");
    }

    #[test]
    fn a_link_that_lets_no_full_frame_through_has_no_rate_and_is_not_ok() {
        let mut stream = stream_through(8_000_000);
        stream
            .packet_times
            .iter_mut()
            .for_each(|packet_times| packet_times.arrival = None);
        let rate = checks(&stream, &requested(&shape(8_000_000)))
            .0
            .expect("a verdict");
        assert!(!rate.ok && rate.measured == BitRate(0), "{rate:?}");
    }

    #[test]
    fn a_link_that_its_sender_cannot_fill_has_no_measured_rate() {
        assert_eq!(
            checks(&stream_through(20_000_000), &requested(&shape(20_000_000))).0,
            None
        );
        assert_eq!(
            checks(&stream_through(20_000_000), &requested(&shape(20_000_000))).1,
            None
        );
    }

    #[test]
    fn a_queue_is_measured_by_its_longest_wait() {
        let stream = stream_through(8_000_000);
        let queue = checks(&stream, &requested(&shape(8_000_000)))
            .1
            .expect("it was full");
        assert!(
            queue.ok && queue.measured.0.abs_diff(20_000) <= 1_000,
            "{queue:?}"
        );
        let mut larger = shape(8_000_000);
        larger.queue = QueueLimit::Bytes(ByteSize(28_000));
        let queue_check = checks(&stream, &requested(&larger)).1;
        assert!(queue_check.is_none_or(|queue| !queue.ok), "{queue_check:?}");
        let undrained = Stream {
            drained: false,
            ..stream_through(8_000_000)
        };
        assert_eq!(checks(&undrained, &requested(&shape(8_000_000))).1, None);
    }
}
