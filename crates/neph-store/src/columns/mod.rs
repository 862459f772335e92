//! Finished messages in columns: one Parquet file per experiment, one row per message.
//!
//! [`Row::COLUMNS`] is the table of columns; writer, reader and the text exports all follow it. In
//! exports, [`LEADING`] comes before it.

mod leading;
mod reader;
mod table;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use leading::{Belonging, Constant, LEADING, Leading, LeadingCells};
pub(crate) use reader::ColumnsReader;
pub(crate) use table::{Cell, Cells, Column, Row, optional, required};
pub(crate) use writer::{ColumnsWriter, FileFacts};

/// Version of the messages' columns; counts up when one changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// Rows of a row group. Large enough that the columns' headers do not count (35 columns of about
/// 50 bytes), small enough that a reader holds one in 26 MB.
const ROW_GROUP_ROWS: usize = 1 << 16;
