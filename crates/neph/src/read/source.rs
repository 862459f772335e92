//! Captures as they lie about: plain, packed, or from a pipe.
//!
//! Owns opening them; all are read as a stream.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neph_capture::{Account, read_capture, read_merged};
use neph_model::Stop;
use neph_sys::ppoll::{Awaited, wait};
use neph_wire::capture::Record;

use super::ending;
use super::packed::{Unpacked, unpacked};
use super::parts::parts;
use crate::exit::Failure;
use crate::output;

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

/// A capture that was opened.
pub(crate) enum Source {
    One(Box<dyn Read>),
    /// Of one point: they are read as one.
    Several(Vec<(String, Box<dyn Read>)>),
}

/// Opens a capture, or several of one point (`a.pcap+b.pcap`); `-` is standard input, which ends too when
/// `stop` is set.
///
/// # Errors
/// When it is not there, may not be read, or is packed in a way that is not read here.
pub(crate) fn open(path: &Path, stop: &Stop) -> Result<Source, Failure> {
    let parts = parts(path);
    if let [_] = parts[..] {
        return open_one(path, stop).map(Source::One);
    }
    let named = parts.into_iter().map(|part| {
        let source = open_one(&part, stop)?;
        Ok((part.display().to_string(), source))
    });
    Ok(Source::Several(named.collect::<Result<_, Failure>>()?))
}

/// A capture that was read.
pub(crate) struct Taken {
    pub(crate) account: Account,
    /// What is wrong with one of several, with its name; what is wrong with a single one its account says.
    pub(crate) wrong: Option<Failure>,
}

impl Source {
    /// Hands out each packet, in the order of time where there are several captures, until `take` breaks
    /// off. Of several it says itself which was cut off; one that is wrong ends all.
    pub(crate) fn read(self, mut take: impl FnMut(Record<'_>) -> ControlFlow<()>) -> Taken {
        match self {
            Self::One(mut source) => Taken {
                account: read_capture(&mut source, take),
                wrong: None,
            },
            Self::Several(parts) => several(parts, &mut take),
        }
    }
}

fn several(
    parts: Vec<(String, Box<dyn Read>)>,
    take: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
) -> Taken {
    let (names, sources): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let mut wrong = None;
    let ended = |place: usize, account: Account| match ending::said(&names[place], &account) {
        Ok(said) => {
            if let Some(said) = said {
                output::say(&format!("neph: {said}"));
            }
            ControlFlow::Continue(())
        }
        Err(failure) => {
            wrong = Some((failure, account.ending));
            ControlFlow::Break(())
        }
    };
    let mut account = read_merged(sources, take, ended);
    let wrong = wrong.map(|(failure, ending)| {
        account.ending = ending;
        failure
    });
    Taken { account, wrong }
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
