//! Two captures as one measurement of their clocks: the limits that they give, and when they give none.

use std::path::Path;

use neph_stats::{ClockNature, OffsetLimits, RetainedLimits};
use neph_text::counted::counted;

use crate::clocks::active_time::ActiveTime;
use crate::reading::ReadError;
use crate::reading::snaplen::snaplen_remedy;
use crate::{CaptureCounts, MatchedCaptures};

/// One limit of each kind is kept per this many nanoseconds. If that gives more than [`MAX_LIMITS`], the time
/// in which packets passed is divided into that many parts.
const MIN_PERIOD_NANOS: i64 = 10_000_000;
const MAX_LIMITS: usize = 100_000;

/// The tightest limits that two captures give for the offset of their clocks.
pub fn retained_limits(captures: &MatchedCaptures, nature: ClockNature) -> RetainedLimits {
    let (above, below) = captures.limits();
    let limits = OffsetLimits {
        at_most: &above,
        at_least: &below,
    };
    let count = above.len().max(below.len());
    let active_nanos = if count > MAX_LIMITS {
        ActiveTime::from_limits(limits, nature.horizon).total_nanos
    } else {
        0
    };
    let max_count = i64::try_from(MAX_LIMITS).unwrap_or(i64::MAX);
    let mut retained = RetainedLimits::per_period(MIN_PERIOD_NANOS.max(active_nanos / max_count));
    for limit in above {
        retained.at_most(limit);
    }
    for limit in below {
        retained.at_least(limit);
    }
    retained
}

/// Refuses captures that lack headers: such packets cannot be recognized at another point.
///
/// # Errors
/// More than half of the packets of one point lack headers.
pub fn refuse_truncated(points: [(&Path, &CaptureCounts); 2]) -> Result<(), ReadError> {
    let is_mostly_truncated =
        |(_, point): &(&Path, &CaptureCounts)| point.truncated > point.packets / 2;
    points
        .into_iter()
        .find(is_mostly_truncated)
        .map_or(Ok(()), |(name, point)| {
            Err(ReadError::wrong(format!(
                "{} of {} are cut within their headers, and cannot be known again; {}",
                counted(point.truncated, "packet"),
                name.display(),
                snaplen_remedy()
            )))
        })
}

/// Refuses two captures that are copies: a copy of a capture, or of a part of it, is not a second point.
///
/// # Errors
/// All packets of both have the same timestamps.
pub fn refuse_one_capture(
    (first, second): (&Path, &Path),
    captures: &MatchedCaptures,
    remedy: &str,
) -> Result<(), ReadError> {
    if !captures.is_one_capture() {
        return Ok(());
    }
    Err(ReadError::wrong(format!(
        "the stamps of {} and {} are the same, of all {} that are in both: this is one capture twice; \
         {remedy}",
        first.display(),
        second.display(),
        counted(captures.same_timestamp, "packet")
    )))
}

/// Refuses one file given twice, as it has one clock. A missing file is reported when it is read.
///
/// # Errors
/// Both names refer to one file.
pub fn refuse_same_file(first_path: &Path, second_path: &Path) -> Result<(), ReadError> {
    match (first_path.canonicalize(), second_path.canonicalize()) {
        (Ok(first), Ok(other)) if first == other && first.is_file() => {
            Err(ReadError::wrong(format!(
                "--captures {} {}: that is one file twice; give the captures of both ends",
                first_path.display(),
                second_path.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses captures that cannot be compared, with a remedy.
///
/// # Errors
/// They share no packet, or only packets that give no limit.
pub fn refuse_unmatched(
    (first, second): (&Path, &Path),
    captures: &MatchedCaptures,
) -> Result<(), ReadError> {
    let (name, other) = (first.display(), second.display());
    if captures.crossings.is_empty() && captures.one_direction + captures.direction_ties == 0 {
        refuse_truncated([(first, &captures.first), (second, &captures.second)])?;
        if captures.ambiguous_in_both > 0 {
            return Err(ReadError::wrong(format!(
                "{name} or {other} contains {} several times, so packets cannot be matched; capture one interface, or remove exact duplicates (editcap -w 0.02 FILE NEW)",
                counted(captures.ambiguous_in_both, "packet")
            )));
        }
        return Err(ReadError::wrong(format!(
            "no packet of {name} is in {other}; capture the same traffic at both ends, at the same time \
             and not behind a NAT"
        )));
    }
    refuse_one_capture((first, second), captures, "give the captures of both ends")?;
    if captures.crossings.is_empty() && captures.direction_ties > 0 {
        return Err(ReadError::wrong(format!(
            "of {} in {name} and {other} as many say that the one point comes first as say it of the other; \
             capture at points with more between them",
            counted(captures.direction_ties, "packet")
        )));
    }
    if captures.crossings.is_empty() {
        return Err(one_direction_error(first, second));
    }
    Ok(())
}

/// The error for captures that share packets of one direction only.
pub fn one_direction_error(first: &Path, second: &Path) -> ReadError {
    ReadError::wrong(format!(
        "{} and {} share packets of one direction only; the clocks' offset needs requests and replies (of a TAP with a \
         file for each direction give both: a.pcap+b.pcap)",
        first.display(),
        second.display()
    ))
}
