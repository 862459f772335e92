//! Paths of the segments of one experiment's fleet.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use neph_journal::{segment_numbers, segment_path};
use neph_model::ExperimentId;

use crate::StoreError;

/// The two folders of one experiment's fleet.
#[derive(Clone, Debug)]
pub(crate) struct FleetFolders {
    pub(crate) experiment: ExperimentId,
    /// Folder of closed segments.
    pub(crate) segments: PathBuf,
    /// Folder of open segments.
    pub(crate) journals: PathBuf,
}

impl FleetFolders {
    pub(super) fn segment(&self, number: u32) -> PathBuf {
        self.segments.join(format!("{number:05}.parquet"))
    }

    /// Temporary name of a segment's file until it is complete.
    pub(super) fn partial(&self, number: u32) -> PathBuf {
        self.segments.join(format!(".{number:05}.partial"))
    }

    pub(super) fn journal(&self, number: u32) -> PathBuf {
        segment_path(&self.journals, number)
    }

    pub(super) fn create(&self) -> Result<(), StoreError> {
        let journals = &self.journals;
        self.create_segments_folder()?;
        fs::create_dir_all(journals).map_err(StoreError::file("make the folder", journals))
    }

    pub(super) fn create_segments_folder(&self) -> Result<(), StoreError> {
        let folder = &self.segments;
        fs::create_dir_all(folder).map_err(StoreError::file("make the folder", folder))
    }

    /// The numbers of the segments with a journal, in order.
    pub(super) fn journalled_segments(&self) -> Result<Vec<u32>, StoreError> {
        Ok(segment_numbers(&self.journals, "journal")?)
    }

    /// The number of the last segment; 0 if there is none.
    pub(super) fn last_number(&self) -> Result<u32, StoreError> {
        let closed = segment_numbers(&self.segments, "parquet")?;
        let open = segment_numbers(&self.journals, "journal")?;
        Ok(open.into_iter().chain(closed).max().unwrap_or(0))
    }

    /// Removes the folder of journals with its contents, if it exists.
    pub(crate) fn remove_journals(&self) -> Result<(), StoreError> {
        match fs::remove_dir_all(&self.journals) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::file("remove", &self.journals)(error))
            }
            _ => Ok(()),
        }
    }
}
