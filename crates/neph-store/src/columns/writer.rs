//! Writes messages to a Parquet file, one row group at a time.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use neph_model::{Experiment, Message, Scenario};
use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical,
};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::{
    Cells, Column, ExperimentContext, LEADING_COLUMNS, LeadingCell, LeadingColumn, LeadingValue,
    ROW_GROUP_ROWS, Row, SCHEMA_VERSION,
};
use crate::StoreError;
use neph_text::WholeFile;

/// Key-value metadata of a Parquet file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileMetadata(Vec<(String, String)>);

impl FileMetadata {
    /// Metadata of a file of one experiment.
    pub(crate) fn of(experiment: &Experiment, scenario: Option<&Scenario>) -> Self {
        let mut metadata = vec![
            ("experiment_id", experiment.id.to_string()),
            ("campaign_id", experiment.campaign.to_string()),
            ("scenario_id", experiment.scenario.to_string()),
            ("block", experiment.block.to_string()),
            (
                "started_unix_ns",
                experiment.started.unix_nanos().to_string(),
            ),
        ];
        if let Some(scenario) = scenario {
            let scenario_json =
                serde_json::to_string(scenario).expect("a scenario is plain values");
            metadata.push(("scenario_label", scenario.label()));
            metadata.push(("scenario", scenario_json));
        }
        Self::with_version(metadata)
    }

    /// Metadata of a file of several experiments; its leading columns identify them.
    pub(crate) fn of_several() -> Self {
        Self::with_version(Vec::new())
    }

    fn with_version(mut metadata: Vec<(&str, String)>) -> Self {
        metadata.push(("schema_version", SCHEMA_VERSION.to_string()));
        Self(
            metadata
                .into_iter()
                .map(|(key, value)| (format!("nephoscope.{key}"), value))
                .collect(),
        )
    }

    fn into_key_values(self) -> Vec<KeyValue> {
        self.0
            .into_iter()
            .map(|(key, value)| KeyValue::new(key, value))
            .collect()
    }
}

/// Writes one file. The file is complete only after [`Self::finish`].
pub(crate) struct ColumnsWriter<R = Message> {
    file: SerializedFileWriter<File>,
    path: PathBuf,
    /// Leading values of the current experiment, in a file with leading columns.
    leading: Vec<LeadingValue>,
    rows: Vec<R>,
    rows_written: u64,
}

impl<R: Row> ColumnsWriter<R> {
    /// Creates a file of one experiment; overwrites an existing one.
    pub(crate) fn create(path: &Path, metadata: FileMetadata) -> Result<Self, StoreError> {
        let file = File::create(path).map_err(StoreError::file("make", path))?;
        Self::with_schema(file, path, metadata, schema::<R>(&[]))
    }

    /// Creates an export file in which each row names its experiment. Call [`Self::begin`] before
    /// the messages of each experiment.
    pub(crate) fn create_leading(
        out: &WholeFile,
        metadata: FileMetadata,
    ) -> Result<Self, StoreError> {
        let path = out.temporary();
        let file = out.file().map_err(StoreError::file("make", path))?;
        Self::with_schema(file, path, metadata, schema::<R>(LEADING_COLUMNS))
    }

    fn with_schema(
        file: File,
        path: &Path,
        metadata: FileMetadata,
        schema: Type,
    ) -> Result<Self, StoreError> {
        let properties = Arc::new(properties::<R>(metadata));
        let file = SerializedFileWriter::new(file, Arc::new(schema), properties)
            .map_err(StoreError::columns("begin", path))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            leading: Vec::new(),
            rows: Vec::new(),
            rows_written: 0,
        })
    }

    /// The following messages belong to this experiment.
    pub(crate) fn begin(&mut self, context: &ExperimentContext<'_>) -> Result<(), StoreError> {
        self.flush()?;
        self.leading = context.leading_values().map(|(_, value)| value).collect();
        Ok(())
    }

    pub(crate) fn push(&mut self, row: &R) -> Result<(), StoreError> {
        self.rows.push(*row);
        if self.rows.len() == ROW_GROUP_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds metadata that was not known when the file was created.
    pub(crate) fn add_metadata(&mut self, key: &str, value: String) {
        let entry = KeyValue::new(format!("nephoscope.{key}"), value);
        self.file.append_key_value_metadata(entry);
    }

    /// Completes and syncs the file; returns its number of rows.
    pub(crate) fn finish(mut self) -> Result<u64, StoreError> {
        self.flush()?;
        let file = self
            .file
            .into_inner()
            .map_err(StoreError::columns("finish", &self.path))?;
        match file.sync_all() {
            // A pipe or a device cannot be synced and has nothing to lose.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {}
            synced => synced.map_err(StoreError::file("sync", &self.path))?,
        }
        Ok(self.rows_written)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.write_row_group()
            .map_err(StoreError::columns("write", &self.path))?;
        self.rows_written += self.rows.len() as u64;
        self.rows.clear();
        Ok(())
    }

    fn write_row_group(&mut self) -> Result<(), ParquetError> {
        let rows = &self.rows;
        let mut group = self.file.next_row_group()?;
        for constant in &self.leading {
            write_constant(&mut group, constant, rows.len())?;
        }
        for column in R::COLUMNS {
            write_column(&mut group, column, rows)?;
        }
        group.close()?;
        Ok(())
    }
}

