//! Two captures of the same packets: offset of the second clock minus the first.

use std::path::Path;

use neph_capture::{CaptureMatcher, MatchedCaptures};
use neph_model::Span;
use neph_stats::{ClockFit, StatsError};
use neph_wire::dissect::NoPacket;

use super::{Args, Method, figure};
use crate::exit::{Failure, Outcome};
use crate::{interrupt, output, read};
use neph_capture::clocks::active_time::ActiveTime;
use neph_capture::clocks::added::Added;
use neph_capture::clocks::course::Course;
use neph_capture::clocks::drift::Drift;
use neph_capture::clocks::formula::{Formula, passed, split_off, until_next};
use neph_capture::clocks::pair::{refuse_duplicate, refuse_unmet, retained_limits, too_few};
use neph_capture::reading::packets::packets;
use neph_capture::reading::snaplen::truncated_message;
use neph_documents::clock::{Clocks, Means, Row, LabelledStep, Summary};
use neph_report::clocks_of_captures;
use neph_text::counted::counted;

/// The default number of rows.
const ROWS: i64 = 10;

/// Reads both captures and reports the clock offset.
pub(super) fn run(args: &Args, first: &Path, second: &Path) -> Result<Outcome, Failure> {
    figure::check(args.figure.as_deref(), args.force)?;
    refuse_duplicate(first, second)?;
    let stop = interrupt::stop_on_ctrl_c()?;
    let say = |printed: &str| output::say(&format!("neph clock: {printed}"));
    let reader = read::reader(&stop, &say);
    let mut meeting = CaptureMatcher::default();
    packets(first, reader, |at, _, packet| match packet {
        Ok(packet) => meeting.add_first(at, packet),
        Err(NoPacket::Cut) => meeting.here_cut(at),
        Err(NoPacket::NotIp) => {}
    })?;
    packets(second, reader, |at, _, packet| match packet {
        Ok(packet) => meeting.add_second(at, packet),
        Err(NoPacket::Cut) => meeting.there_cut(at),
        Err(NoPacket::NotIp) => {}
    })?;
    if stop.is_set() {
        return Err(Failure::Interrupted("interrupted while reading".to_owned()));
    }
    let met = meeting.end();
    refuse_unmet((first, second), &met)?;
    let clock_report = report(args, first, second, &met)?;
    Ok(if clock_report {
        Outcome::Done
    } else {
        Outcome::Nothing
    })
}

fn report(
    args: &Args,
    first: &Path,
    second: &Path,
    met: &MatchedCaptures,
) -> Result<bool, Failure> {
    let course = match course(args, met) {
        Ok(course) => course,
        Err(StatsError::TooFew { .. }) => return Err(too_few(first, second).into()),
        Err(error) => return Err(Failure::refused(error)),
    };
    let Some(end) = course.fits.last() else {
        return Err(too_few(first, second).into());
    };
    let mut exchanges = met.exchanges();
    let formula = Formula::of(&exchanges);
    let nature = args.nature();
    let of = format!("{} minus {}", second.display(), first.display());
    let mut reporting = args.writer();
    reporting.begin(&format!("clock of {of}"))?;
    let row = |fit: &ClockFit, formula: &Formula, n: usize| Row {
        since: Span::from_nanos(fit.at - course.from),
        fit: *fit,
        drift: Drift::at(fit, nature),
        wall: None,
        mean: formula.mean.mean(),
        round_trip: formula.shortest,
        n: n as u64,
        is_old: false,
    };
    exchanges.sort_by_key(|of| of.sent);
    let passed = passed(met);
    let (mut exchanges, mut passed) = (&exchanges[..], &passed[..]);
    for (fit, next) in course.fits.iter().zip(until_next(&course.fits)) {
        let formula = Formula::of(split_off(&mut exchanges, |of| of.sent < next));
        let n = split_off(&mut passed, |at| *at < next).len();
        reporting.row(&row(fit, &formula, n))?;
    }
    remarks(met);
    let drawn = clocks_of_captures(&formula.dots, &course, &of);
    let four = args.asks_for(Method::FourTimestamps);
    let steps = course.steps.iter();
    let summary = Summary {
        subject: of,
        clocks: Clocks::Captures,
        began: course.from,
        row: row(end, &formula, met.crossings.len()),
        steps: steps
            .map(|step| LabelledStep::between(Clocks::Captures, step))
            .collect(),
        means: four.then(|| Means::of(&formula.mean, None)).flatten(),
        lost: None,
        nature,
        course,
    };
    reporting.finish(&summary)?;
    figure::write(args.figure.as_deref(), args.force, drawn.as_ref())?;
    Ok(true)
}

fn course(args: &Args, met: &MatchedCaptures) -> Result<Course, StatsError> {
    let nature = args.nature();
    let stored = retained_limits(met, nature);
    let every = args.every.map_or_else(
        || ActiveTime::of(stored.limits(), nature.horizon).long / ROWS,
        Span::nanos,
    );
    let added = Added::of(met.set_back());
    Course::of(stored.limits(), nature, &added, every)
}

/// The unused parts of the captures.
fn remarks(met: &MatchedCaptures) {
    let cut = truncated_message();
    let of = [
        (
            met.first.repeats + met.second.repeats,
            "left out because a capture shows them again (a mirror of both directions, or several interfaces): \
             the first of each counts",
        ),
        (
            met.identical,
            "excluded because one capture has several identical packets",
        ),
        (
            met.one_way,
            "excluded because only one direction was captured; capture both directions",
        ),
        (
            met.even,
            "excluded because their hosts' packets are split evenly between the two directions",
        ),
        (
            met.timeless,
            "of both directions show only the clock offset between the captures: it is reported, but the order of the points is unknown",
        ),
        (met.first.cut + met.second.cut, &cut),
    ];
    for (count, reason) in of.into_iter().filter(|(count, _)| *count > 0) {
        output::say(&format!(
            "neph clock: {} {reason}",
            counted(count, "packet")
        ));
    }
}
