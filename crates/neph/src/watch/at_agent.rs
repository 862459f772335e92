//! `neph watch agent:ams/eth0`: captures at an interface of an agent, then reports the packets as
//! if they were local.
//!
//! Owns the replay, with periods by packet timestamps. Does not own the recording (neph-listen).

use std::fs::File;
use std::io;

use neph_agent::policy::LARGEST_CAPTURE;
use neph_capture::reading::conversations::Conversations;
use neph_capture::reading::packets::packets;
use neph_listen::recording::{self, Point, PointRecording, Received, RecordingOptions};
use neph_listen::{ANY, CaptureCounters, CaptureMethod, OUT};
use neph_model::{Stop, Wall};
use neph_sys::clock::{Pair, RawNanos, WallNanos};
use neph_text::create_output;
use neph_wire::dissect::{Dissected, NoPacket};

use super::watching::Watching;
use super::{Args, intake, outcome};
use crate::exit::{Failure, Outcome};
use crate::{at_agents, interrupt, output, read, sink};

/// Periods without packets are shown for at most this time, nanoseconds; a longer gap means that a
/// clock was set.
const MAX_SILENT_GAP: i64 = 3_600_000_000_000;

/// The point, if it is at an agent.
///
/// # Errors
/// The point has a syntax error, or an option does not apply.
pub(super) fn point(args: &Args) -> Result<Option<Point>, Failure> {
    let point = Point::parse(&args.interface, &neph_lab::namespace)?;
    let point = point.filter(|point| point.agent().is_some());
    if point.is_none() {
        if args.control.is_some() {
            return Err(Failure::usage(
                "--control has no effect: the interface is not an agent's (agent:ams/eth0)",
            ));
        }
        return Ok(None);
    }
    let local_options = [
        ("--site", args.site.is_some()),
        ("--listen", args.listen.is_some()),
        ("--prometheus", args.prometheus.is_some()),
        ("--user", args.user.is_named()),
        ("--write -", args.writes_out()),
    ];
    match local_options.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::usage(format!(
            "{option} is for interfaces of this host, and {} is an agent's",
            args.interface
        ))),
        None if args.samples && !args.writes_lines() => {
            Err(Failure::usage("--samples needs --format ndjson"))
        }
        None => Ok(point),
    }
}

/// Captures at the agent, and reports the result.
pub(super) fn run(args: &Args, point: &Point) -> Result<Outcome, Failure> {
    let stop = interrupt::stop_on_ctrl_c()?;
    let watching = Watching::new(args)?;
    let points = std::slice::from_ref(point);
    let agents = at_agents::agents(points, args.control.as_deref(), args.duration)?;
    let options = RecordingOptions {
        duration: args.duration,
        count: args.count,
        save: None,
        limit: LARGEST_CAPTURE,
        choice: args.choice.choice(),
        snaplen: args.snaplen,
        ring: args.ring,
    };
    let received = Received {
        stop: &stop,
        begins: &|_| {},
        live: None,
        say: &|sentence| output::say(&sentence.replacen("neph hops", "neph watch", 1)),
        progress: output::is_lively().then_some(&output::rewrite),
    };
    let recording = recording::record(points, &options, agents, received)?;
    let Some(recorded) = recording.points.first() else {
        return Ok(Outcome::Nothing);
    };
    keep(args, recorded)?;
    let mut replay = Replay {
        conversations: intake::conversations(args),
        watching,
        counters: CaptureCounters::default(),
        every: args.every.nanos(),
        due: None,
        is_any: args.interface.ends_with(&format!("/{ANY}")),
    };
    let read = replay.read(recorded);
    let fault = recording.fault.map_or(Ok(()), |fault| Err(fault.into()));
    let (was_alarmed, output) = replay.finish(recorded);
    let output = output.map_err(Failure::from);
    let ended = fault.and(read).and(output);
    let capture_counters = CaptureCounters {
        packets: recorded.packets,
        ..CaptureCounters::default()
    };
    outcome(was_alarmed, ended, &stop, capture_counters)
}

/// Copies the capture into the file that `--write` names.
fn keep(args: &Args, recorded: &PointRecording) -> Result<(), Failure> {
    let Some(path) = args.write.as_deref() else {
        return Ok(());
    };
    debug_assert_ne!(path.as_os_str(), OUT, "it was refused");
    let copied = File::open(&recorded.file).and_then(|mut from| {
        let mut into = create_output(path, args.force.existing())?;
        io::copy(&mut from, &mut into)
    });
    copied
        .map(drop)
        .map_err(|error| Failure::usage(format!("--write: {}", sink::unwritable(path, &error))))
}

/// A capture that is replayed by packet timestamps.
struct Replay {
    conversations: Conversations,
    watching: Watching,
    counters: CaptureCounters,
    /// Length of a period.
    every: i64,
    /// The end of the period.
    due: Option<i64>,
    is_any: bool,
}

const fn moment(at: i64) -> Pair {
    Pair {
        wall: WallNanos(at),
        raw: RawNanos(at),
        doubt: 0,
    }
}

impl Replay {
    fn read(&mut self, recorded: &PointRecording) -> Result<(), Failure> {
        if recorded.packets == 0 {
            return Ok(());
        }
        let say = |sentence: &str| output::say(&format!("neph watch: {sentence}"));
        // Ctrl-C has ended the recording; the replay starts with a new flag.
        let stop = Stop::new();
        if let Some([from, _]) = recorded.listened {
            self.begin(from.unix_nanos());
        }
        let read = packets(
            &recorded.file,
            read::reader(&stop, &say),
            |at, interface, packet| {
                self.packet(at, interface, packet);
                if self.watching.is_refused() {
                    stop.set();
                }
            },
        );
        read.map_err(Failure::from)
    }

    fn begin(&mut self, at: i64) {
        self.watching.begin_at(moment(at));
        self.due = Some(at.saturating_add(self.every));
    }

    fn packet(&mut self, at: i64, interface: u32, packet: Result<&Dissected<'_>, NoPacket>) {
        if self.due.is_none() {
            self.begin(at);
        }
        let is_set = |due: i64| at.saturating_sub(due) > MAX_SILENT_GAP;
        while let Some(due) = self.due.filter(|due| at >= *due) {
            let end = if is_set(due) { at } else { due };
            self.period(end);
            self.due = Some(end.saturating_add(self.every));
        }
        self.counters.packets += 1;
        match packet {
            Ok(packet) => {
                let interface = if self.is_any { interface } else { 0 };
                let at = Wall::from_unix_nanos(at);
                self.conversations
                    .see(at, interface, packet, &mut self.watching);
            }
            Err(NoPacket::Cut) => self.conversations.see_cut(),
            Err(NoPacket::NotIp) => self.counters.not_ip += 1,
        }
    }

    fn period(&mut self, at: i64) {
        let wall = Wall::from_unix_nanos(at);
        self.conversations.silence(wall, &mut self.watching);
        self.watching.period(
            &mut self.conversations,
            CaptureMethod::Ring,
            self.counters,
            moment(at),
        );
    }

    /// Reports the last period, and all flows.
    fn finish(mut self, recorded: &PointRecording) -> (bool, io::Result<()>) {
        self.counters.lost = recorded.lost.unwrap_or(0);
        let until = recorded.listened.map(|[_, until]| until.unix_nanos());
        if let Some(end) = until.or(self.due) {
            self.period(end);
        }
        self.watching.finish(self.conversations, self.counters)
    }
}
