//! Which clock stamped each point, segment by segment: one for both, two that are compared, or none that
//! can be told; and what is to be said where packets contradict it, or none passed.
//!
//! Does not own what one clock differs from another by (offsets).

use std::path::Path;

use crate::{Followed, Met, Way};

use super::offsets::Offsets;
use super::point::Point;
use super::strangers;
use crate::clocks::pair::{refuse_cut, refuse_one_capture};
use crate::clocks::read_offsets::ReadOffsets;
use crate::clocks::words;
use crate::reading::ReadError;
use neph_stats::ClockNature;
use neph_text::counted::counted;

/// Stamps of one kernel's processors differ by less, in nanoseconds.
const ONE_CLOCK: i64 = 100_000;
/// Instead of one capture twice.
const ANOTHER_POINT: &str =
    "give captures of two points, or --clock same where one kernel stamped both";

/// What is known of the clocks before any packet.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// How their rates wander.
    pub nature: ClockNature,
    /// Of each segment whether one clock stamped both points.
    pub one_clock: &'a [bool],
}

/// Of each segment the later point's clock against the earlier one's. A segment that no packet passed
/// is told as such, and leaves the others as they are. And what is to be said of clocks that are not one.
///
/// # Errors
/// No packet passed any segment, or a clock that cannot be compared.
pub fn clocks(
    points: &[Point],
    followed: &Followed,
    asked: &Asked<'_>,
    say: &dyn Fn(&str),
) -> Result<(Vec<Offsets>, Vec<String>), ReadError> {
    let Asked { nature, one_clock } = *asked;
    let names: Vec<String> = points.iter().map(|point| point.name.clone()).collect();
    let is_any_met = (0..one_clock.len()).any(|segment| followed.is_met(segment));
    let (mut clocks, mut doubts) = (Vec::new(), strangers::hints(&names, followed));
    for said in one_direction(points, followed) {
        say(&said);
    }
    for (segment, is_one) in one_clock.iter().enumerate() {
        let met = followed.meeting(segment);
        let (name, other) = (&points[segment].name, &points[segment + 1].name);
        let paths = (Path::new(name), Path::new(other));
        if !followed.is_met(segment) {
            let why = strangers::alike(&names, segment, followed).unwrap_or_else(|| {
                unmet(points, segment, &met) + &strangers::renamed(&names, segment, followed)
            });
            if !is_any_met {
                return Err(ReadError::Wrong(why));
            }
            say(&format!("{name} - {other} is not told: {why}"));
        }
        clocks.push(if *is_one {
            doubts.extend(not_one_clock((name, other), &met));
            doubts.extend(one_stamp((name, other), &met));
            Offsets::Same
        } else if !followed.is_met(segment) {
            Offsets::Unknown
        } else {
            refuse_one_capture(paths, &met, ANOTHER_POINT)?;
            let read = ReadOffsets::between(&points[segment].clock, &points[segment + 1].clock);
            Offsets::fitted(&met, read, nature).map_err(ReadError::failed)?
        });
    }
    Ok((clocks, doubts))
}

/// What is to be said where one clock cannot have stamped a segment's packets: those of one way arrive
/// before they leave, those of the other do not. Of both ways it would be the order of the points.
fn not_one_clock((name, other): (&String, &String), met: &Met) -> Option<String> {
    let early = |of: Way| {
        let ways = met.crossings.iter().filter(move |one| one.way == of);
        ways.map(move |one| match of {
            Way::There => one.here.saturating_sub(one.there),
            Way::Back => one.there.saturating_sub(one.here),
        })
    };
    let [there, back] = [Way::There, Way::Back].map(|way| {
        let beyond = early(way).filter(|nanos| *nanos > ONE_CLOCK);
        (beyond.count(), early(way).max().unwrap_or(i64::MIN))
    });
    let remedy = "leave out --clock same, and give each its host (NAME@HOST=...)";
    if met.crossings.is_empty() && met.one_way > 0 {
        return Some(format!(
            "which way packets went cannot be told by the one clock of {name} and {other}: if their clocks \
             are two, {remedy}"
        ));
    }
    let (many, most) = if there.0 > back.0 { there } else { back };
    if many == 0 || there.0.min(back.0) > 0 {
        return None;
    }
    Some(format!(
        "{} arrived up to {} before they left by the one clock of {name} and {other}: their clocks are two; \
         {remedy}",
        counted(many as u64, "packet"),
        words::up(most)
    ))
}

/// What is to be said where both points have the kernel's one stamp of each packet of a way.
fn one_stamp((name, other): (&String, &String), met: &Met) -> Option<String> {
    let is_one = |way: Way| {
        let mut of = met.crossings.iter().filter(|one| one.way == way).peekable();
        of.peek().is_some() && of.all(|one| one.here == one.there)
    };
    let ways = match [Way::There, Way::Back].map(is_one) {
        [false, false] => return None,
        [true, true] => "there and back",
        [true, false] => "there",
        [false, true] => "back",
    };
    Some(format!(
        "all packets {ways} have the same stamp at {name} and {other}: the kernel stamped them once for both, \
         as what comes out of a tunnel; 0 ns is not measured"
    ))
}

/// What is to be said of points whose captures have one direction alone.
fn one_direction(points: &[Point], followed: &Followed) -> Vec<String> {
    let points = points.iter().enumerate();
    let halves = points.filter(|(place, _)| followed.is_one_direction(*place));
    let said = halves.map(|(_, point)| {
        let (name, file) = (&point.name, point.path.display());
        format!(
            "{name} has packets of one direction only; of a TAP with a file for each direction give both, and \
             they are merged by time: {name}={file}+OTHER.pcap"
        )
    });
    said.collect()
}

/// Why no packet is at both points of a segment, as far as can be seen, and what to try.
fn unmet(points: &[Point], segment: usize, met: &Met) -> String {
    let names: Vec<&str> = points.iter().map(|point| point.name.as_str()).collect();
    let (name, other) = (names[segment], names[segment + 1]);
    let cut = refuse_cut([(Path::new(name), &met.here), (Path::new(other), &met.there)]);
    if let Err(ReadError::Wrong(cut)) = cut {
        return cut;
    }
    let is_behind = strangers::is_shorter_behind(&names, segment);
    let side = strangers::side(&names, segment, is_behind);
    let who = match side {
        [one] => format!("{one} sees"),
        many => format!("{} see", many.join(" and ")),
    };
    format!(
        "no packet of {name} is in {other}; capture the same traffic at both, at the same time; with a \
         translator between them give its rule ({}, where {who} OUTER what the others call INNER)",
        strangers::rules(side, "OUTER", "INNER")
    )
}
