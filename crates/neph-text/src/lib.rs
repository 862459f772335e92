//! Text with positions: TOML and YAML as trees whose keys and values have their position, and a
//! cursor that reads typed values and collects all mistakes.
//! Also: writing files completely or not at all, limits for the size of files, and safe output of
//! external text (no control characters, bounded length, CSV fields).
//!
//! Owns spans, lines and columns, units, and the wording of mistakes. Does not own any term of
//! Nephoscope, and prints nothing.
//!
//! Why not serde: its tagged, untagged and flattened enums lose the position, and it stops at the
//! first mistake.

pub mod counted;
mod csv;
pub mod decimals;
mod durable;
mod external_text;
mod fields;
mod file;
mod node;
mod output_file;
mod position;
mod problem;
mod quantity;
mod source;
mod suggest;
mod take;
mod toml;
mod yaml;

pub use csv::csv_field;
pub use durable::{DiskError, FolderLock, remove_folder, write_durable};
pub use external_text::{
    LONGEST_SENTENCE, LONGEST_VALUE, PrintableText, Visible, coloured, is_hidden, one_line,
    several_lines, visible, visible_file, visible_lines,
};
pub use fields::{Fields, Spanned};
pub use file::{FileError, FileKind, is_output_handed_over, open_file, read_bytes, read_text};
pub use node::{Entry, Node, Table, Value};
pub use output_file::{
    Existing, NotWritten, WholeFile, alongside, check_output, create_output, write_whole,
};
pub use position::Position;
pub use problem::{Fault, Problem, Problems};
pub use quantity::{parse_duration, parse_percent, parse_rate, parse_size};
pub use source::Source;
pub use suggest::{did_you_mean, nearest};
pub use take::{BitsPerSecond, Bytes, FromNode, Nanos, Percent, Port, choice};
pub use toml::{parse_toml, table_of};
pub use yaml::parse_yaml;
