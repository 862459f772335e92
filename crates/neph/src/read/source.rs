//! Captures as they lie about: plain, packed, or from a pipe.
//!
//! Owns opening them; all are read as a stream.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::packed::{Unpacked, unpacked};
use crate::exit::Failure;

/// Opens a capture; `-` is standard input.
///
/// # Errors
/// When it is not there, may not be read, or is packed in a way that is not read here.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    let refused = |error: io::Error| Failure::usage(format!("read {}: {error}", path.display()));
    let file: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(refused)?)
    };
    match unpacked(file).map_err(refused)? {
        Unpacked::Bytes(bytes) => Ok(bytes),
        Unpacked::Other(program) => {
            let path = path.display();
            Err(Failure::usage(format!(
                "{path} is packed by {program}; unpack it: {program} -dc {path} | neph read -"
            )))
        }
    }
}
