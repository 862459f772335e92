//! Rates of traffic, as they are shown.

use neph_model::BitRate;

use crate::sheet::{Cell, Column, Format, Sheet};

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
