//! Where a lab records what its links did.
//!
//! Owns the names of the files, and that none is written over: what was measured under them cannot
//! be made again. What stands in them is in [`crate::truth`].

use std::num::NonZeroU32;
use std::path::PathBuf;

use super::LabError;
use super::rerouting;
use crate::topology::Topology;

/// Where and how much to record: `LINK.truth` for each link.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The folder for the files; must be there. They stay when the lab goes.
    pub folder: PathBuf,
    /// One in this many packets, chosen by their bytes, the same on every link; 1 for all.
    pub every: NonZeroU32,
}

impl Recording {
    /// Whether a lab of `topology` finds none of its files there.
    ///
    /// # Errors
    /// [`LabError::Recorded`] with the first that is there.
    pub fn check(&self, topology: &Topology) -> Result<(), LabError> {
        let links = topology.links.iter().map(|link| self.file(&link.name));
        let mut files = links.chain([self.folder.join(rerouting::RECORD)]);
        match files.find(|file| file.symlink_metadata().is_ok()) {
            Some(file) => Err(LabError::Recorded { file }),
            None => Ok(()),
        }
    }

    /// The file of a link.
    pub(super) fn file(&self, link: &str) -> PathBuf {
        self.folder.join(format!("{link}.truth"))
    }
}
