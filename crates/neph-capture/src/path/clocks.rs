//! The clocks of the points, segment by segment: one for both, two that are compared, or unknown. Also the
//! messages for packets that contradict this, and for segments that no packet passed.
//!
//! Does not own the offset of two clocks (offsets).

use std::path::Path;

use crate::{Direction, Followed, MatchedCaptures};

use super::offsets::Offsets;
use super::point::Point;
use super::unmatched;
use crate::clocks::pair::{refuse_one_capture, refuse_truncated};
use crate::clocks::read_offsets::ReadOffsets;
use crate::clocks::value_format;
use crate::reading::ReadError;
use neph_stats::ClockNature;
use neph_text::counted::counted;

/// Timestamps of one kernel's processors differ by less than this, in nanoseconds.
const ONE_CLOCK_TOLERANCE_NANOS: i64 = 100_000;
/// Remedy where one capture is given twice.
const SAME_CAPTURE_REMEDY: &str =
    "give captures of two points, or --clock same where one kernel stamped both";

/// What is known of the clocks before any packet.
#[derive(Clone, Copy, Debug)]
pub struct KnownClocks<'a> {
    /// How much their rates wander.
    pub nature: ClockNature,
    /// For each segment, whether both points have one clock.
    pub one_clock: &'a [bool],
}

/// For each segment the later point's clock against the earlier one's, and messages about clocks. A segment
/// that no packet passed is reported and does not affect the others.
///
/// # Errors
/// No packet passed any segment, or a clock cannot be compared.
pub fn segment_clocks(
    points: &[Point],
    followed: &Followed,
    known: &KnownClocks<'_>,
    print_message: &dyn Fn(&str),
) -> Result<(Vec<Offsets>, Vec<String>), ReadError> {
    let KnownClocks { nature, one_clock } = *known;
    let names: Vec<String> = points.iter().map(|point| point.name.clone()).collect();
    let has_any_common_packets =
        (0..one_clock.len()).any(|segment| followed.has_common_packets(segment));
    let (mut clocks, mut warnings) = (Vec::new(), unmatched::messages(&names, followed));
    for message in one_direction_messages(points, followed) {
        print_message(&message);
    }
    for (segment, has_one_clock) in one_clock.iter().enumerate() {
        let captures = followed.matched_captures(segment);
        let (name, other) = (&points[segment].name, &points[segment + 1].name);
        let paths = (Path::new(name), Path::new(other));
        if !followed.has_common_packets(segment) {
            let reason = unmatched::identical(&names, segment, followed).unwrap_or_else(|| {
                no_common_packets_message(points, segment, &captures)
                    + &unmatched::translation_rules(&names, segment, followed)
            });
            if !has_any_common_packets {
                return Err(ReadError::InvalidInput(reason));
            }
            print_message(&format!("{name} - {other} has no result: {reason}"));
        }
        clocks.push(if *has_one_clock {
            warnings.extend(two_clocks_message((name, other), &captures));
            warnings.extend(same_timestamps_message((name, other), &captures));
            Offsets::Same
        } else if !followed.has_common_packets(segment) {
            Offsets::Unknown
        } else {
            refuse_one_capture(paths, &captures, SAME_CAPTURE_REMEDY)?;
            let readings = ReadOffsets::combine(&points[segment].clock, &points[segment + 1].clock);
            Offsets::fitted(&captures, readings, nature).map_err(ReadError::failed)?
        });
    }
    Ok((clocks, warnings))
}

/// Message where a segment cannot have one clock: packets of one direction arrive before they depart, those
/// of the other do not. If both did, the order of the points would be wrong.
fn two_clocks_message(
    (name, other): (&String, &String),
    captures: &MatchedCaptures,
) -> Option<String> {
    let nanos_early = |direction: Direction| {
        let directions = captures
            .crossings
            .iter()
            .filter(move |crossing| crossing.direction == direction);
        directions.map(move |crossing| match direction {
            Direction::Forward => crossing.first_at.saturating_sub(crossing.second_at),
            Direction::Reverse => crossing.second_at.saturating_sub(crossing.first_at),
        })
    };
    let [forward, reverse] = [Direction::Forward, Direction::Reverse].map(|direction| {
        let impossible = nanos_early(direction).filter(|nanos| *nanos > ONE_CLOCK_TOLERANCE_NANOS);
        (
            impossible.count(),
            nanos_early(direction).max().unwrap_or(i64::MIN),
        )
    });
    let remedy = "leave out --clock same, and give each its host (NAME@HOST=...)";
    if captures.crossings.is_empty() && captures.one_direction > 0 {
        return Some(format!(
            "directions of packets are unknown by the one clock of {name} and {other}: if they have two clocks, {remedy}"
        ));
    }
    let (count, max) = if forward.0 > reverse.0 {
        forward
    } else {
        reverse
    };
    if count == 0 || forward.0.min(reverse.0) > 0 {
        return None;
    }
    Some(format!(
        "{} arrived up to {} before they left by the one clock of {name} and {other}: their clocks are two; \
         {remedy}",
        counted(count as u64, "packet"),
        value_format::bound_text(max)
    ))
}

/// Message where both points have the same kernel timestamp for each packet of a direction.
fn same_timestamps_message(
    (name, other): (&String, &String),
    captures: &MatchedCaptures,
) -> Option<String> {
    let has_same_timestamps = |direction: Direction| {
        let mut crossings = captures
            .crossings
            .iter()
            .filter(|crossing| crossing.direction == direction)
            .peekable();
        crossings.peek().is_some()
            && crossings.all(|crossing| crossing.first_at == crossing.second_at)
    };
    let directions = match [Direction::Forward, Direction::Reverse].map(has_same_timestamps) {
        [false, false] => return None,
        [true, true] => "in both directions",
        [true, false] => "forward",
        [false, true] => "reverse",
    };
    Some(format!(
        "all packets {directions} have equal timestamps at {name} and {other}: the kernel timestamped them only once, as on tunnels and bridges. The delay between the two points is unknown, not 0 ns"
    ))
}

/// Messages about points whose captures have one direction only.
fn one_direction_messages(points: &[Point], followed: &Followed) -> Vec<String> {
    let points = points.iter().enumerate();
    let one_sided = points.filter(|(index, _)| followed.is_one_direction(*index));
    let messages = one_sided.map(|(_, point)| {
        let (name, file) = (&point.name, point.path.display());
        format!(
            "{name} has packets of one direction only; of a TAP with a file for each direction give both, and \
             they are merged by time: {name}={file}+OTHER.pcap"
        )
    });
    messages.collect()
}

/// Why no packet is at both points of a segment, as far as known, and a remedy.
fn no_common_packets_message(
    points: &[Point],
    segment: usize,
    captures: &MatchedCaptures,
) -> String {
    let names: Vec<&str> = points.iter().map(|point| point.name.as_str()).collect();
    let (name, other) = (names[segment], names[segment + 1]);
    let cut = refuse_truncated([
        (Path::new(name), &captures.first),
        (Path::new(other), &captures.second),
    ]);
    if let Err(ReadError::InvalidInput(cut)) = cut {
        return cut;
    }
    let is_behind = unmatched::is_side_behind_shorter(&names, segment);
    let side = unmatched::points_on_side(&names, segment, is_behind);
    let observers = match side {
        [side] => format!("{side} sees"),
        sides => format!("{} see", sides.join(" and ")),
    };
    format!(
        "no packet of {name} is in {other}; capture the same traffic at both, at the same time. With NAT between them give its rule ({}, where {observers} OUTER what the others call INNER)",
        unmatched::nat_rules(side, "OUTER", "INNER")
    )
}
