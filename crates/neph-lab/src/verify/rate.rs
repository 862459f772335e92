//! The output rate of a stream, and the queue that it filled.

use neph_model::{BitRate, ByteSize, Span};

use super::exchange::{PacketTimes, Stream};
use super::replay::RequestedLink;
use super::{DELAY_TOLERANCE, QuantityCheck, Z99, loss};
use crate::gate::{Discipline, transmission_time};

/// Minimum number of frames for a rate.
const MIN_ARRIVALS: usize = 20;
/// Minimum utilisation of the link by a stream that shows its rate.
const MIN_UTILISATION: f64 = 0.995;
/// Tolerance of a rate.
const RATE_TOLERANCE: f64 = 0.01;

/// Checks rate and queue with a stream.
pub(super) fn check(
    stream: &Stream,
    requested_link: &RequestedLink<'_>,
) -> (
    Option<QuantityCheck<BitRate>>,
    Option<QuantityCheck<ByteSize>>,
) {
    let expected = expected_frames(stream, requested_link);
    (
        check_rate(stream, requested_link, &expected),
        check_queue(stream, requested_link, &expected),
    )
}

/// A frame that was sent, and its expected arrival.
type ExpectedFrame = (PacketTimes, Option<i64>);

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
fn check_rate(
    stream: &Stream,
    requested_link: &RequestedLink<'_>,
    expected: &[ExpectedFrame],
) -> Option<QuantityCheck<BitRate>> {
    let configured = requested_link.shape.rate?;
    let wire = requested_link.wire();
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
    let loss_share = wire.loss.fraction();
    // With a schedule the rate at that moment may differ: the output of the gate counts.
    let configured = if requested_link.has_schedule {
        BitRate(expected_rate.round() as u64)
    } else {
        configured
    };
    if expected_rate < MIN_UTILISATION * configured.0 as f64 || loss_share >= 1.0 {
        return None;
    }
    let measured = rate_of(&arrivals, stream.bytes).unwrap_or(0.0) / (1.0 - loss_share);
    let frames = arrivals.len().max(1) as f64;
    let nominal_nanos = frames * f64::from(stream.bytes) * 8e9 / configured.0 as f64;
    let tolerance = RATE_TOLERANCE
        + 2.0 * wire.jitter.max_deviation().nanos() as f64 / nominal_nanos
        + Z99 * (loss_share * loss::variance_inflation(&wire.loss) / frames).sqrt();
    Some(QuantityCheck {
        expected: configured,
        measured: BitRate(measured.round() as u64),
        is_ok: (measured / configured.0 as f64 - 1.0).abs() <= tolerance,
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
    requested_link: &RequestedLink<'_>,
    expected: &[ExpectedFrame],
) -> Option<QuantityCheck<ByteSize>> {
    let (shape, wire) = (requested_link.shape, requested_link.wire());
    let rate = shape.rate?;
    let configured = shape.queue.bytes_of(stream.bytes);
    let has_drops = expected.iter().any(|(_, arrival)| arrival.is_none());
    // CoDel drops from a queue that never fills.
    if !has_drops || !stream.is_drained || shape.discipline != Discipline::DropTail {
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
    let min_expected_wait = longest_wait - transmission_time(stream.bytes, rate).times(2).nanos();
    let full_queue_waits = waits
        .iter()
        .filter(|(expected_wait, _)| *expected_wait >= min_expected_wait);
    let mut full_queue_waits: Vec<Span> = full_queue_waits.map(|(_, wait)| *wait).collect();
    full_queue_waits.sort_unstable();
    let median = *full_queue_waits.get(full_queue_waits.len() / 2)?;
    let bytes_in = |span: Span| {
        let nanos = u128::try_from(span.nanos()).unwrap_or(0);
        u64::try_from(nanos * u128::from(rate.0) / 8_000_000_000).unwrap_or(u64::MAX)
    };
    let measured = ByteSize(bytes_in(median - wire.delay));
    // The frames may miss the limit by slightly more than their own length.
    let tolerance = 3 * u64::from(stream.bytes)
        + configured.0 / 50
        + bytes_in(DELAY_TOLERANCE.times(2) + wire.jitter.max_deviation());
    Some(QuantityCheck {
        expected: configured,
        measured,
        is_ok: measured.0.abs_diff(configured.0) <= tolerance,
    })
}

/// The frames that were sent, in order, with their expected arrivals.
fn expected_frames(stream: &Stream, requested_link: &RequestedLink<'_>) -> Vec<ExpectedFrame> {
    let sent_packets = stream
        .packet_times
        .iter()
        .filter(|packet_times| packet_times.departure.is_some());
    let sent_packets: Vec<PacketTimes> = sent_packets.copied().collect();
    let departures: Vec<i64> = sent_packets
        .iter()
        .filter_map(|packet_times| packet_times.departure)
        .collect();
    let arrivals = requested_link.replay_without_randomness(&departures, stream.bytes);
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
            is_drained: true,
        }
    }

    #[test]
    fn a_rate_off_by_2_5_percent_fails_the_check() {
        let stream = stream_through(8_000_000);
        let rate = check(&stream, &requested(&shape(8_000_000)))
            .0
            .expect("a rate");
        assert!(
            rate.is_ok && rate.measured == BitRate(8_000_000),
            "{rate:?}"
        );
        let slower = check(&stream, &requested(&shape(8_200_000)))
            .0
            .expect("a rate");
        assert!(!slower.is_ok, "{slower:?}");
        let faster = check(&stream_through(8_200_000), &requested(&shape(8_000_000)))
            .0
            .expect("a rate");
        assert!(!faster.is_ok, "{faster:?}");
    }

    #[test]
    fn a_link_that_drops_all_full_frames_fails_the_rate_check() {
        let mut stream = stream_through(8_000_000);
        stream
            .packet_times
            .iter_mut()
            .for_each(|packet_times| packet_times.arrival = None);
        let rate = check(&stream, &requested(&shape(8_000_000)))
            .0
            .expect("a verdict");
        assert!(!rate.is_ok && rate.measured == BitRate(0), "{rate:?}");
    }

    #[test]
    fn a_link_that_its_sender_cannot_fill_has_no_measured_rate() {
        assert_eq!(
            check(&stream_through(20_000_000), &requested(&shape(20_000_000))).0,
            None
        );
        assert_eq!(
            check(&stream_through(20_000_000), &requested(&shape(20_000_000))).1,
            None
        );
    }

    #[test]
    fn a_queue_is_measured_by_its_longest_wait() {
        let stream = stream_through(8_000_000);
        let queue = check(&stream, &requested(&shape(8_000_000)))
            .1
            .expect("it was full");
        assert!(
            queue.is_ok && queue.measured.0.abs_diff(20_000) <= 1_000,
            "{queue:?}"
        );
        let mut larger = shape(8_000_000);
        larger.queue = QueueLimit::Bytes(ByteSize(28_000));
        let queue_check = check(&stream, &requested(&larger)).1;
        assert!(
            queue_check.is_none_or(|queue| !queue.is_ok),
            "{queue_check:?}"
        );
        let undrained = Stream {
            is_drained: false,
            ..stream_through(8_000_000)
        };
        assert_eq!(check(&undrained, &requested(&shape(8_000_000))).1, None);
    }
}
