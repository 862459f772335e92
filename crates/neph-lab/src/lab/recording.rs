//! Where a lab records the packets of its links.
//!
//! Owns the names of the files, and prevents overwriting: old records cannot be reproduced. [`crate::truth`]
//! owns the content.

use std::num::NonZeroU32;
use std::path::PathBuf;

use super::LabError;
use super::rerouting;
use crate::topology::Topology;

/// Where and how much to record: `LINK.truth` for each link.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The existing folder for the files. They remain when the lab is removed.
    pub folder: PathBuf,
    /// One in this many packets, selected by their bytes, the same on every link; 1 for all.
    pub every: NonZeroU32,
}

impl Recording {
    /// Checks that none of the files for `topology` exists.
    ///
    /// # Errors
    /// [`LabError::RecordExists`] with the first existing file.
    pub fn check(&self, topology: &Topology) -> Result<(), LabError> {
        let links = topology.links.iter().map(|link| self.file(&link.name));
        let mut files = links.chain([self.folder.join(rerouting::RECORD_FILE_NAME)]);
        match files.find(|file| file.symlink_metadata().is_ok()) {
            Some(file) => Err(LabError::RecordExists { file }),
            None => Ok(()),
        }
    }

    /// The file of a link.
    pub(super) fn file(&self, link: &str) -> PathBuf {
        self.folder.join(format!("{link}.truth"))
    }
}
