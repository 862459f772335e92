//! The `--workspace` option. neph-store has the contents of a workspace.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;
use neph_store::{Access, Store, StoreError, open};

use crate::exit::Failure;

/// The variable that names the workspace if the command line does not.
const WORKSPACE_VARIABLE: &str = "NEPH_WORKSPACE";
const DEFAULT_WORKSPACE: &str = ".neph";

/// The workspace option.
#[derive(Clone, Debug, Args)]
pub(crate) struct Workspace {
    /// Folder with stored campaigns (workspace), which `neph run`, `neph flows --save` and `neph import` write
    #[arg(
        long = "workspace",
        value_name = "FOLDER",
        env = WORKSPACE_VARIABLE,
        default_value = DEFAULT_WORKSPACE
    )]
    pub(crate) location: String,
}

impl Workspace {
    /// Whether the command line named the workspace, not the environment or the default.
    pub(crate) fn is_given(&self) -> bool {
        let default_location = std::env::var(WORKSPACE_VARIABLE);
        self.location != default_location.as_deref().unwrap_or(DEFAULT_WORKSPACE)
    }

    /// The option that repeats this workspace in a suggested command; empty for the usual one.
    pub(crate) fn option(&self) -> String {
        if self.is_given() {
            format!(" --workspace {}", self.location)
        } else {
            String::new()
        }
    }

    /// The folder next to the store for other files, such as reports.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self
            .location
            .strip_prefix("file:")
            .unwrap_or(&self.location);
        PathBuf::from(folder)
    }

    /// Opens the workspace for reading.
    pub(crate) fn read(&self) -> Result<Box<dyn Store>, Failure> {
        self.open(Access::Read)
    }

    /// Opens the workspace for writing; creates it if necessary.
    pub(crate) fn write(&self) -> Result<Box<dyn Store>, Failure> {
        self.open(Access::Write)
    }

    /// Opens an existing workspace, and migrates an older one; creates none.
    pub(crate) fn open_existing(&self) -> Result<Box<dyn Store>, Failure> {
        match open(&self.location, Access::Read) {
            Err(StoreError::OlderSchema { .. }) => self.write(),
            result => result.map_err(to_failure),
        }
    }

    fn open(&self, access: Access) -> Result<Box<dyn Store>, Failure> {
        open(&self.location, access).map_err(to_failure)
    }
}

fn to_failure(error: StoreError) -> Failure {
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
