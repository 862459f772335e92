//! Passages as figures: what neph-report draws of them, and the folder that it goes to.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;

use neph_capture::Way;
use neph_report::{HopsDelay, HopsDrawing, HopsPacket, HopsProtocol, HopsWay, hops, write_figures};

use super::passages::{End, PROTOCOLS, Passages, Row, protocol};
use crate::exit::Failure;
use crate::output;

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
pub(super) fn check(folder: Option<&Path>) -> Result<(), Failure> {
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

/// Draws them all and writes them where it was asked for.
///
/// # Errors
/// The folder or a file cannot be written.
pub(super) fn write(passages: &Passages, folder: Option<&Path>) -> Result<(), Failure> {
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
    write_figures(&drawn, folder).map_err(Failure::refused)?;
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
