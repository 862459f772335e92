//! Passages as figures: what neph-report draws of them, and the folder that it goes to.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use neph_capture::Way;
use neph_report::{
    HopsDelay, HopsDrawing, HopsPacket, HopsProtocol, HopsWay, ReportError, hops, write_figures,
};
use neph_text::Existing;
use neph_text::Outside;

use crate::exit::Failure;
use crate::sink::Force;
use crate::{output, sink};
use neph_capture::path::passages::{End, PROTOCOLS, Passages, Row, protocol};

/// [`PROTOCOLS`], as figures have them.
const KINDS: [HopsProtocol; PROTOCOLS.len()] = [
    HopsProtocol::Icmp,
    HopsProtocol::Tcp,
    HopsProtocol::Udp,
    HopsProtocol::Other,
];

/// Refuses a place that is no folder, cannot be one or cannot be written to, before anything is read.
/// Leaves nothing there.
///
/// # Errors
/// One of these.
pub(super) fn check(folder: Option<&Path>, force: Force) -> Result<(), Failure> {
    let Some(folder) = folder else { return Ok(()) };
    let refused = |why: String| Failure::Usage(format!("--figure {}: {why}", folder.display()));
    if folder.exists() && !folder.is_dir() {
        return Err(refused("a folder is needed, and this is none".to_owned()));
    }
    let ending = folder.extension().and_then(OsStr::to_str);
    if !folder.exists() && matches!(ending, Some("svg" | "png" | "pdf")) {
        return Err(refused(
            "several figures are drawn, and a folder is needed; leave the file's name away"
                .to_owned(),
        ));
    }
    if force.existing() == Existing::Keep
        && let Some(earlier) = earlier(folder)
    {
        return Err(refused(format!(
            "{} exists; name another folder, or replace it with --force",
            Outside::path(&earlier)
        )));
    }
    let ancestors = folder.ancestors();
    let absent: Vec<&Path> = ancestors.take_while(|place| !place.exists()).collect();
    let tried = fs::create_dir_all(folder).and_then(|()| {
        let name = folder.join(format!(".neph-{}", std::process::id()));
        File::create_new(&name)?;
        fs::remove_file(name)
    });
    for made in absent {
        // What was not made, or is no more empty, stays.
        let _ = fs::remove_dir(made);
    }
    tried.map_err(|error| {
        refused(format!(
            "no figures can be written there: {error}; name another folder"
        ))
    })
}

/// A figure of this command that is in the folder.
fn earlier(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.flatten();
    let mut names = files.map(|file| file.path());
    names.find(|path| {
        let stem = path.file_stem().and_then(OsStr::to_str);
        let ending = path.extension().and_then(OsStr::to_str);
        stem.is_some_and(|stem| stem.starts_with("hops"))
            && matches!(ending, Some("svg" | "png" | "pdf"))
    })
}

/// Draws them all and writes them where it was asked for.
///
/// # Errors
/// The folder or a file cannot be written.
pub(super) fn write(
    passages: &Passages,
    folder: Option<&Path>,
    force: Force,
) -> Result<(), Failure> {
    let Some(folder) = folder else { return Ok(()) };
    let segments = passages.names.len().saturating_sub(1);
    let mut delays: Vec<HopsDelay> = Vec::new();
    let mut packets: Vec<HopsPacket<'_>> = Vec::new();
    for row in passages.rows() {
        let Some(since) = row.since else { continue };
        delays.extend((0..segments).map(|segment| delay(&row, segment)));
        packets.push(HopsPacket {
            since: since.nanos(),
            way: match row.way {
                Way::There => HopsWay::There,
                Way::Back => HopsWay::Back,
            },
            protocol: KINDS[protocol(row.passage.flow.protocol)],
            segments: &[],
            round_trip: row.round_trip.map(neph_model::Span::nanos),
        });
    }
    for (packet, segments) in packets.iter_mut().zip(delays.chunks(segments.max(1))) {
        packet.segments = segments;
    }
    let drawn = hops(&HopsDrawing {
        points: &passages.names,
        packets: &packets,
    });
    if drawn.is_empty() {
        output::say("neph hops: no figures: of no packet a segment is known");
        return Ok(());
    }
    write_figures(&drawn, folder, force.existing()).map_err(|error| match &error {
        ReportError::File { path, source } => sink::failure(path, source),
        _ => Failure::refused(&error),
    })?;
    Ok(())
}

fn delay(row: &Row, segment: usize) -> HopsDelay {
    match row.delays.get(segment).copied().flatten() {
        Some(told) => HopsDelay::Known {
            delay: told.delay.nanos(),
            bound: told.bound.nanos(),
        },
        None if row.end == End::Lost(segment) => HopsDelay::Lost,
        None => HopsDelay::Unknown,
    }
}
