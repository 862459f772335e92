//! Captures as they lie about: plain, packed, or from a pipe.
//!
//! Owns opening them; all are read as a stream.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::packed::{Unpacked, unpacked};
use crate::exit::Failure;

/// Whether a capture is there, before others are read.
///
/// # Errors
/// It is not, or is a folder.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let name = path.display();
    if path.as_os_str() == "-" {
        return Ok(());
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(Failure::usage(format!(
            "{name} is a folder; name the captures in it: {name}/*.pcap"
        ))),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(format!(
            "read {name}: {error}; give a capture's path as seen from this folder"
        ))),
    }
}

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
