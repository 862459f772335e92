//! Writes the figure of an offset over time.

use std::io;
use std::path::Path;

use neph_report::{Figure, pdf, png, svg};
use neph_text::{check_output, write_whole};

use crate::exit::Failure;
use crate::sink::Force;
use crate::{output, sink};

/// PNG pixels per CSS pixel: 192 dots per inch.
const SCALE: f64 = 2.0;

/// Refuses a file name without a known format, and a file that cannot be written, before anything is
/// measured. Creates no file and does not change an existing one.
pub(super) fn check(path: Option<&Path>, force: Force) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    if !matches!(extension(path), Some("svg" | "png" | "pdf")) {
        return Err(Failure::Usage(format!(
            "--figure {}: a name that ends in .svg, .png or .pdf is needed",
            path.display()
        )));
    }
    check_output(path, force.existing()).map_err(|error| to_failure(path, &error))
}

fn to_failure(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!(
        "--figure: {}",
        sink::unwritable_message(path, error)
    ))
}

fn extension(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

/// Writes the figure if requested; a failure does not affect the measurement.
pub(super) fn write(
    path: Option<&Path>,
    force: Force,
    figure: Option<&Figure>,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let Some(figure) = figure else {
        output::say("neph clock: no figure: the offset is known at one moment only");
        return Ok(());
    };
    let bytes = match extension(path) {
        Some("png") => png(&figure.scene, SCALE).map_err(Failure::refused)?,
        Some("pdf") => pdf(&figure.scene, &figure.title),
        _ => svg(&figure.scene, "clock", &figure.title).into_bytes(),
    };
    write_whole(path, &bytes, force.existing()).map_err(|error| to_failure(path, &error))
}
