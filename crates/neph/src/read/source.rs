//! Captures as they lie about: plain, packed, or from a pipe.
//!
//! Owns opening them; all are read as a stream.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neph_probe::Stop;
use neph_sys::ppoll::{Awaited, wait};

use super::merged::{Merged, parts};
use super::packed::{Unpacked, unpacked};
use crate::exit::Failure;

/// Ctrl-C is noticed after this long, at most.
const PATIENCE: Duration = Duration::from_millis(50);

/// Whether a capture is there, before others are read.
///
/// # Errors
/// It is not, or is a folder.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    parts(path).iter().try_for_each(|part| check_one(part))
}

/// Whether a capture lies in files, and can be read more than once.
pub(super) fn is_file(path: &Path) -> bool {
    let is_one = |part: &PathBuf| fs::metadata(part).is_ok_and(|found| found.is_file());
    parts(path).iter().all(is_one)
}

fn check_one(path: &Path) -> Result<(), Failure> {
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

/// Standard input, which may be silent for as long as it likes: it ends when somebody wants no more.
struct Patient {
    input: File,
    stop: Stop,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut awaited = [Awaited::readable(self.input.as_fd())];
            wait(&mut awaited, Some(PATIENCE))?;
            if awaited[0].has_something() {
                return self.input.read(buffer);
            }
            if self.stop.is_set() {
                return Ok(0);
            }
        }
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

/// Opens a capture, or several of one point that are read as one (`a.pcap+b.pcap`); `-` is standard input, which ends too when `stop` is set.
///
/// # Errors
/// When it is not there, may not be read, or is packed in a way that is not read here.
pub(crate) fn open(path: &Path, stop: &Stop) -> Result<Box<dyn Read>, Failure> {
    let parts = parts(path);
    if let [_] = parts[..] {
        return open_one(path, stop);
    }
    let named = parts.into_iter().map(|part| {
        let source = open_one(&part, stop)?;
        Ok((part.display().to_string(), source))
    });
    Ok(Box::new(Merged::of(
        named.collect::<Result<_, Failure>>()?,
    )?))
}

fn open_one(path: &Path, stop: &Stop) -> Result<Box<dyn Read>, Failure> {
    let refused = |error: io::Error| refused(path, &error);
    let file: Box<dyn Read> = if path.as_os_str() == "-" {
        // Without a buffer: what lies in one is not seen by who waits for more.
        let input = io::stdin().as_fd().try_clone_to_owned();
        Box::new(Patient {
            input: input.map_err(refused)?.into(),
            stop: stop.clone(),
        })
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