type Group<'a> = SerializedRowGroupWriter<'a, File>;

fn write_constant(
    group: &mut Group<'_>,
    constant: &LeadingValue,
    rows: usize,
) -> Result<(), ParquetError> {
    match constant {
        LeadingValue::Text(text) => {
            let text = ByteArray::from(text.as_bytes().to_vec());
            write_values::<ByteArrayType>(group, &vec![text; rows], None)
        }
        LeadingValue::Count(count) => {
            write_values::<Int32Type>(group, &vec![count.cast_signed(); rows], None)
        }
    }
}

fn write_column<R: Row>(
    group: &mut Group<'_>,
    column: &Column<R>,
    rows: &[R],
) -> Result<(), ParquetError> {
    match column.cells {
        Cells::Nanos(get, _) => write_optional::<Int64Type, R>(group, column, rows.iter().map(get)),
        Cells::Unsigned64(get, _) => {
            let values = rows.iter().map(|row| get(row).map(u64::cast_signed));
            write_optional::<Int64Type, R>(group, column, values)
        }
        Cells::Unsigned32(get, _) => {
            let values = rows.iter().map(|row| get(row).map(u32::cast_signed));
            write_optional::<Int32Type, R>(group, column, values)
        }
        Cells::Flag(get, _) => {
            let values: Vec<bool> = rows.iter().map(get).collect();
            write_values::<BoolType>(group, &values, None)
        }
        Cells::Word(get, _) => {
            let values = rows
                .iter()
                .map(|row| get(row).map(|word| ByteArray::from(&*word)));
            write_optional::<ByteArrayType, R>(group, column, values)
        }
    }
}

fn write_optional<T: DataType, R>(
    group: &mut Group<'_>,
    column: &Column<R>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let mut values = Vec::with_capacity(ROW_GROUP_ROWS);
    if column.required {
        values.extend(cells.flatten());
        return write_values::<T>(group, &values, None);
    }
    let mut definition_levels = Vec::with_capacity(ROW_GROUP_ROWS);
    for cell in cells {
        definition_levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    write_values::<T>(group, &values, Some(&definition_levels))
}

fn write_values<T: DataType>(
    group: &mut Group<'_>,
    values: &[T::T],
    definition_levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("too many columns".to_owned()));
    };
    writer
        .typed::<T>()
        .write_batch(values, definition_levels, None)?;
    writer.close()
}

/// The file's schema; `leading` comes before the columns of the table.
fn schema<R: Row>(leading: &[LeadingColumn]) -> Type {
    let leading = leading.iter().map(|column| {
        let column_type = match column.cells {
            LeadingCell::Text(_) => TEXT,
            LeadingCell::Count(_) => (Physical::INT32, unsigned(32), ConvertedType::UINT_32),
        };
        field(column.name, Repetition::REQUIRED, column_type)
    });
    let columns = R::COLUMNS.iter().map(|column| {
        let repetition = if column.required {
            Repetition::REQUIRED
        } else {
            Repetition::OPTIONAL
        };
        field(column.name, repetition, type_of_column(column))
    });
    let fields = leading.chain(columns).map(Arc::new).collect();
    Type::group_type_builder(R::ROW_NAME)
        .with_fields(fields)
        .build()
        .expect("a group of valid columns is valid")
}

type ColumnType = (Physical, Option<LogicalType>, ConvertedType);

const TEXT: ColumnType = (
    Physical::BYTE_ARRAY,
    Some(LogicalType::String),
    ConvertedType::UTF8,
);

fn field(name: &str, repetition: Repetition, (physical, logical, converted): ColumnType) -> Type {
    Type::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .with_converted_type(converted)
        .build()
        .expect("the table's types are valid")
}

fn type_of_column<R>(column: &Column<R>) -> ColumnType {
    match column.cells {
        Cells::Nanos(..) => (Physical::INT64, None, ConvertedType::NONE),
        Cells::Unsigned64(..) => (Physical::INT64, unsigned(64), ConvertedType::UINT_64),
        Cells::Unsigned32(..) => (Physical::INT32, unsigned(32), ConvertedType::UINT_32),
        Cells::Flag(..) => (Physical::BOOLEAN, None, ConvertedType::NONE),
        Cells::Word(..) => TEXT,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the builder takes an option")]
fn unsigned(bit_width: i8) -> Option<LogicalType> {
    Some(LogicalType::integer(bit_width, false))
}

/// Columns whose consecutive values differ little.
const COUNTERS: &[&str] = &["seq", "slot", "source_port", "peer_count"];

/// Measured with `benches/ingest.rs`, 2 M messages with every timestamp, whole ingest. Snappy: 32.6
/// bytes/message at 1.15-1.40 M messages/s. zstd: 29.9 at 0.63-0.71 M. Snappy without delta
/// encoding of times: 106.4 at 0.99 M.
fn properties<R: Row>(metadata: FileMetadata) -> WriterProperties {
    let created_by = concat!("nephoscope ", env!("CARGO_PKG_VERSION")).to_owned();
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(created_by)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_key_value_metadata(Some(metadata.into_key_values()));
    for column in R::COLUMNS {
        let path = ColumnPath::from(column.name);
        if matches!(column.cells, Cells::Nanos(..)) || COUNTERS.contains(&column.name) {
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    builder.build()
}
