//! Two captures of the same packets: the clock of the second against that of the first.

use std::path::Path;

use neph_capture::{Meeting, Met};
use neph_model::Span;
use neph_stats::{ClockFit, FourStamps, MeanOffset, StatsError};
use neph_wire::dissect::Nothing;

use super::{Args, Method, figure};
use crate::exit::{Failure, Outcome};
use crate::{interrupt, output, read};
use neph_capture::clocks::added::Added;
use neph_capture::clocks::book::Dots;
use neph_capture::clocks::course::Course;
use neph_capture::clocks::drift::Drift;
use neph_capture::clocks::heard::Heard;
use neph_capture::clocks::pair::{kept, refuse_cut, refuse_one_capture};
use neph_capture::reading::enough::too_short;
use neph_capture::reading::packets::packets;
use neph_documents::clock::{Clocks, Means, Row, StepOf, Summary};
use neph_text::counted::counted;

/// Rows, unless another time is asked for.
const ROWS: i64 = 10;

/// Reads both and tells.
pub(super) fn run(args: &Args, here: &Path, there: &Path) -> Result<Outcome, Failure> {
    figure::check(args.figure.as_deref(), args.force)?;
    refuse_twice(here, there)?;
    let stop = interrupt::stop_on_ctrl_c()?;
    let say = |said: &str| output::say(&format!("neph clock: {said}"));
    let reader = read::reader(&stop, &say);
    let mut meeting = Meeting::default();
    packets(here, reader, |at, _, packet| match packet {
        Ok(packet) => meeting.here(at, packet),
        Err(Nothing::Cut) => meeting.here_cut(at),
        Err(Nothing::NotIp) => {}
    })?;
    packets(there, reader, |at, _, packet| match packet {
        Ok(packet) => meeting.there(at, packet),
        Err(Nothing::Cut) => meeting.there_cut(at),
        Err(Nothing::NotIp) => {}
    })?;
    if stop.is_set() {
        return Err(Failure::Interrupted("interrupted while reading".to_owned()));
    }
    let met = meeting.end();
    refuse_unmet((here, there), &met)?;
    let told = tell(args, (here, there), &met)?;
    Ok(if told {
        Outcome::Done
    } else {
        Outcome::Nothing
    })
}

fn tell(args: &Args, (here, there): (&Path, &Path), met: &Met) -> Result<bool, Failure> {
    let course = match course(args, met) {
        Ok(course) => course,
        Err(StatsError::TooFew { .. }) => return Err(too_few(here, there)),
        Err(error) => return Err(Failure::refused(error)),
    };
    let Some(end) = course.fits.last() else {
        return Err(too_few(here, there));
    };
    let mut exchanges = met.exchanges();
    let formula = Formula::of(&exchanges);
    let nature = args.nature();
    let of = format!("{} minus {}", there.display(), here.display());
    let mut telling = args.writer();
    telling.begin(&format!("clock of {of}"))?;
    let row = |fit: &ClockFit, near: &Formula, n: usize| Row {
        since: Span::from_nanos(fit.at - course.from),
        fit: *fit,
        drift: Drift::at(fit, nature),
        wall: None,
        mean: near.mean.mean(),
        round_trip: near.shortest,
        n: n as u64,
        is_old: false,
    };
    exchanges.sort_by_key(|of| of.sent);
    let passed = passed(met);
    let (mut exchanges, mut passed) = (&exchanges[..], &passed[..]);
    for (fit, next) in course.fits.iter().zip(until_next(&course.fits)) {
        let near = Formula::of(split_off(&mut exchanges, |of| of.sent < next));
        let n = split_off(&mut passed, |at| *at < next).len();
        telling.row(&row(fit, &near, n))?;
    }
    remarks(met);
    let drawn = figure::captures(&formula.dots, &course, &of);
    let four = args.asks_for(Method::FourStamps);
    let steps = course.steps.iter();
    let summary = Summary {
        of,
        clocks: Clocks::Captures,
        began: course.from,
        row: row(end, &formula, met.crossings.len()),
        steps: steps
            .map(|step| StepOf::between(Clocks::Captures, step))
            .collect(),
        means: four.then(|| Means::of(&formula.mean, None)).flatten(),
        lost: None,
        nature,
        course,
    };
    telling.finish(&summary)?;
    figure::write((args.figure.as_deref(), args.force), drawn.as_ref())?;
    Ok(true)
}

