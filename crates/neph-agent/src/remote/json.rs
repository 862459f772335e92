//! Local state as JSON files.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use neph_text::{DiskError, write_durable};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes a value to a file. The complete file is on the disk when this returns.
///
/// # Errors
/// The disk refuses.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), DiskError> {
    let text = serde_json::to_vec(value).map_err(io::Error::from);
    let result = text.and_then(|text| write_durable(path, &text));
    result.map_err(DiskError::of("write", path))
}

/// The value in a file; `None` if there is no such file. Files are always complete: an unreadable one is of
/// another version, and is not deleted.
///
/// # Errors
/// The disk refuses, or the file is of another version.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, DiskError> {
    match fs::read(path) {
        Ok(bytes) => {
            let parsed = serde_json::from_slice(&bytes).map_err(io::Error::from);
            parsed.map(Some).map_err(DiskError::of("understand", path))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DiskError::of("read", path)(error)),
    }
}
