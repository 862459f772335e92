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
use neph_capture::clocks::course::Course;
use neph_capture::clocks::drift::Drift;
use neph_capture::clocks::formula::{
    FourTimestampOffsets, midpoints_to_next, passage_times, split_off_leading,
};
use neph_capture::clocks::pair::{
    one_direction_error, refuse_same_file, refuse_unmatched, retained_limits,
};
use neph_capture::clocks::steady_time_conversion::SteadyTimeConversion;
use neph_capture::reading::packets::read_packets;
use neph_capture::reading::snaplen::truncated_message;
use neph_documents::clock::{Clocks, LabelledStep, Means, Row, Summary};
use neph_report::clocks_of_captures;
use neph_text::counted::counted;

/// The default number of rows.
const DEFAULT_ROWS: i64 = 10;

/// Reads both captures and reports the clock offset.
pub(super) fn run(args: &Args, first: &Path, second: &Path) -> Result<Outcome, Failure> {
    figure::check(args.figure.as_deref(), args.force)?;
    refuse_same_file(first, second)?;
    let stop = interrupt::stop_on_ctrl_c()?;
    let say = |text: &str| output::say(&format!("neph clock: {text}"));
    let reader = read::reader(&stop, &say);
    let mut matcher = CaptureMatcher::default();
    read_packets(first, reader, |timestamp, _, packet| match packet {
        Ok(packet) => matcher.add_first(timestamp, packet),
        Err(NoPacket::Cut) => matcher.count_cut_first(timestamp),
        Err(NoPacket::NotIp) => {}
    })?;
    read_packets(second, reader, |timestamp, _, packet| match packet {
        Ok(packet) => matcher.add_second(timestamp, packet),
        Err(NoPacket::Cut) => matcher.count_cut_second(timestamp),
        Err(NoPacket::NotIp) => {}
    })?;
    if stop.is_set() {
        return Err(Failure::Interrupted("interrupted while reading".to_owned()));
    }
    let matched_captures = matcher.end();
    refuse_unmatched((first, second), &matched_captures)?;
    let has_result = write_report(args, first, second, &matched_captures)?;
    Ok(if has_result {
        Outcome::Done
    } else {
        Outcome::Nothing
    })
}

fn write_report(
    args: &Args,
    first: &Path,
    second: &Path,
    matched_captures: &MatchedCaptures,
) -> Result<bool, Failure> {
    let course = match build_course(args, matched_captures) {
        Ok(course) => course,
        Err(StatsError::TooFew { .. }) => return Err(one_direction_error(first, second).into()),
        Err(error) => return Err(Failure::refused(error)),
    };
    let Some(end) = course.fits.last() else {
        return Err(one_direction_error(first, second).into());
    };
    let mut exchanges = matched_captures.exchanges();
    let formula = FourTimestampOffsets::from_exchanges(&exchanges);
    let nature = args.nature();
    let description = format!("{} minus {}", second.display(), first.display());
    let mut writer = args.writer();
    writer.begin(&format!("clock of {description}"))?;
    let to_row = |fit: &ClockFit, formula: &FourTimestampOffsets, message_count: usize| Row {
        since_start: Span::from_nanos(fit.at - course.start),
        fit: *fit,
        drift: Drift::from_fit(fit, nature),
        wall: None,
        mean: formula.mean.mean(),
        round_trip: formula.shortest_round_trip_nanos,
        n: message_count as u64,
        is_repeated: false,
    };
    exchanges.sort_by_key(|exchange| exchange.sent);
    let passed_times = passage_times(matched_captures);
    let (mut exchanges, mut passed_times) = (&exchanges[..], &passed_times[..]);
    for (fit, next) in course.fits.iter().zip(midpoints_to_next(&course.fits)) {
        let formula =
            FourTimestampOffsets::from_exchanges(split_off_leading(&mut exchanges, |exchange| {
                exchange.sent < next
            }));
        let message_count = split_off_leading(&mut passed_times, |at| *at < next).len();
        writer.row(&to_row(fit, &formula, message_count))?;
    }
    report_unused_packets(matched_captures);
    let offset_figure = clocks_of_captures(&formula.offsets, &course, &description);
    let has_four_timestamps = args.uses_method(Method::FourTimestamps);
    let steps = course.steps.iter();
    let summary = Summary {
        subject: description,
        clocks: Clocks::Captures,
        began: course.start,
        row: to_row(end, &formula, matched_captures.crossings.len()),
        steps: steps
            .map(|step| LabelledStep::between(Clocks::Captures, step))
            .collect(),
        means: has_four_timestamps
            .then(|| Means::of(&formula.mean, None))
            .flatten(),
        lost: None,
        nature,
        course,
    };
    writer.finish(&summary)?;
    figure::write(args.figure.as_deref(), args.force, offset_figure.as_ref())?;
    Ok(true)
}

fn build_course(args: &Args, matched_captures: &MatchedCaptures) -> Result<Course, StatsError> {
    let nature = args.nature();
    let clock_limits = retained_limits(matched_captures, nature);
    let interval = args.every.map_or_else(
        || {
            ActiveTime::from_limits(clock_limits.limits(), nature.horizon).total_nanos
                / DEFAULT_ROWS
        },
        Span::nanos,
    );
    let conversion = SteadyTimeConversion::new(matched_captures.clock_set_backs());
    Course::fit(clock_limits.limits(), nature, &conversion, interval)
}

/// The unused parts of the captures.
fn report_unused_packets(matched_captures: &MatchedCaptures) {
    let cut = truncated_message();
    let reasons = [
        (
            matched_captures.first.capture_duplicates + matched_captures.second.capture_duplicates,
            "left out because a capture shows them again (a mirror of both directions, or several interfaces): \
             the first of each counts",
        ),
        (
            matched_captures.identical,
            "excluded because one capture has several identical packets",
        ),
        (
            matched_captures.one_direction,
            "excluded because only one direction was captured; capture both directions",
        ),
        (
            matched_captures.direction_ties,
            "excluded because their hosts' packets are split evenly between the two directions",
        ),
        (
            matched_captures.without_delay,
            "of both directions show only the clock offset between the captures: it is reported, but the order of the points is unknown",
        ),
        (
            matched_captures.first.truncated + matched_captures.second.truncated,
            &cut,
        ),
    ];
    for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
        output::say(&format!(
            "neph clock: {} {reason}",
            counted(count, "packet")
        ));
    }
}
