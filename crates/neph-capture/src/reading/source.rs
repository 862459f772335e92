//! Sources of captures: plain, compressed, or from a pipe.
//!
//! Owns opening them. All are read as a stream.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::{ReadSummary, read_capture, read_merged};
use neph_wire::capture::Record;

use super::compressed::{Decompressed, decompress};
use super::ending;
use super::parts::capture_files;
use super::{ReadError, Reader};

/// Checks that a capture exists, before others are read.
///
/// # Errors
/// It does not exist, or is a folder.
pub fn check_exists(path: &Path) -> Result<(), ReadError> {
    capture_files(path)
        .iter()
        .try_for_each(|part| check_file(part))
}

/// Whether a capture consists of files and can be read more than once.
pub fn is_file(path: &Path) -> bool {
    let is_regular_file =
        |part: &PathBuf| fs::metadata(part).is_ok_and(|metadata| metadata.is_file());
    capture_files(path).iter().all(is_regular_file)
}

fn check_file(path: &Path) -> Result<(), ReadError> {
    let name = path.display();
    if path.as_os_str() == "-" {
        return Ok(());
    }
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(ReadError::wrong(format!(
            "{name} is a folder; name the captures in it: {name}/*.pcap"
        ))),
        Ok(_) => Ok(()),
        Err(error) => Err(open_error(path, &error)),
    }
}

/// The error for a file that cannot be opened.
fn open_error(path: &Path, error: &io::Error) -> ReadError {
    let name = path.display();
    let remedy = match error.kind() {
        ErrorKind::NotFound => "give a capture's path as seen from this folder",
        ErrorKind::PermissionDenied => "ask its owner for the right to read it, or read it as root",
        _ => "see that it is a capture, and its disk is well",
    };
    ReadError::wrong(format!("read {name}: {error}; {remedy}"))
}

/// A capture that was opened.
pub enum Source {
    Single(Box<dyn Read>),
    /// Several captures of one point, read as one.
    Several(Vec<(String, Box<dyn Read>)>),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single(_) => f.write_str("Single"),
            Self::Several(parts) => {
                let names = parts.iter().map(|(name, _)| name);
                f.debug_list().entries(names).finish()
            }
        }
    }
}

/// Opens a capture, or several of one point (`a.pcap+b.pcap`). `-` is standard input, which also ends when
/// `stop` is set.
///
/// # Errors
/// It does not exist, may not be read, or its compression is not supported.
pub fn open(path: &Path, reader: Reader<'_>) -> Result<Source, ReadError> {
    let parts = capture_files(path);
    if let [_] = parts[..] {
        return open_file(path, reader).map(Source::Single);
    }
    let sources = parts.into_iter().map(|part| {
        let source = open_file(&part, reader)?;
        Ok((part.display().to_string(), source))
    });
    Ok(Source::Several(sources.collect::<Result<_, ReadError>>()?))
}

/// A capture that was read.
#[derive(Debug)]
pub struct ReadCapture {
    pub summary: ReadSummary,
    /// The error of one of several captures, with its name. The summary has that of a single one.
    pub error: Option<ReadError>,
}

impl Source {
    /// Passes on each packet until `on_record` stops, with several captures in the order of time. With several it
    /// reports truncated ones itself, and one with an error ends all.
    pub fn read(
        self,
        reader: Reader<'_>,
        mut on_record: impl FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> ReadCapture {
        match self {
            Self::Single(mut source) => ReadCapture {
                summary: read_capture(&mut source, on_record),
                error: None,
            },
            Self::Several(parts) => read_parts(parts, reader, &mut on_record),
        }
    }
}

fn read_parts(
    parts: Vec<(String, Box<dyn Read>)>,
    reader: Reader<'_>,
    on_record: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
) -> ReadCapture {
    let (names, sources): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let mut error = None;
    let on_end = |index: usize, summary: ReadSummary| match ending::message(&names[index], &summary)
    {
        Ok(message) => {
            if let Some(message) = message {
                (reader.print_message)(&message);
            }
            ControlFlow::Continue(())
        }
        Err(failure) => {
            error = Some((failure, summary.ending));
            ControlFlow::Break(())
        }
    };
    let mut summary = read_merged(sources, on_record, on_end);
    let error = error.map(|(failure, ending)| {
        summary.ending = ending;
        failure
    });
    ReadCapture { summary, error }
}

fn open_file(path: &Path, reader: Reader<'_>) -> Result<Box<dyn Read>, ReadError> {
    let open_error = |error: io::Error| open_error(path, &error);
    let file: Box<dyn Read> = if path.as_os_str() == "-" {
        (reader.stdin)(reader.stop).map_err(open_error)?
    } else {
        Box::new(File::open(path).map_err(open_error)?)
    };
    match decompress(file).map_err(open_error)? {
        Decompressed::Bytes(bytes) => Ok(bytes),
        Decompressed::Unsupported(program) => {
            let path = path.display();
            Err(ReadError::wrong(format!(
                "{path} is compressed by {program}; decompress it: {program} -dc {path} | neph read -"
            )))
        }
    }
}
