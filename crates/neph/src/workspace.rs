//! Which workspace is meant: the `--workspace` option. What is found in it is neph-store's.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;
use neph_store::{Access, Store, StoreError, open};

use crate::exit::Failure;

/// Names the workspace if the command line names none.
const VARIABLE: &str = "NEPH_WORKSPACE";
const USUAL: &str = ".neph";

/// Where measurements are kept.
#[derive(Clone, Debug, Args)]
pub(crate) struct Workspace {
    /// Folder (or store URL) that measurements are kept in
    #[arg(
        long = "workspace",
        value_name = "FOLDER",
        env = VARIABLE,
        default_value = USUAL
    )]
    pub(crate) place: String,
}

impl Workspace {
    /// Whether the command line named it, not the environment and not a default.
    pub(crate) fn is_asked_for(&self) -> bool {
        let usual = std::env::var(VARIABLE);
        self.place != usual.as_deref().unwrap_or(USUAL)
    }

    /// The folder next to the store for other files, such as reports.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self.place.strip_prefix("file:").unwrap_or(&self.place);
        PathBuf::from(folder)
    }

    /// Opens it to look at what is there.
    pub(crate) fn read(&self) -> Result<Box<dyn Store>, Failure> {
        self.open(Access::Read)
    }

    /// Opens it to add something; makes it where there is none.
    pub(crate) fn write(&self) -> Result<Box<dyn Store>, Failure> {
        self.open(Access::Write)
    }

    /// Opens it to go on with what is there: brings an older one up to date, makes none.
    pub(crate) fn existing(&self) -> Result<Box<dyn Store>, Failure> {
        match open(&self.place, Access::Read) {
            Err(StoreError::OlderSchema { .. }) => self.write(),
            opened => opened.map_err(refused),
        }
    }

    fn open(&self, access: Access) -> Result<Box<dyn Store>, Failure> {
        open(&self.place, access).map_err(refused)
    }
}

fn refused(error: StoreError) -> Failure {
    match &error {
        StoreError::NoWorkspace { .. } => Failure::usage(format!(
            "{error}; --workspace FOLDER or NEPH_WORKSPACE names another"
        )),
        StoreError::UnknownScheme { .. } => Failure::usage(error),
        StoreError::File {
            operation, source, ..
        } if *operation == "make the folder" || source.kind() == ErrorKind::PermissionDenied => {
            Failure::usage(format!(
                "{error}; --workspace FOLDER or NEPH_WORKSPACE names a folder that you may write into"
            ))
        }
        _ => Failure::refused(error),
    }
}
