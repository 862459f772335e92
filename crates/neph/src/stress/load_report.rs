//! Reports of a load: that it is established, its results, and rates of traffic.

use std::io::Write;

use neph_documents::Format;
use neph_documents::rows::{self, Row};
use neph_load::RUNNING_LINE;
use neph_model::BitRate;

use crate::exit::Failure;
use crate::output;

/// Options of reports of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadReportOptions {
    /// The format of the results.
    pub(super) format: Format,
    /// Whether to print that the load is established.
    pub(super) announce: bool,
    /// For TCP: the capacity that its flows share with others.
    pub(super) capacity: Option<BitRate>,
}

impl LoadReportOptions {
    /// The reports for the process that ordered the load.
    pub(super) const FOR_ORDERS: Self = Self {
        format: Format::Json,
        announce: true,
        capacity: None,
    };

    /// Prints that the load is established, if requested.
    pub(super) fn announce_start(&self) {
        if self.announce {
            output::say(RUNNING_LINE);
        }
    }
}

/// Writes the results.
pub(super) fn write_rows<R: Row>(rows: &[R], format: Format) -> Result<(), Failure> {
    let mut out = output::data();
    rows::write(rows, format, &mut out)?;
    Ok(out.flush()?)
}
