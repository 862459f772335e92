//! `neph watch agent:ams/eth0`: captures at an interface of an agent, then reports the packets as
//! if they were local.
//!
//! Owns the replay, with periods by packet timestamps. Does not own the recording (neph-listen).

use std::fs::File;
use std::io;

use neph_agent::policy::LARGEST_CAPTURE;
use neph_capture::reading::conversations::Conversations;
use neph_capture::reading::packets::read_packets;
use neph_listen::recording::{self, Point, PointRecording, Received, RecordingOptions};
use neph_listen::{ANY, CaptureCounters, CaptureMethod, OUT};
use neph_model::{Stop, Wall};
use neph_sys::clock::{Pair, RawNanos, WallNanos};
use neph_text::create_output;
use neph_wire::dissect::{Dissected, NoPacket};

use super::watch_output::WatchOutput;
use super::{Args, intake, outcome};
use crate::exit::{Failure, Outcome};
use crate::{agent_points, interrupt, output, read, sink};

/// Periods without packets are shown for at most this time, nanoseconds; a longer gap means that a
/// clock was set.
const MAX_SILENT_GAP: i64 = 3_600_000_000_000;

/// The point, if it is at an agent.
///
/// # Errors
/// The point has a syntax error, or an option does not apply.
pub(super) fn parse_point(args: &Args) -> Result<Option<Point>, Failure> {
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
        ("--write -", args.writes_to_stdout()),
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
    let watch_output = WatchOutput::new(args)?;
    let points = std::slice::from_ref(point);
    let agents = agent_points::connect_agents(points, args.control.as_deref(), args.duration)?;
    let options = RecordingOptions {
        duration: args.duration,
        count: args.count,
        save: None,
        limit: LARGEST_CAPTURE,
        packet_filter: args.filter.packet_filter(),
        snaplen: args.snaplen,
        ring: args.ring,
    };
    let receiver = Received {
        stop: &stop,
        begins: &|_| {},
        live: None,
        say: &|sentence| output::say(&sentence.replacen("neph hops", "neph watch", 1)),
        progress: output::can_rewrite().then_some(&output::rewrite),
    };
    let recording = recording::record(points, &options, agents, receiver)?;
    let Some(point_recording) = recording.points.first() else {
        return Ok(Outcome::Nothing);
    };
    copy_capture(args, point_recording)?;
    let mut replay = Replay {
        conversations: intake::new_conversations(args),
        watch_output,
        counters: CaptureCounters::default(),
        period_length: args.every.nanos(),
        period_end: None,
        is_any_interface: args.interface.ends_with(&format!("/{ANY}")),
    };
    let read_result = replay.read(point_recording);
    let fault = recording.fault.map_or(Ok(()), |fault| Err(fault.into()));
    let (was_alarmed, output) = replay.finish(point_recording);
    let output = output.map_err(Failure::from);
    let result = fault.and(read_result).and(output);
    let capture_counters = CaptureCounters {
        packets: point_recording.packets,
        ..CaptureCounters::default()
    };
    outcome(was_alarmed, result, &stop, capture_counters)
}

/// Copies the capture into the file that `--write` names.
fn copy_capture(args: &Args, point_recording: &PointRecording) -> Result<(), Failure> {
    let Some(path) = args.write.as_deref() else {
        return Ok(());
    };
    debug_assert_ne!(path.as_os_str(), OUT, "it was refused");
    let result = File::open(&point_recording.file).and_then(|mut source| {
        let mut destination = create_output(path, args.force.existing())?;
        io::copy(&mut source, &mut destination)
    });
    result.map(drop).map_err(|error| {
        Failure::usage(format!(
            "--write: {}",
            sink::unwritable_message(path, &error)
        ))
    })
}

/// A capture that is replayed by packet timestamps.
struct Replay {
    conversations: Conversations,
    watch_output: WatchOutput,
    counters: CaptureCounters,
    /// Length of a period.
    period_length: i64,
    /// The end of the period.
    period_end: Option<i64>,
    is_any_interface: bool,
}

const fn clock_pair(timestamp: i64) -> Pair {
    Pair {
        wall: WallNanos(timestamp),
        raw: RawNanos(timestamp),
        doubt: 0,
    }
}

impl Replay {
    fn read(&mut self, point_recording: &PointRecording) -> Result<(), Failure> {
        if point_recording.packets == 0 {
            return Ok(());
        }
        let say = |sentence: &str| output::say(&format!("neph watch: {sentence}"));
        // Ctrl-C has ended the recording; the replay starts with a new flag.
        let stop = Stop::new();
        if let Some([start, _]) = point_recording.listened {
            self.begin(start.unix_nanos());
        }
        let result = read_packets(
            &point_recording.file,
            read::reader(&stop, &say),
            |timestamp, interface, packet| {
                self.add_packet(timestamp, interface, packet);
                if self.watch_output.is_refused() {
                    stop.set();
                }
            },
        );
        result.map_err(Failure::from)
    }

    fn begin(&mut self, timestamp: i64) {
        self.watch_output.begin_at(clock_pair(timestamp));
        self.period_end = Some(timestamp.saturating_add(self.period_length));
    }

    fn add_packet(
        &mut self,
        timestamp: i64,
        interface: u32,
        packet: Result<&Dissected<'_>, NoPacket>,
    ) {
        if self.period_end.is_none() {
            self.begin(timestamp);
        }
        let is_clock_jump = |period_end: i64| timestamp.saturating_sub(period_end) > MAX_SILENT_GAP;
        while let Some(period_end) = self
            .period_end
            .filter(|period_end| timestamp >= *period_end)
        {
            let end = if is_clock_jump(period_end) {
                timestamp
            } else {
                period_end
            };
            self.end_period(end);
            self.period_end = Some(end.saturating_add(self.period_length));
        }
        self.counters.packets += 1;
        match packet {
            Ok(packet) => {
                let interface = if self.is_any_interface { interface } else { 0 };
                let timestamp = Wall::from_unix_nanos(timestamp);
                self.conversations
                    .add_packet(timestamp, interface, packet, &mut self.watch_output);
            }
            Err(NoPacket::Cut) => self.conversations.count_cut_packet(),
            Err(NoPacket::NotIp) => self.counters.not_ip += 1,
        }
    }

    fn end_period(&mut self, timestamp: i64) {
        let wall = Wall::from_unix_nanos(timestamp);
        self.conversations.end_idle(wall, &mut self.watch_output);
        self.watch_output.end_period(
            &mut self.conversations,
            CaptureMethod::Ring,
            self.counters,
            clock_pair(timestamp),
        );
    }

    /// Reports the last period, and all flows.
    fn finish(mut self, point_recording: &PointRecording) -> (bool, io::Result<()>) {
        self.counters.lost = point_recording.lost.unwrap_or(0);
        let listening_end = point_recording
            .listened
            .map(|[_, listening_end]| listening_end.unix_nanos());
        if let Some(end) = listening_end.or(self.period_end) {
            self.end_period(end);
        }
        self.watch_output.finish(self.conversations, self.counters)
    }
}
