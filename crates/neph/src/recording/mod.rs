//! Live points: several interfaces, here or elsewhere, recorded at once, each into a capture of its
//! own.
//!
//! Joins the points' threads and decides when they begin and end. Those elsewhere begin first, since
//! they take their time; those here when all of them have. What the captures are for is not known
//! here.

mod course;
mod elsewhere;
mod folder;
mod relay;
mod running;
mod spelling;
mod threads;

use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_model::{ByteSize, Span, Stop, Wall};

use crate::exit::Failure;
use crate::packet_choice::PacketChoice;
use crate::watch::{ring, snaplen};
use crate::{output, value};
use neph_capture::reading::enough::ENOUGH;
use neph_text::counted::counted;

use folder::Folder;
use running::Ending;
pub(crate) use spelling::Point;
use spelling::Spot;

/// Options of live points.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Live points")]
pub(crate) struct Options {
    /// Record for so long; else until ctrl-C
    #[arg(long, short = 'w', value_name = "TIME", value_parser = value::positive_span)]
    duration: Option<Span>,
    /// Record until a point has so many packets
    #[arg(long, short = 'n', value_name = "N", value_parser = value::at_least_one)]
    count: Option<u64>,
    /// Keep the captures, in this folder; else they go away
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
    /// Record until a point's capture has so many bytes
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "2GB")]
    limit: ByteSize,
    #[command(flatten)]
    choice: PacketChoice,
    /// Bytes that are kept of each packet: headers and 16 bytes of payload suffice
    #[arg(long, value_name = "BYTES", value_parser = snaplen, default_value_t = ENOUGH)]
    snaplen: u32,
    /// Memory in which the packets of a point wait to be written, 2MiB to 1GiB; when it is full
    /// packets are lost, and counted
    #[arg(long, value_name = "SIZE", value_parser = ring, default_value = "32MiB")]
    ring: ByteSize,
}

impl Options {
    /// Whether the captures stay.
    pub(crate) const fn are_kept(&self) -> bool {
        self.save.is_some()
    }

    /// The folder of the captures, or the one in which theirs is made.
    pub(crate) fn folder(&self) -> PathBuf {
        self.save.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// What makes no sense of captures that are there already.
    ///
    /// # Errors
    /// One of the options that only live points have was given.
    pub(crate) fn refuse_for_files(&self) -> Result<(), Failure> {
        let given = [
            ("-w", self.duration.is_some()),
            ("-n", self.count.is_some()),
            ("--save", self.save.is_some()),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        let given = given.map(|(option, _)| option.to_owned());
        match given.chain(self.choice.options()).next() {
            Some(option) => Err(Failure::usage(format!(
                "{option} is for live points (iface:eth0, ssh:user@host/eth0), and these are files"
            ))),
            None => Ok(()),
        }
    }
}

/// What a point gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    /// What stands for the kernel whose clock stamped: two points of the same have one clock.
    pub(crate) host: String,
    pub(crate) packets: u64,
    /// Packets that were lost on the way into the capture, where that is known.
    pub(crate) lost: Option<u64>,
    /// From when until when what passed came into the capture, by the kernel's clock: known of points
    /// here that had room for all of it.
    pub(crate) listened: Option<[Wall; 2]>,
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
                Spot::Elsewhere(..) => point.name.clone(),
            },
            packets: 0,
            lost: None,
            listened: None,
        }
    }
}

/// Hears where the captures will be.
type Begins<'a> = &'a dyn Fn(&[Recorded]);

/// Captures of all points, in their order.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) points: Vec<Recorded>,
    /// Why a point ended before its time; what it has until then is in its capture.
    pub(crate) fault: Option<Failure>,
    /// They are there as long as this is.
    folder: Folder,
}

impl Recording {
    /// Nothing was told of the captures: they stay where they are.
    pub(crate) const fn stay(&mut self) {
        self.folder.stay();
    }
}

/// Records these points until they have enough, the time is over or somebody asks for the end.
///
/// `begins` hears where the captures will be, before there are any.
///
/// # Errors
/// A point cannot be opened, or ctrl-C came before all of them were.
pub(crate) fn record(
    points: &[Point],
    options: &Options,
    (stop, begins): (&Stop, Begins<'_>),
) -> Result<Recording, Failure> {
    refuse_same_names(points)?;
    options.choice.check()?;
    let mut folder = Folder::open(options.save.as_deref())?;
    let expected: Vec<Recorded> =
        (points.iter().map(|point| Recorded::none(point, &folder))).collect();
    begins(&expected);
    let ran = threads::run(points, options, (&mut folder, stop));
    if ran.is_err() {
        folder.take_back();
    }
    let (ending, outcomes) = ran?;
    if let Some(remark) = remark(&ending, points, options) {
        output::say(&format!("neph hops: {remark}"));
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
        output::say(&format!(
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

fn refuse_same_names(points: &[Point]) -> Result<(), Failure> {
    for (at, point) in points.iter().enumerate() {
        if let Some(other) = points[..at].iter().find(|other| other.name == point.name) {
            return Err(Failure::usage(format!(
                "two points are called {}: {} and {}; write NAME= before one of them",
                point.name,
                other.told(),
                point.told()
            )));
        }
    }
    Ok(())
}

/// What is to be said of the end.
fn remark(ending: &Ending, points: &[Point], options: &Options) -> Option<String> {
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

#[cfg(test)]
impl Default for Options {
    fn default() -> Self {
        Self {
            duration: None,
            count: None,
            save: None,
            limit: ByteSize(1 << 20),
            choice: PacketChoice::default(),
            snaplen: ENOUGH,
            ring: ByteSize(2 << 20),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn what_only_live_points_have_is_refused_for_files() {
        let told = |words: &str| {
            let line = Line::try_parse_from(["neph"].into_iter().chain(words.split_whitespace()));
            let Err(Failure::Usage(told)) = line.expect("options").options.refuse_for_files()
            else {
                panic!("{words} is taken");
            };
            told
        };
        for words in [
            "-w 1s",
            "-n 5",
            "--save a",
            "--host 10.0.0.1",
            "--port 1",
            "--proto udp",
        ] {
            assert!(told(words).contains("is for live points"), "{words}");
        }
        assert!(told("--proto udp --port 53").starts_with("--port 53 is for live points"));
    }
}
