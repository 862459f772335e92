//! Messages of ended experiments in columns: one Parquet file per experiment, one row per message.
//!
//! [`Row::COLUMNS`] is the table of columns for the writer, the reader and the text exports.
//! Exports put [`LEADING_COLUMNS`] before it.

mod leading_columns;
mod reader;
mod table;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use leading_columns::{
    ExperimentContext, LEADING_COLUMNS, LeadingCell, LeadingColumn, LeadingValue,
};
pub(crate) use reader::ColumnsReader;
pub(crate) use table::{Cell, Cells, Column, Row, optional, required};
pub(crate) use writer::{ColumnsWriter, FileMetadata};

/// Version of the message columns; increases when a column changes its meaning or is removed.
pub const SCHEMA_VERSION: u32 = 1;

/// Rows of a row group. Large enough that the column headers are negligible (35 columns of about 50
/// bytes), small enough that a reader needs 26 MB for one.
const ROW_GROUP_ROWS: usize = 1 << 16;
