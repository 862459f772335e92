//! Writes figures of packets on the path; neph-report draws them.

use std::path::Path;

use neph_capture::path::passages::Passages;
use neph_report::{ReportError, check_figures, passages as passages_figures, write_figures};

use crate::exit::Failure;
use crate::sink::Force;
use crate::{output, sink};

/// Refuses a path that is not a folder, cannot be created or cannot be written to, before anything
/// is read.
///
/// # Errors
/// One of these.
pub(super) fn check(folder: Option<&Path>, force: Force) -> Result<(), Failure> {
    let Some(folder) = folder else { return Ok(()) };
    check_figures(folder, "hops", force.existing())
        .map_err(|reason| Failure::Usage(format!("--figure {}: {reason}", folder.display())))
}

/// Draws all figures, and writes them if requested.
///
/// # Errors
/// The folder or a file cannot be written.
pub(super) fn write(
    passages: &Passages,
    folder: Option<&Path>,
    force: Force,
) -> Result<(), Failure> {
    let Some(folder) = folder else { return Ok(()) };
    let figures = passages_figures(passages);
    if figures.is_empty() {
        output::say("neph hops: no figures: of no packet a segment is known");
        return Ok(());
    }
    write_figures(&figures, folder, force.existing()).map_err(|error| match &error {
        ReportError::File { path, source } => sink::failure(path, source),
        _ => Failure::refused(&error),
    })?;
    Ok(())
}
