//! Waits until a recording is over, and reports its progress.

use std::time::Duration;

use neph_model::{Span, Stop};
use neph_sys::clock;

use super::course::Tally;
use super::point_text::Point;
use super::{Received, RecordingOptions};
use crate::ListenError;

/// Maximum time until the end is noticed.
const PATIENCE: Duration = Duration::from_millis(50);
/// Interval between progress reports, nanoseconds.
const OFTEN: i64 = 1_000_000_000;

/// Why a recording is over. Numbers are indices of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The duration is over.
    Duration,
    /// The user pressed Ctrl-C.
    Stopped,
    /// A point has the maximum number of packets.
    PacketLimit,
    /// A point has the maximum number of bytes.
    ByteLimit(usize),
    /// A point ended by itself.
    PointEnded(usize),
}

/// Waits until a point records; returns false if it has ended before.
pub(super) fn has_begun(tally: &Tally, stop: &Stop) -> Result<bool, ListenError> {
    while !tally.has_begun() {
        if stop.is_set() {
            let sentence = "interrupted before all points were recorded".to_owned();
            return Err(ListenError::Interrupted(sentence));
        }
        if tally.has_ended() {
            return Ok(false);
        }
        clock::nap(PATIENCE);
    }
    Ok(true)
}

/// Waits until the recording is over.
pub(super) fn wait_for_end(
    points: &[Point],
    tallies: &[Tally],
    options: &RecordingOptions,
    received: Received<'_>,
) -> Ending {
    let began = clock::raw().0;
    let length = options.duration.map_or(i64::MAX, Span::nanos);
    let mut reported_intervals = 0;
    let ending = loop {
        let since = clock::raw().0 - began;
        if let Some(ending) = ending(tallies) {
            break ending;
        }
        if received.stop.is_set() {
            break Ending::Stopped;
        }
        if since >= length {
            break Ending::Duration;
        }
        if let Some(progress) = received.progress
            && since / OFTEN > reported_intervals
        {
            reported_intervals = since / OFTEN;
            progress(&line(reported_intervals, points, tallies));
        }
        clock::nap(PATIENCE.min(Duration::from_nanos(
            u64::try_from(length - since).unwrap_or(0),
        )));
    };
    if let Some(progress) = received.progress
        && reported_intervals > 0
    {
        progress("");
    }
    ending
}

fn ending(tallies: &[Tally]) -> Option<Ending> {
    tallies.iter().enumerate().find_map(|(index, tally)| {
        match (tally.is_at_limit(), tally.is_enough(), tally.has_ended()) {
            (true, _, _) => Some(Ending::ByteLimit(index)),
            (_, true, _) => Some(Ending::PacketLimit),
            (_, _, true) => Some(Ending::PointEnded(index)),
            _ => None,
        }
    })
}

fn line(seconds: i64, points: &[Point], tallies: &[Tally]) -> String {
    let each = points.iter().zip(tallies).map(|(point, tally)| {
        let (packets, lost) = (tally.packets(), tally.losses());
        match lost {
            0 => format!("  {} {packets}", point.name),
            _ => format!("  {} {packets} ({lost} lost)", point.name),
        }
    });
    format!("{seconds} s, packets:{}", each.collect::<String>())
}
