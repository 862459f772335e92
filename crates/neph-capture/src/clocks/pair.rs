//! Two captures as one measurement of their clocks: what they prove, and when they prove nothing.

use std::path::Path;

use neph_stats::{ClockNature, KeptLimits, OffsetLimits};
use neph_text::counted::counted;

use crate::clocks::heard::Heard;
use crate::reading::ReadError;
use crate::reading::enough::advice;
use crate::{Met, Point};

/// One limit of each kind is kept in so long; of more than [`MOST`], in so small a part of the time in
/// which packets passed.
const STRETCH: i64 = 10_000_000;
const MOST: usize = 100_000;

/// The tightest of what two captures prove of their clocks.
pub fn kept(met: &Met, nature: ClockNature) -> KeptLimits {
    let (above, below) = met.limits();
    let limits = OffsetLimits {
        at_most: &above,
        at_least: &below,
    };
    let many = above.len().max(below.len());
    let long = if many > MOST {
        Heard::of(limits, nature.horizon).long
    } else {
        0
    };
    let most = i64::try_from(MOST).unwrap_or(i64::MAX);
    let mut kept = KeptLimits::each(STRETCH.max(long / most));
    for limit in above {
        kept.at_most(limit);
    }
    for limit in below {
        kept.at_least(limit);
    }
    kept
}

/// Packets whose headers a capture did not keep are known again nowhere.
///
/// # Errors
/// Of one point these are most.
pub fn refuse_cut(points: [(&Path, &Point); 2]) -> Result<(), ReadError> {
    let most = |(_, point): &(&Path, &Point)| point.cut > point.packets / 2;
    points
        .into_iter()
        .find(most)
        .map_or(Ok(()), |(name, point)| {
            Err(ReadError::wrong(format!(
                "{} of {} are cut within their headers, and cannot be known again; {}",
                counted(point.cut, "packet"),
                name.display(),
                advice()
            )))
        })
}

/// A copy of a capture, or a part of it, is no other point.
///
/// # Errors
/// All packets of both have the same stamps.
pub fn refuse_one_capture(
    (here, there): (&Path, &Path),
    met: &Met,
    remedy: &str,
) -> Result<(), ReadError> {
    if !met.is_one_capture() {
        return Ok(());
    }
    Err(ReadError::wrong(format!(
        "the stamps of {} and {} are the same, of all {} that are in both: this is one capture twice; \
         {remedy}",
        here.display(),
        there.display(),
        counted(met.same_stamp, "packet")
    )))
}

/// One file has one clock. What cannot be found is told where it is read.
///
/// # Errors
/// Both names are of one file.
pub fn refuse_twice(here: &Path, there: &Path) -> Result<(), ReadError> {
    match (here.canonicalize(), there.canonicalize()) {
        (Ok(one), Ok(other)) if one == other && one.is_file() => Err(ReadError::wrong(format!(
            "--captures {} {}: that is one file twice; give the captures of both ends",
            here.display(),
            there.display()
        ))),
        _ => Ok(()),
    }
}

/// What cannot be compared, and what would help.
///
/// # Errors
/// They share no packet, or packets that prove nothing.
pub fn refuse_unmet((here, there): (&Path, &Path), met: &Met) -> Result<(), ReadError> {
    let (name, other) = (here.display(), there.display());
    if met.crossings.is_empty() && met.one_way + met.even == 0 {
        refuse_cut([(here, &met.here), (there, &met.there)])?;
        if met.alike_in_both > 0 {
            return Err(ReadError::wrong(format!(
                "of {name} and {other} one has {} several times, and which is which cannot be told; \
                 capture one interface, or take out copies that are the same to the byte (editcap -w 0.02 \
                 FILE NEW)",
                counted(met.alike_in_both, "packet")
            )));
        }
        return Err(ReadError::wrong(format!(
            "no packet of {name} is in {other}; capture the same traffic at both ends, at the same time \
             and not behind a NAT"
        )));
    }
    refuse_one_capture((here, there), met, "give the captures of both ends")?;
    if met.crossings.is_empty() && met.even > 0 {
        return Err(ReadError::wrong(format!(
            "of {} in {name} and {other} as many say that the one point comes first as say it of the other; \
             capture at points with more between them",
            counted(met.even, "packet")
        )));
    }
    if met.crossings.is_empty() {
        return Err(too_few(here, there));
    }
    Ok(())
}

/// Why captures of one direction are refused.
pub fn too_few(here: &Path, there: &Path) -> ReadError {
    ReadError::wrong(format!(
        "{} and {} share packets of one direction only; the clocks' offset needs requests and replies (of a TAP with a \
         file for each direction give both: a.pcap+b.pcap)",
        here.display(),
        there.display()
    ))
}
