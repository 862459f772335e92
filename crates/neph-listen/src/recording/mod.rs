//! Records live points: several interfaces on this host or others at the same time, each into its
//! own capture.
//!
//! Owns the start and the end of the points' threads. Points on other hosts start first, because
//! that takes time; local ones start when all of them record. Does not own the use of the captures.

mod agents;
mod captured;
mod course;
mod folder;
mod live_evaluation;
mod options;
mod point;
mod point_text;
mod relay;
mod remote;
mod running;
mod sampling;
mod started_capture;
mod starting;
mod tail;
mod threads;

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;

use neph_model::{ClockReading, PacketSample, Stop, Wall};
use neph_text::counted::counted;

use crate::ListenError;
pub use agents::{AgentCapture, Agents, AgentsCourse};
use folder::Folder;
pub use live_evaluation::{AlarmListener, LiveEvaluation, LiveEvaluationSpec};
pub use options::RecordingOptions;
pub use point::record as record_point;
use point_text::PointLocation;
pub use point_text::{Namespaces, Point};
use running::Ending;
pub use sampling::Sampling;
pub use started_capture::kernel;

/// The recording of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointRecording {
    pub name: String,
    pub file: PathBuf,
    /// Identifies the kernel whose clock timestamped the packets: points with the same kernel have
    /// the same clock.
    pub host: String,
    pub packets: u64,
    /// Packets that were lost before the capture, if known.
    pub lost: Option<u64>,
    /// The time range in which all packets were captured, by the clock of the packets. Known for
    /// local points and for points at agents that had room for all of it.
    pub listened: Option<[Wall; 2]>,
    /// Offsets of its clock to this host's, if known, at times of its packets.
    pub clock: Vec<ClockReading>,
}

impl PointRecording {
    /// An empty recording.
    fn none(point: &Point, folder: &Folder) -> Self {
        Self {
            name: point.name.clone(),
            file: folder.path_of(&point.name),
            // The kernel of another host is known at the end.
            host: match point.location {
                PointLocation::Local(_) => String::new(),
                PointLocation::Remote(..) | PointLocation::Agent(..) => point.name.clone(),
            },
            packets: 0,
            lost: None,
            listened: None,
            clock: Vec::new(),
        }
    }
}

/// The wanted samples of packets during a recording.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Indices of the points.
    pub points: &'a [usize],
    /// The receiver.
    pub to: &'a SyncSender<LivePackets>,
}

/// Packets during a recording.
#[derive(Debug)]
pub enum LivePackets {
    /// The paths of all points' growing captures.
    Captures(Vec<PathBuf>),
    /// The index of a point, and a sample of its agent.
    Sample(usize, PacketSample),
}

/// Receives the progress of a recording, and can end it.
#[derive(Clone, Copy)]
pub struct Received<'h> {
    /// Ends the recording.
    pub stop: &'h Stop,
    /// Called with the future captures before the recording starts.
    pub begins: &'h dyn Fn(&[PointRecording]),
    /// The wanted samples of points at agents; without it agents send none.
    pub live: Option<Wanted<'h>>,
    /// Prints a sentence.
    pub say: &'h dyn Fn(&str),
    /// Replaces the last line of progress on a terminal; an empty line removes it.
    pub progress: Option<&'h dyn Fn(&str)>,
}

impl fmt::Debug for Received<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Heard")
    }
}

/// The captures of all points, in their order.
#[derive(Debug)]
pub struct Recording {
    pub points: Vec<PointRecording>,
    /// Why a point ended early; its capture has the packets until then.
    pub fault: Option<ListenError>,
    /// The captures exist as long as this value.
    folder: Folder,
}

impl Recording {
    /// Keeps the captures after a failed analysis.
    pub const fn stay(&mut self) {
        self.folder.stay();
    }
}

/// Records these points until they have enough packets, the time is over or the user ends it.
/// `agents` records points at agents.
///
/// # Errors
/// A point cannot be opened, or the user pressed Ctrl-C before all were recorded.
pub fn record(
    points: &[Point],
    options: &RecordingOptions,
    agents: Option<Box<dyn Agents>>,
    received: Received<'_>,
) -> Result<Recording, ListenError> {
    refuse_same_names(points)?;
    options.packet_filter.check()?;
    let mut folder = Folder::open(options.save.as_deref())?;
    let expected: Vec<PointRecording> = (points
        .iter()
        .map(|point| PointRecording::none(point, &folder)))
    .collect();
    (received.begins)(&expected);
    let ran = threads::run(points, options, &mut folder, agents, received);
    if ran.is_err() {
        folder.take_back();
    }
    let (ending, outcomes) = ran?;
    if let Some(remark) = remark(&ending, points, options) {
        (received.say)(&format!("neph hops: {remark}"));
    }
    let mut fault = None;
    let mut recorded = Vec::new();
    for outcome in outcomes {
        let point = &outcome.recorded;
        let lost = match point.lost {
            Some(lost) => format!("{lost} lost"),
            None => "how many were lost is not known".to_owned(),
        };
        let packets = counted(point.packets, "packet");
        let file_note = options.save.as_ref().map(|_| point.file.display());
        let file_note = file_note.map_or(String::new(), |file| format!(" in {file}"));
        (received.say)(&format!(
            "neph hops: {}: {packets}{file_note}, {lost}",
            point.name
        ));
        fault = fault.or(outcome.fault);
        recorded.push(outcome.recorded);
    }
    Ok(Recording {
        points: recorded,
        fault,
        folder,
    })
}

fn refuse_same_names(points: &[Point]) -> Result<(), ListenError> {
    for (at, point) in points.iter().enumerate() {
        if let Some(other) = points[..at].iter().find(|other| other.name == point.name) {
            return Err(ListenError::wrong(format!(
                "two points are called {}: {} and {}; write NAME= before one of them",
                point.name,
                other.description(),
                point.description()
            )));
        }
    }
    Ok(())
}

/// The message about the end.
fn remark(ending: &Ending, points: &[Point], options: &RecordingOptions) -> Option<String> {
    let name = |point: &usize| points.get(*point).map_or("", |point| point.name.as_str());
    match ending {
        Ending::Duration | Ending::Stopped | Ending::PacketLimit => None,
        Ending::ByteLimit(point) => Some(format!(
            "{} has reached {}; the recording ends (--limit sets another)",
            name(point),
            options.limit
        )),
        Ending::PointEnded(point) => Some(format!("{} ended; so do the others", name(point))),
    }
}
