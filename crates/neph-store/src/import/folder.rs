//! Classifies the files of an output folder by their first line.

use std::fs;
use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::{iperf, route, tcp_stats};
use crate::StoreError;

/// Maximum depth of the search: users may have sorted the files into folders.
const MAX_DEPTH: usize = 4;
/// Maximum size of a settings file in bytes.
const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// End-to-end times of one step.
    Raw,
    /// TCP acknowledgements from a capture.
    Tshark,
    /// The output of `ping -D`.
    Ping,
    /// The output of iperf3.
    Iperf,
    /// The output of traceroute.
    Traceroute,
    /// TCP statistics of the client's socket.
    TcpStats,
    /// The settings file of the run.
    Settings,
    /// None of these.
    Unknown,
}

/// A file and its kind.
#[derive(Clone, Debug)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) kind: FileKind,
}

/// All files below `folder`, by path.
pub(super) fn sources(folder: &Path) -> Result<Vec<SourceFile>, StoreError> {
    let mut sources = Vec::new();
    search(folder, MAX_DEPTH, &mut sources)?;
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn search(folder: &Path, depth: usize, sources: &mut Vec<SourceFile>) -> Result<(), StoreError> {
    let list_error = || StoreError::file("list", folder);
    for entry in fs::read_dir(folder).map_err(list_error())? {
        let entry = entry.map_err(list_error())?;
        let path = entry.path();
        let file_type = entry.file_type().map_err(list_error())?;
        if file_type.is_dir() && depth > 1 {
            search(&path, depth - 1, sources)?;
        } else if file_type.is_file() {
            let kind = kind_of(&path)?;
            sources.push(SourceFile { path, kind });
        }
    }
    Ok(())
}

fn kind_of(path: &Path) -> Result<FileKind, StoreError> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if matches!(extension, Some("yaml" | "yml")) {
        return Ok(FileKind::Settings);
    }
    let mut lines = Lines::of(path)?;
    let first_line = loop {
        match lines.next()? {
            Some(line) if line.text.is_empty() => {}
            Some(line) => break line.text,
            None => return Ok(FileKind::Unknown),
        }
    };
    Ok(if first_line.starts_with("#client-send-timestamp") {
        FileKind::Raw
    } else if first_line.starts_with("#frame-timestamp,tcp-ack-rtt") {
        FileKind::Tshark
    } else if first_line.starts_with("PING ") {
        FileKind::Ping
    } else if first_line.starts_with(iperf::FIRST_LINE_PREFIX) {
        FileKind::Iperf
    } else if first_line.starts_with(route::FIRST_LINE_PREFIX) {
        FileKind::Traceroute
    } else if first_line.starts_with(tcp_stats::FIRST_LINE_PREFIX) {
        FileKind::TcpStats
    } else {
        FileKind::Unknown
    })
}

/// The settings file's path and text, if there is exactly one. It becomes the campaign's plan.
pub(super) fn settings(sources: &[SourceFile]) -> Result<Option<(PathBuf, String)>, StoreError> {
    let mut settings = sources
        .iter()
        .filter(|source| source.kind == FileKind::Settings);
    let (Some(settings_source), None) = (settings.next(), settings.next()) else {
        return Ok(None);
    };
    let path = &settings_source.path;
    let length = fs::metadata(path)
        .map_err(StoreError::file("look at", path))?
        .len();
    if length > MAX_SETTINGS_BYTES {
        return Ok(None);
    }
    let bytes = fs::read(path).map_err(StoreError::file("read", path))?;
    Ok(Some((
        path.clone(),
        String::from_utf8_lossy(&bytes).into_owned(),
    )))
}
