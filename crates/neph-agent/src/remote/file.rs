//! The files that a result is made of, as both sides name them: never a path.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use neph_journal::{fleet_folder, journal_path, segment_numbers, segment_path};
use neph_model::{ExperimentId, Order};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file of a result.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ResultFile {
    /// The journal of an experiment.
    Journal(ExperimentId),
    /// A segment of the journal of an experiment's fleet, from 1.
    Segment(ExperimentId, u32),
    /// Pings between experiments: one JSON document per line.
    Pings,
    /// The packets of a capture, as nanosecond pcap.
    Capture,
}

/// A file of a result, with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileLength {
    /// The file.
    pub file: ResultFile,
    /// Length of the file.
    pub bytes: u64,
}

impl ResultFile {
    /// The path of the file: journals are in a folder of journals, other files in the folder of
    /// their order.
    pub fn path(&self, journals: &Path, order: &Path) -> PathBuf {
        match self {
            Self::Journal(experiment) => journal_path(journals, *experiment),
            Self::Segment(experiment, number) => {
                segment_path(&fleet_folder(journals, *experiment), *number)
            }
            Self::Pings => order.join("pings.ndjson"),
            Self::Capture => order.join("capture.pcap"),
        }
    }

    /// Whether a result of this order can have this file.
    pub fn belongs_to(&self, order: &Order) -> bool {
        match (self, order) {
            (Self::Journal(id) | Self::Segment(id, _), Order::Experiments(orders)) => {
                orders.iter().any(|order| order.experiment.id == *id)
            }
            (Self::Pings, Order::Pings(_)) | (Self::Capture, Order::Capture(_)) => true,
            _ => false,
        }
    }
}

/// The files of an order's result.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn files_of(
    order: &Order,
    journals: &Path,
    folder: &Path,
) -> io::Result<Vec<FileLength>> {
    let mut files = Vec::new();
    let mut add = |file: ResultFile| -> io::Result<()> {
        match fs::metadata(file.path(journals, folder)) {
            Ok(metadata) => files.push(FileLength {
                file,
                bytes: metadata.len(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(())
    };
    match order {
        Order::Experiments(orders) => {
            for order in orders {
                let id = order.experiment.id;
                add(ResultFile::Journal(id))?;
                let segments = segment_numbers(&fleet_folder(journals, id), "journal");
                for number in segments.map_err(io::Error::other)? {
                    add(ResultFile::Segment(id, number))?;
                }
            }
        }
        Order::Pings(_) => add(ResultFile::Pings)?,
        Order::Capture(_) => add(ResultFile::Capture)?,
        _ => {}
    }
    Ok(files)
}
