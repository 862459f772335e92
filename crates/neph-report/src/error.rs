//! What can go wrong while a report is written.

use std::path::PathBuf;

use crate::scene::PngError;

/// A report that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A folder could not be made.
    #[error("cannot make the folder {path}: {source}", path = .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {source}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The folder has files that do not belong to a report.
    #[error("{folder} contains '{foreign}', which is not part of a report: name a new folder, or an empty one", folder = .folder.display())]
    ForeignContent {
        /// The folder.
        folder: PathBuf,
        /// The first strange thing in it.
        foreign: String,
    },
    /// A report is there, and is not to be replaced.
    #[error("{folder} holds a report: name another folder, or replace it with --force", folder = .folder.display())]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// A figure could not become an image.
    #[error("cannot draw the figure {name}: {source}")]
    Image {
        /// The figure.
        name: String,
        /// Why.
        source: PngError,
    },
    /// The findings could not become json.
    #[error("cannot write the findings as json: {0}")]
    Findings(serde_json::Error),
}
