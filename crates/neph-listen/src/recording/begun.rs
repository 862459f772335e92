//! A capture that was begun, and what is left of it when it is over.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use neph_model::Stop;
use neph_text::counted::counted;

use super::Wanted;
use super::course::Tally;
use super::spelling::Point;
use super::{Recorded, RecordingOptions};
use crate::{CaptureFile, ListenError};

/// A number that the kernel makes anew each time it starts.
pub(super) const KERNEL: &str = "/proc/sys/kernel/random/boot_id";

/// Stands for the kernel that runs, and so for its clock; empty where it cannot be read.
pub fn kernel() -> String {
    let number = fs::read_to_string(KERNEL).unwrap_or_default();
    number.trim().to_owned()
}

/// What a point's thread leaves.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) recorded: Recorded,
    pub(super) fault: Option<ListenError>,
}

/// What all threads share.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    pub(super) options: &'a RecordingOptions,
    pub(super) is_over: &'a AtomicBool,
    /// Somebody asks for the end.
    pub(super) stop: &'a Stop,
    /// Which samples of the points at agents are wanted.
    pub(super) live: Option<Wanted<'a>>,
}

/// A capture that was begun, and for whom.
pub(super) struct Begun<'a> {
    pub(super) point: &'a Point,
    pub(super) path: PathBuf,
    pub(super) file: CaptureFile,
    pub(super) tally: &'a Tally,
}

/// What is to be said of a capture that takes no more. It may be gone when this is read: where there
/// was no room for it stays.
pub(super) fn unwritten(
    name: &str,
    packets: u64,
    error: &io::Error,
    options: &RecordingOptions,
) -> ListenError {
    let (folder, other) = match &options.save {
        Some(folder) => (folder.clone(), "--save"),
        None => (env::temp_dir(), "TMPDIR, or --save FOLDER"),
    };
    ListenError::refused(format!(
        "{name}: write in {}: {error}; its capture ended with {}: make room there, name another folder \
         ({other}), or keep less of each packet (--snaplen)",
        folder.display(),
        counted(packets, "packet")
    ))
}
