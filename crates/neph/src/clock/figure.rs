//! The offset over time as a figure: which clocks, and where it is written.

use std::fs;
use std::path::Path;

use neph_report::{ClockDrawing, ClockMoment, Figure, clock_course, pdf, png, svg};

use super::book::{Book, Dots};
use super::course::Course;
use crate::exit::Failure;
use crate::output;

/// PNG pixels per CSS pixel: 192 dots per inch.
const SCALE: f64 = 2.0;

/// Refuses a file name that tells no format, before anything is measured.
pub(super) fn check(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    match ending(path) {
        Some("svg" | "png" | "pdf") => Ok(()),
        _ => Err(Failure::Usage(format!(
            "--figure {}: a name that ends in .svg, .png or .pdf is needed",
            path.display()
        ))),
    }
}

fn ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

/// Of the clocks on the wall, where the peer tells its own; else of the raw ones.
pub(super) fn live(book: &Book, course: &Course, of: &str) -> Option<Figure> {
    let moments: Vec<ClockMoment> = (course.drawn.iter())
        .map(|fit| {
            let raw = (fit.offset, fit.bound);
            let (offset, bound) = book.with_wall(*fit).wall.unwrap_or(raw);
            let at = fit.at;
            ClockMoment { at, offset, bound }
        })
        .collect();
    let raw = course.steps.iter().map(|step| step.before);
    let steps: Vec<i64> = book
        .steps
        .iter()
        .map(|step| step.before)
        .chain(raw)
        .collect();
    let rate = match moments.as_slice() {
        // Of the clocks on the wall no rate is fitted, they are steered.
        [..] if book.wall_mean.n() > 0 => 0.0,
        _ => course.drift.map_or(0.0, |drift| drift.rate),
    };
    clock_course(&ClockDrawing {
        of: &format!("Wall clocks, {of} minus ours"),
        moments: &moments,
        dots: &book.dots.kept,
        steps: &steps,
        rate,
    })
}

/// Of the clocks of two captures.
pub(super) fn captures(dots: &Dots, course: &Course, of: &str) -> Option<Figure> {
    let moments: Vec<ClockMoment> = (course.drawn.iter())
        .map(|fit| ClockMoment {
            at: fit.at,
            offset: fit.offset,
            bound: fit.bound,
        })
        .collect();
    let steps: Vec<i64> = course.steps.iter().map(|step| step.before).collect();
    clock_course(&ClockDrawing {
        of: &format!("Clocks of captures, {of}"),
        moments: &moments,
        dots: &dots.kept,
        steps: &steps,
        rate: course.drift.map_or(0.0, |drift| drift.rate),
    })
}

/// Writes it where it was asked for; the measurement stands, whatever becomes of it.
pub(super) fn write(path: Option<&Path>, drawn: Option<&Figure>) -> Result<(), Failure> {
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
    fs::write(path, bytes)
        .map_err(|error| Failure::Usage(format!("--figure {}: {error}", path.display())))
}
