//! Rates of traffic, as they are shown.

use neph_model::{BitRate, Span};

use crate::sheet::{Cell, Column, Format, Sheet};

/// Bytes within a time as a rate; none within no time.
pub(super) fn received_rate(bytes: u64, lasted: Span) -> BitRate {
    let nanos = u128::try_from(lasted.nanos()).unwrap_or(0);
    let rate = (u128::from(bytes) * 8 * 1_000_000_000)
        .checked_div(nanos)
        .unwrap_or(0);
    BitRate(u64::try_from(rate).unwrap_or(u64::MAX))
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
