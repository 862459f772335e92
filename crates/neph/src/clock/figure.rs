//! The offset over time as a figure: which clocks, and where it is written.

use std::io;
use std::path::Path;

use neph_report::{
    ClockDrawing, ClockLine, ClockMoment, ClockSet, Figure, clock_course, pdf, png, svg,
};
use neph_stats::{ClockFit, ClockStep};
use neph_text::{check_output, write_whole};

use crate::exit::Failure;
use crate::sink::Force;
use crate::{output, sink};
use neph_capture::clocks::book::{Book, Dots};
use neph_capture::clocks::course::Course;

/// PNG pixels per CSS pixel: 192 dots per inch.
const SCALE: f64 = 2.0;

/// Refuses a file name that tells no format and a file that cannot be written, before anything is
/// measured. Leaves nothing there, and what is there as it is.
pub(super) fn check(path: Option<&Path>, force: Force) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    if !matches!(ending(path), Some("svg" | "png" | "pdf")) {
        return Err(Failure::Usage(format!(
            "--figure {}: a name that ends in .svg, .png or .pdf is needed",
            path.display()
        )));
    }
    check_output(path, force.existing()).map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("--figure: {}", sink::unwritable(path, error)))
}

fn ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

/// Of the clocks on the wall, where the peer tells its own, and of the raw ones.
pub(super) fn live(book: &Book, course: &Course, of: &str) -> Option<Figure> {
    let raw = moments(course);
    let walls = (course.drawn.iter()).map(|fit| (fit.at, book.with_wall(*fit).wall));
    let walls: Vec<ClockMoment> = walls
        .filter_map(|(at, wall)| {
            let (offset, bound) = wall?;
            Some(ClockMoment { at, offset, bound })
        })
        .collect();
    let jumps: Vec<ClockSet> = course.steps.iter().map(set).collect();
    let walls_set = book.steps.iter().map(|step| ClockSet {
        after: step.after,
        before: step.before,
    });
    let mut steps: Vec<ClockSet> = walls_set.collect();
    steps.extend(&jumps);
    // Of the clocks on the wall no rate is fitted, they are steered.
    let wall = ClockLine {
        name: "wall clocks (CLOCK_REALTIME)",
        moments: &walls,
        dots: &book.dots.kept,
        steps: &steps,
        rate: 0.0,
    };
    let raw = ClockLine {
        name: if book.is_foreign {
            "its wall clock against our raw one"
        } else {
            "raw clocks (CLOCK_MONOTONIC_RAW)"
        },
        moments: &raw,
        dots: &book.raw_dots.kept,
        steps: &jumps,
        rate: course.drift.map_or(0.0, |drift| drift.rate),
    };
    let lines = [wall, raw];
    clock_course(&ClockDrawing {
        of: &format!("Clocks of {of} minus ours"),
        lines: if walls.is_empty() {
            &lines[1..]
        } else {
            &lines
        },
    })
}

/// Of the clocks of two captures.
pub(super) fn captures(dots: &Dots, course: &Course, of: &str) -> Option<Figure> {
    let steps: Vec<ClockSet> = course.steps.iter().map(set).collect();
    let line = ClockLine {
        name: "",
        moments: &moments(course),
        dots: &dots.kept,
        steps: &steps,
        rate: course.drift.map_or(0.0, |drift| drift.rate),
    };
    clock_course(&ClockDrawing {
        of: &format!("Clocks of captures, {of}"),
        lines: &[line],
    })
}

const fn set(step: &ClockStep) -> ClockSet {
    ClockSet {
        after: step.after,
        before: step.before,
    }
}

fn moments(course: &Course) -> Vec<ClockMoment> {
    let moment = |fit: &ClockFit| ClockMoment {
        at: fit.at,
        offset: fit.offset,
        bound: fit.bound,
    };
    course.drawn.iter().map(moment).collect()
}

/// Writes it where it was asked for; the measurement stands, whatever becomes of it.
pub(super) fn write(
    (path, force): (Option<&Path>, Force),
    drawn: Option<&Figure>,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let Some(figure) = drawn else {
        output::say("neph clock: no figure: the offset is known at one moment only");
        return Ok(());
    };
    let bytes = match ending(path) {
        Some("png") => png(&figure.scene, SCALE).map_err(Failure::refused)?,
        Some("pdf") => pdf(&figure.scene, &figure.title),
        _ => svg(&figure.scene, "clock", &figure.title).into_bytes(),
    };
    write_whole(path, &bytes, force.existing()).map_err(|error| refused(path, &error))
}
