//! How a load tells of itself: that it works, for those who measure under it; how what it did is written;
//! rates of traffic.

use neph_load::WORKS;
use neph_model::BitRate;

use crate::output;
use crate::sheet::{Cell, Column, Format, Sheet};

/// How a load tells of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Telling {
    /// How what it did is written.
    pub(super) format: Format,
    /// It prints when it works.
    pub(super) announce: bool,
    /// Of TCP: the capacity that its flows share with others.
    pub(super) capacity: Option<BitRate>,
}

impl Telling {
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

pub(super) fn rate(rate: BitRate) -> Cell {
    Cell::new(rate.to_string(), rate.bits_per_second())
}

/// Adds why each row is not what was asked, if it is not: for programs, people have it as a sentence.
pub(super) fn add_faults(sheet: &mut Sheet, faults: Vec<Option<String>>, format: Format) {
    if format == Format::Text {
        return;
    }
    sheet.columns.push(Column::left("FAULT", "fault"));
    for (row, fault) in sheet.rows.iter_mut().zip(faults) {
        row.push(fault.map_or_else(Cell::absent, Cell::text));
    }
}
