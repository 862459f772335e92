//! A started capture, and its result.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use neph_model::Stop;
use neph_text::counted::counted;

use super::Wanted;
use super::course::Tally;
use super::point_text::Point;
use super::{PointRecording, RecordingOptions};
use crate::{CaptureFile, ListenError};

/// The kernel's boot ID, new at each boot.
pub(super) const KERNEL: &str = "/proc/sys/kernel/random/boot_id";

/// Identifies the running kernel, and thereby its clock; empty if it cannot be read.
pub fn kernel() -> String {
    let number = fs::read_to_string(KERNEL).unwrap_or_default();
    number.trim().to_owned()
}

/// The result of a point's thread.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) recorded: PointRecording,
    pub(super) fault: Option<ListenError>,
}

/// State shared by all threads.
#[derive(Clone, Copy)]
pub(super) struct SharedState<'a> {
    pub(super) options: &'a RecordingOptions,
    pub(super) is_over: &'a AtomicBool,
    /// Set when the user requests the end.
    pub(super) stop: &'a Stop,
    /// The wanted samples of points at agents.
    pub(super) live: Option<Wanted<'a>>,
}

/// A started capture of a point.
pub(super) struct StartedCapture<'a> {
    pub(super) point: &'a Point,
    pub(super) path: PathBuf,
    pub(super) file: CaptureFile,
    pub(super) tally: &'a Tally,
}

/// The error of a failed write. It names the folder, because the capture may be deleted before the
/// user reads it.
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
