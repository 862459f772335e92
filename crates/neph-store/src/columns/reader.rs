//! Reads messages from a Parquet file, one row group at a time.

use std::fs::File;
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use neph_model::Message;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::statistics::Statistics;

use super::{Cells, Column, Row};
use crate::StoreError;

/// An open Parquet file of messages.
pub(crate) struct ColumnsReader<R = Message> {
    file: SerializedFileReader<File>,
    path: PathBuf,
    rows: PhantomData<fn() -> R>,
}

impl<R: Row> ColumnsReader<R> {
    /// Opens a file; `Ok(None)` if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, StoreError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::file("open", path)(error)),
        };
        let file = SerializedFileReader::new(file).map_err(StoreError::columns("read", path))?;
        Ok(Some(Self {
            file,
            path: path.to_owned(),
            rows: PhantomData,
        }))
    }

    /// The number of row groups.
    pub(crate) fn row_groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// The key-value metadata of the file.
    pub(crate) fn properties(&self) -> &[KeyValue] {
        let properties = self.file.metadata().file_metadata().key_value_metadata();
        properties.map_or(&[], Vec::as_slice)
    }

    /// Minimum and maximum of a column in a row group, if the file has these statistics.
    pub(crate) fn range(&self, group: usize, column: &str) -> Option<(i64, i64)> {
        let group = self.file.metadata().row_group(group);
        let mut columns = group.columns().iter();
        let chunk = columns.find(|chunk| chunk.column_path().string() == column)?;
        match chunk.statistics()? {
            Statistics::Int64(range) => Some((*range.min_opt()?, *range.max_opt()?)),
            _ => None,
        }
    }

    /// The messages of one row group. Values of a missing column stay absent.
    pub(crate) fn row_group(&self, index: usize) -> Result<Vec<R>, StoreError> {
        self.read_rows(index)
            .map_err(StoreError::columns("read", &self.path))
    }

    fn read_rows(&self, index: usize) -> Result<Vec<R>, ParquetError> {
        let group = self.file.get_row_group(index)?;
        let count = usize::try_from(group.metadata().num_rows())
            .map_err(|_| ParquetError::General("a negative number of rows".to_owned()))?;
        let mut rows = vec![R::blank(); count];
        for column in R::COLUMNS {
            let column_name = |index: usize| group.metadata().column(index).column_path().string();
            let column_index =
                (0..group.num_columns()).find(|index| column.is_named(&column_name(*index)));
            match column_index {
                Some(index) => read_column(&*group, index, column, &mut rows)?,
                None if column.required => {
                    return Err(ParquetError::General(format!(
                        "there is no column '{}'",
                        column.name
                    )));
                }
                None => {}
            }
        }
        Ok(rows)
    }
}

fn read_column<R: Row>(
    group: &dyn RowGroupReader,
    index: usize,
    column: &Column<R>,
    rows: &mut [R],
) -> Result<(), ParquetError> {
    match (&column.cells, group.get_column_reader(index)?) {
        (Cells::Nanos(_, set), ColumnReader::Int64ColumnReader(reader)) => {
            let cells = Values::read(reader, column, rows.len())?;
            cells.set(rows, set);
        }
        (Cells::Unsigned64(_, set), ColumnReader::Int64ColumnReader(reader)) => {
            let cells = Values::read(reader, column, rows.len())?;
            cells.set(rows, |row, value| set(row, value.cast_unsigned()));
        }
        (Cells::Unsigned32(_, set), ColumnReader::Int32ColumnReader(reader)) => {
            let cells = Values::read(reader, column, rows.len())?;
            cells.set(rows, |row, value| set(row, value.cast_unsigned()));
        }
        (Cells::Flag(_, set), ColumnReader::BoolColumnReader(reader)) => {
            let cells = Values::read(reader, column, rows.len())?;
            cells.set(rows, set);
        }
        (Cells::Word(_, set), ColumnReader::ByteArrayColumnReader(reader)) => {
            let cells = Values::read(reader, column, rows.len())?;
            let mut has_invalid_word = false;
            cells.set(rows, |row, value| {
                has_invalid_word |= !value.as_utf8().is_ok_and(|word| set(row, word));
            });
            if has_invalid_word {
                return Err(ParquetError::General(format!(
                    "a word in column '{}' means nothing here",
                    column.name
                )));
            }
        }
        _ => {
            return Err(ParquetError::General(format!(
                "column '{}' has another type",
                column.name
            )));
        }
    }
    Ok(())
}

/// One column of one row group.
struct Values<V> {
    values: Vec<V>,
    /// 1 where a row has a value; empty if all rows have one.
    definition_levels: Vec<i16>,
}

impl<V> Values<V> {
    fn read<T: DataType<T = V>, R>(
        mut reader: ColumnReaderImpl<T>,
        column: &Column<R>,
        count: usize,
    ) -> Result<Self, ParquetError> {
        let mut values = Vec::with_capacity(count);
        let mut definition_levels = Vec::new();
        let mut rows_read = 0;
        while rows_read < count {
            let levels = (!column.required).then_some(&mut definition_levels);
            let (records, _, _) =
                reader.read_records(count - rows_read, levels, None, &mut values)?;
            if records == 0 {
                return Err(ParquetError::EOF(format!(
                    "column '{}' ends after {rows_read} of {count} rows",
                    column.name
                )));
            }
            rows_read += records;
        }
        Ok(Self {
            values,
            definition_levels,
        })
    }

    fn set<R>(self, rows: &mut [R], mut set: impl FnMut(&mut R, V)) {
        let mut values = self.values.into_iter();
        for (index, row) in rows.iter_mut().enumerate() {
            if self
                .definition_levels
                .get(index)
                .is_some_and(|level| *level == 0)
            {
                continue;
            }
            if let Some(value) = values.next() {
                set(row, value);
            }
        }
    }
}
