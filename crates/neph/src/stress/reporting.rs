//! How a load reports: that it runs, for those who measure under it; its results; and rates of
//! traffic.

use std::io::Write;

use neph_documents::Format;
use neph_documents::rows::{self, Row};
use neph_load::WORKS;
use neph_model::BitRate;

use crate::exit::Failure;
use crate::output;

/// How a load reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadReporting {
    /// How what it did is written.
    pub(super) format: Format,
    /// It prints when it works.
    pub(super) announce: bool,
    /// Of TCP: the capacity that its flows share with others.
    pub(super) capacity: Option<BitRate>,
}

impl LoadReporting {
    /// To the process that ordered it.
    pub(super) const ORDERED: Self = Self {
        format: Format::Json,
        announce: true,
        capacity: None,
    };

    /// The load works, all of its threads or connections: prints so, if it is to.
    pub(super) fn works(&self) {
        if self.announce {
            output::say(WORKS);
        }
    }
}

/// Writes what was generated.
pub(super) fn write<R: Row>(rows: &[R], format: Format) -> Result<(), Failure> {
    let mut out = output::data();
    rows::write(rows, format, &mut out)?;
    Ok(out.flush()?)
}
