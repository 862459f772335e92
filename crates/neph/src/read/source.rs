//! Captures as they lie about: plain, packed, or from a pipe.
//!
//! Owns opening them; all are read as a stream.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
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
        Err(error) => Err(refused(path, &error)),
    }
}

/// What is said of a file that cannot be opened.
fn refused(path: &Path, error: &io::Error) -> Failure {
    let name = path.display();
    let remedy = match error.kind() {
        ErrorKind::NotFound => "give a capture's path as seen from this folder",
        ErrorKind::PermissionDenied => "ask its owner for the right to read it, or read it as root",
        _ => "see that it is a capture, and its disk is well",
    };
    Failure::usage(format!("read {name}: {error}; {remedy}"))
}

/// Opens a capture; `-` is standard input.
///
/// # Errors
/// When it is not there, may not be read, or is packed in a way that is not read here.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    let refused = |error: io::Error| refused(path, &error);
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
