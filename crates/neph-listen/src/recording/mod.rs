//! Live points: several interfaces, on this host or on others, recorded at once, each into a capture of
//! its own.
//!
//! Joins the points' threads and decides when they begin and end. Those on other hosts begin first, since
//! they take their time; those here when all of them have. What the captures are for is not known
//! here.

mod agents;
mod begun;
mod captured;
mod course;
mod folder;
mod judging;
mod options;
mod point;
mod relay;
mod remote;
mod running;
mod sampling;
mod spelling;
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
pub use begun::kernel;
use folder::Folder;
pub use judging::{AlarmListener, Judging, JudgingSpec};
pub use options::RecordingOptions;
pub use point::record as record_point;
use running::Ending;
pub use sampling::Sampling;
use spelling::Spot;
pub use spelling::{Namespaces, Point};

/// What a point gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub name: String,
    pub file: PathBuf,
    /// What stands for the kernel whose clock stamped: two points of the same have one clock.
    pub host: String,
    pub packets: u64,
    /// Packets that were lost on the way into the capture, where that is known.
    pub lost: Option<u64>,
    /// From when until when what passed came into the capture, by the clock of its packets: known of points
    /// here and at agents that had room for all of it.
    pub listened: Option<[Wall; 2]>,
    /// How far its clock was from this host's, where that is known; moments are those of its packets.
    pub clock: Vec<ClockReading>,
}

impl Recorded {
    /// Nothing yet.
    fn none(point: &Point, folder: &Folder) -> Self {
        Self {
            name: point.name.clone(),
            file: folder.path_of(&point.name),
            // Whose kernel stamps elsewhere is known when it has ended.
            host: match point.spot {
                Spot::Here(_) => String::new(),
                Spot::RemotePoint(..) | Spot::Agent(..) => point.name.clone(),
            },
            packets: 0,
            lost: None,
            listened: None,
            clock: Vec::new(),
        }
    }
}

/// Samples of packets that are wanted while points record.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Of which points, by their places.
    pub points: &'a [usize],
    /// Who takes them.
    pub to: &'a SyncSender<LivePackets>,
}

/// What is known of packets while points record.
#[derive(Debug)]
pub enum LivePackets {
    /// The captures that grow, of all points.
    Captures(Vec<PathBuf>),
    /// What an agent sent, and its point's place among all.
    Sample(usize, PacketSample),
}

/// Who hears of a recording, and ends it.
#[derive(Clone, Copy)]
pub struct Received<'h> {
    /// Ends it.
    pub stop: &'h Stop,
    /// Hears where the captures will be, before there are any.
    pub begins: &'h dyn Fn(&[Recorded]),
    /// Which samples of packets at agents are wanted; else agents send none.
    pub live: Option<Wanted<'h>>,
    /// Prints a sentence.
    pub say: &'h dyn Fn(&str),
    /// Writes over the last line of progress, where a terminal shows it; an empty line takes it away.
    pub progress: Option<&'h dyn Fn(&str)>,
}

impl fmt::Debug for Received<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Heard")
    }
}

/// Captures of all points, in their order.
#[derive(Debug)]
pub struct Recording {
    pub points: Vec<Recorded>,
    /// Why a point ended before its time; what it has until then is in its capture.
    pub fault: Option<ListenError>,
    /// They are there as long as this is.
    folder: Folder,
}

impl Recording {
    /// Nothing was told of the captures: they stay where they are.
    pub const fn stay(&mut self) {
        self.folder.stay();
    }
}

/// Records these points until they have enough, the time is over or somebody asks for the end. Those at agents are
/// recorded by `agents`.
///
/// # Errors
/// A point cannot be opened, or ctrl-C came before all of them were.
pub fn record(
    points: &[Point],
    options: &RecordingOptions,
    agents: Option<Box<dyn Agents>>,
    received: Received<'_>,
) -> Result<Recording, ListenError> {
    refuse_same_names(points)?;
    options.choice.check()?;
    let mut folder = Folder::open(options.save.as_deref())?;
    let expected: Vec<Recorded> =
        (points.iter().map(|point| Recorded::none(point, &folder))).collect();
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
        let place = options.save.as_ref().map(|_| point.file.display());
        let place = place.map_or(String::new(), |file| format!(" in {file}"));
        (received.say)(&format!(
            "neph hops: {}: {packets}{place}, {lost}",
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
                other.reported(),
                point.reported()
            )));
        }
    }
    Ok(())
}

/// What is to be said of the end.
fn remark(ending: &Ending, points: &[Point], options: &RecordingOptions) -> Option<String> {
    let name = |point: &usize| points.get(*point).map_or("", |point| point.name.as_str());
    match ending {
        Ending::Time | Ending::Asked | Ending::Enough => None,
        Ending::Limit(point) => Some(format!(
            "{} has reached {}; the recording ends (--limit sets another)",
            name(point),
            options.limit
        )),
        Ending::Gone(point) => Some(format!("{} ended; so do the others", name(point))),
    }
}