fn course(args: &Args, met: &Met) -> Result<Course, StatsError> {
    let nature = args.nature();
    let kept = kept(met, nature);
    let every = args.every.map_or_else(
        || Heard::of(kept.limits(), nature.horizon).long / ROWS,
        Span::nanos,
    );
    let added = Added::of(met.set_back());
    Course::of(kept.limits(), nature, &added, every)
}

/// Until when something is nearer to a fit than to the next one.
fn until_next(fits: &[ClockFit]) -> impl Iterator<Item = i64> {
    let between = fits.windows(2).map(|pair| pair[0].at.midpoint(pair[1].at));
    between.chain([i64::MAX])
}

/// When packets passed the first point, in order.
fn passed(met: &Met) -> Vec<i64> {
    let mut all: Vec<i64> = met.crossings.iter().map(|of| of.here).collect();
    all.sort_unstable();
    all
}

/// The first of the rest, as long as they are early.
fn split_off<'a, T>(rest: &mut &'a [T], is_early: impl Fn(&T) -> bool) -> &'a [T] {
    let (early, later) = rest.split_at(rest.partition_point(is_early));
    *rest = later;
    early
}

/// What exchange by exchange says.
#[derive(Debug, Default)]
struct Formula {
    mean: MeanOffset,
    dots: Dots,
    shortest: Option<i64>,
}

impl Formula {
    fn of(exchanges: &[FourStamps]) -> Self {
        let mut formula = Self::default();
        for exchange in exchanges {
            formula.mean.push(exchange.offset());
            formula.dots.push(exchange.sent, exchange.offset());
            let trip = exchange.round_trip();
            let shortest = formula.shortest.map_or(trip, |least| least.min(trip));
            formula.shortest = Some(shortest);
        }
        formula
    }
}

/// One file has one clock. What cannot be found is told where it is read.
fn refuse_twice(here: &Path, there: &Path) -> Result<(), Failure> {
    match (here.canonicalize(), there.canonicalize()) {
        (Ok(one), Ok(other)) if one == other && one.is_file() => Err(Failure::Usage(format!(
            "--captures {} {}: that is one file twice; give the captures of both ends",
            here.display(),
            there.display()
        ))),
        _ => Ok(()),
    }
}

/// What cannot be compared, and what would help.
fn refuse_unmet((here, there): (&Path, &Path), met: &Met) -> Result<(), Failure> {
    let (name, other) = (here.display(), there.display());
    if met.crossings.is_empty() && met.one_way + met.even == 0 {
        refuse_cut([(here, &met.here), (there, &met.there)])?;
        if met.alike_in_both > 0 {
            return Err(Failure::usage(format!(
                "of {name} and {other} one has {} several times, and which is which cannot be told; \
                 capture one interface, or take out copies that are the same to the byte (editcap -w 0.02 \
                 FILE NEW)",
                counted(met.alike_in_both, "packet")
            )));
        }
        return Err(Failure::usage(format!(
            "no packet of {name} is in {other}; capture the same traffic at both ends, at the same time \
             and not behind a NAT"
        )));
    }
    refuse_one_capture((here, there), met, "give the captures of both ends")?;
    if met.crossings.is_empty() && met.even > 0 {
        return Err(Failure::usage(format!(
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

fn too_few(here: &Path, there: &Path) -> Failure {
    Failure::usage(format!(
        "{} and {} share packets of one direction only; the clocks' offset needs requests and replies (of a TAP with a \
         file for each direction give both: a.pcap+b.pcap)",
        here.display(),
        there.display()
    ))
}

/// What of the captures was not used.
fn remarks(met: &Met) {
    let cut = too_short();
    let of = [
        (
            met.here.again + met.there.again,
            "left out because a capture shows them again (a mirror of both directions, or several interfaces): \
             the first of each counts",
        ),
        (met.alike, "left out because one capture has several alike"),
        (
            met.one_way,
            "left out because hosts of which only one was heard show no way; capture both directions",
        ),
        (
            met.even,
            "left out because as many of their hosts' say the one way as the other",
        ),
        (
            met.timeless,
            "of both directions show nothing between the captures but the difference of their clocks: it is \
             told, and which point comes first is not known",
        ),
        (met.here.cut + met.there.cut, &cut),
    ];
    for (count, why) in of.into_iter().filter(|(count, _)| *count > 0) {
        output::say(&format!("neph clock: {} {why}", counted(count, "packet")));
    }
}
