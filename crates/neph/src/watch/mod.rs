//! `neph watch`: passive RTT of live traffic at an interface.
//!
//! Connects the capture, the table of flows and the output. The number of tracked flows bounds the
//! memory. A packet allocates nothing, unless its flow is new.

mod agent_capture;
mod alarm;
mod intake;
mod screen;
mod watch_output;
pub(crate) mod write_capture;

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use neph_capture::Limits;
use neph_documents::Format;
use neph_model::{ByteSize, CaptureOrder, Span, Stop};
use neph_sys::clock;
use neph_sys::restrict::Capability;
use neph_sys::ring::{BLOCK_BYTES, BlockRing};

use crate::exit::{Failure, Outcome};
use crate::packet_filter::PacketArgs;
use crate::privileges::{Needs, Row, UserChoice};
use crate::read::{MatchMethod, SortChoice};
use crate::sink::{self, Force};
use crate::{exit, format, interrupt, output, value};
use intake::Intake;
use neph_capture::reading::snaplen::DEFAULT_SNAPLEN;
use neph_documents::captures::OutputOptions;
use neph_export::Url;
use neph_listen::OUT;
use neph_listen::{
    CaptureCounters, CaptureInterface, CaptureMethod, IdlePriority, Listening, Writing,
};
use neph_wire::filter::Wanted;
use watch_output::WatchOutput;

/// Ctrl-C and the end of a period are noticed after this long, at most.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Options of `neph watch`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Interface to capture from, such as eth0; any: all interfaces; agent:AGENT/eth0: at an agent,
    /// with results only at the end
    #[arg(value_name = "INTERFACE")]
    interface: String,
    /// For agent:AGENT/eth0, the folder of the agent's controller on this host, which `neph control
    /// serve` creates
    #[arg(long, value_name = "FOLDER")]
    control: Option<PathBuf>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ENDLESS))]
    format: Format,
    /// Time between two reports (length of a period)
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, default_value = "1s")]
    every: Span,
    /// Order of the flows in the table
    #[arg(long, value_enum, default_value = "p50")]
    sort: SortChoice,
    /// Maximum number of lines in each table; JSON output has all flows
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Method that measures the TCP RTTs in text output; JSON output has the RTTs of both methods
    #[arg(long, value_enum, default_value = "acknowledgement")]
    by: MatchMethod,
    /// Also write one line for each RTT and each event, such as a retransmission (needs --format ndjson)
    #[arg(long)]
    samples: bool,
    #[command(flatten)]
    filter: PacketArgs,
    /// Stop after this number of packets [default: capture until ctrl-C]
    #[arg(long, short, value_name = "N", value_parser = value::positive_count)]
    count: Option<u64>,
    /// Capture for this time, such as 30s or 5min [default: until ctrl-C]
    #[arg(long, short = 'w', value_name = "TIME", value_parser = value::positive_span)]
    duration: Option<Span>,
    #[command(flatten)]
    user: UserChoice,
    /// Run inside this network namespace of Linux, or at this site (host) of a running lab (emulated
    /// network, `neph lab up`)
    #[arg(long, value_name = "SITE", value_parser = neph_lab::namespace)]
    site: Option<String>,
    /// Raise an alarm if RTTs are high: 'path > 2ms p99 for 30s' (path: RTT from here to servers); repeatable
    #[arg(long, value_name = "RULE")]
    alarm: Vec<String>,
    /// Send the start and end of each --alarm to this URL, as JSON by HTTP POST
    #[arg(long, value_name = "URL", value_parser = neph_export::url, requires = "alarm")]
    webhook: Option<Url>,
    /// Serve Prometheus metrics over HTTP at ADDRESS:PORT; with PORT only, the address is 127.0.0.1
    #[arg(long, value_name = "ADDRESS", value_parser = neph_export::address)]
    prometheus: Option<SocketAddr>,
    /// Also write the packets to this file (pcap with timestamps in ns); '-': write only packets, to
    /// standard output
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Number of bytes to capture of each packet, 64 to 262140; neph needs only the headers
    #[arg(long, value_name = "BYTES", value_parser = parse_snaplen, default_value_t = DEFAULT_SNAPLEN)]
    snaplen: u32,
    /// Method of the capture [default: bpf on virtual interfaces such as veth (no queue, segmentation offload);
    /// else ring]
    #[arg(long, value_name = "WAY", value_parser = method_parser())]
    listen: Option<CaptureMethod>,
    /// Size of the capture buffer, 2MiB to 1GiB; while it is full, neph loses packets and counts them
    #[arg(long, value_name = "SIZE", value_parser = parse_ring_size, default_value = "32MiB")]
    ring: ByteSize,
    /// Maximum number of flows that neph tracks at a time; above it, neph ends the least recently active flow
    #[arg(long, value_name = "N", value_parser = value::flows, default_value_t = Limits::default().max_flows)]
    flows: usize,
    /// End a flow after this time without packets
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, default_value = "60s")]
    idle: Span,
    /// Treat this UDP port as QUIC, like 443, even if the capture lacks the handshake of a flow; repeatable
    #[arg(long, value_name = "PORT", value_parser = value::port)]
    quic_port: Vec<u16>,
}

impl Args {
    /// The settings of the capture.
    fn capture_settings<'a>(&'a self, filter: &'a Wanted) -> Result<Listening<'a>, Failure> {
        let capture_method = match (self.listen, &self.write) {
            (Some(CaptureMethod::Bpf), Some(_)) => {
                return Err(Failure::usage(
                    "--write takes packets as they leave, --listen bpf before; leave out one of them",
                ));
            }
            (None, Some(_)) => Some(CaptureMethod::Ring),
            (capture_method, _) => capture_method,
        };
        Ok(Listening {
            interface: &self.interface,
            site: self.site.as_deref(),
            remote: "--site",
            snaplen: self.snaplen,
            ring: self.ring,
            max_packets: self.count.unwrap_or(u64::MAX),
            wanted: filter,
            method: capture_method,
        })
    }

    /// The privileges that the command keeps.
    fn needs(&self) -> Needs {
        let is_privileged_port = self.prometheus.is_some_and(|address| address.port() < 1024);
        Needs::of(&Row::WATCH)
            .bpf()
            .capability(Capability::CAP_NET_BIND_SERVICE, is_privileged_port)
            .enters_namespaces(self.site.is_some())
            .writes(self.write.as_deref())
    }

    /// Whether standard output receives the capture.
    fn writes_to_stdout(&self) -> bool {
        self.write.as_deref() == Some(Path::new(OUT))
    }

    /// Whether other output than the capture is requested.
    const fn has_other_output(&self) -> bool {
        let is_reported = self.samples || self.prometheus.is_some() || !self.alarm.is_empty();
        is_reported || matches!(self.format, Format::Ndjson)
    }

    /// Whether the output has one JSON object per line.
    const fn writes_lines(&self) -> bool {
        matches!(self.format, Format::Ndjson)
    }

    const fn display_settings(&self) -> OutputOptions {
        OutputOptions {
            format: self.format,
            sort: self.sort.sort(),
            top: self.top,
            method: self.by.method(),
            samples: self.samples,
        }
    }
}

/// Bytes that are captured of each packet.
pub(crate) fn parse_snaplen(text: &str) -> Result<u32, String> {
    // A written packet has room for a VLAN tag: readers take no more than 262,144 bytes.
    const RANGE: RangeInclusive<u64> = 64..=262_140;
    let ByteSize(bytes) = value::size(text)?;
    let valid_bytes = RANGE.contains(&bytes).then_some(bytes);
    valid_bytes
        .and_then(|bytes| u32::try_from(bytes).ok())
        .ok_or_else(|| "64 to 262140 bytes can be kept".to_owned())
}

/// Size of the ring buffer, rounded up to whole blocks.
pub(crate) fn parse_ring_size(text: &str) -> Result<ByteSize, String> {
    let (min, max) = (*BlockRing::BLOCKS.start(), *BlockRing::BLOCKS.end());
    let ByteSize(bytes) = value::size(text)?;
    let blocks = bytes.div_ceil(BLOCK_BYTES as u64);
    if (min as u64..=max as u64).contains(&blocks) {
        return Ok(ByteSize(bytes));
    }
    Err("write a size from 2MiB to 1GiB, as 32MiB".to_owned())
}

/// Carries out an order for a capture.
pub(crate) fn carry_out(order: &CaptureOrder) -> Result<Outcome, Failure> {
    write_capture::carry_out(order)
}

/// Watches.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if let Some(point) = agent_capture::parse_point(args)? {
        return agent_capture::run(args, &point);
    }
    args.needs().restrict(&args.user)?;
    if args.writes_to_stdout() {
        return write_capture::write_to_stdout(args);
    }
    if args.samples && args.format != Format::Ndjson {
        return Err(Failure::usage("--samples needs --format ndjson"));
    }
    let stop = interrupt::stop_on_ctrl_c()?;
    // Before anything is opened or overwritten: options may be wrong.
    let watch_output = WatchOutput::new(args)?;
    let packet_filter = args.filter.packet_filter();
    packet_filter.check()?;
    let mut capture_interface =
        CaptureInterface::open(&args.capture_settings(&packet_filter.wanted())?)?;
    let mut intake = Intake::new(args, &capture_interface, watch_output)?;
    output::say(&format!(
        "neph watch: looking at {} ({}); ctrl-C ends it",
        args.interface,
        capture_interface.method().name()
    ));
    let listen_result = listen(args, &stop, &mut capture_interface, &mut intake);
    let capture_counters = capture_interface.counters();
    let (was_alarmed, finish_result) = intake.finish(capture_counters);
    outcome(
        was_alarmed,
        listen_result.and(finish_result),
        &stop,
        capture_counters,
    )
}

/// The outcome, after everything is reported.
fn outcome(
    was_alarmed: bool,
    result: Result<(), Failure>,
    stop: &Stop,
    capture_counters: CaptureCounters,
) -> Result<Outcome, Failure> {
    if was_alarmed {
        if let Err(failure) = result {
            exit::report_failure(&failure);
        }
        return Ok(Outcome::Alarmed);
    }
    result?;
    if stop.is_set() {
        return Ok(Outcome::Interrupted);
    }
    Ok(if capture_counters.packets == 0 {
        output::say("neph watch: no packet passed");
        Outcome::Nothing
    } else {
        Outcome::Done
    })
}

/// Processes packets until the count or the duration is reached, or ctrl-C.
fn listen(
    args: &Args,
    stop: &Stop,
    capture_interface: &mut CaptureInterface,
    intake: &mut Intake,
) -> Result<(), Failure> {
    let start = clock::raw().0;
    let end = args
        .duration
        .map_or(i64::MAX, |duration| start.saturating_add(duration.nanos()));
    let mut next_period_at = start.saturating_add(args.every.nanos());
    let mut fault = Ok(());
    let idle_priority = IdlePriority::begin(capture_interface.gauge());
    loop {
        let now = clock::raw().0;
        let is_over = now >= end || capture_interface.is_full() || stop.is_set();
        if is_over || intake.is_refused() || fault.is_err() {
            break;
        }
        if now >= next_period_at {
            capture_interface.count();
            intake.end_period(capture_interface.counters());
            next_period_at = next_period_at.max(now).saturating_add(args.every.nanos());
        }
        intake.answer_request(capture_interface.counters());
        capture_interface
            .changes()
            .iter()
            .for_each(|change| intake.report_link_change(change));
        if capture_interface.has_all() {
            idle_priority.caught_up();
        }
        let wait_ns = u64::try_from(next_period_at.min(end) - now).unwrap_or(0);
        fault = capture_interface
            .wait_despite_link_down(Duration::from_nanos(wait_ns).min(STOP_CHECK_INTERVAL));
        // A limited number at a time, so that a flood of packets does not delay the output.
        capture_interface.take_some(|packet, dissected| intake.add_packet(packet, dissected));
    }
    drop(idle_priority);
    // The end of the interface is known before the report that it went down.
    capture_interface
        .changes()
        .iter()
        .for_each(|change| intake.report_link_change(change));
    capture_interface.take_rest(|packet, dissected| intake.add_packet(packet, dissected));
    fault.map_err(Failure::from)
}

/// The capture methods of `--listen`.
fn method_parser() -> impl TypedValueParser<Value = CaptureMethod> {
    let possible_value = |capture_method: CaptureMethod, help: &'static str| {
        PossibleValue::new(capture_method.name()).help(help)
    };
    let possible_values = [
        possible_value(
            CaptureMethod::Ring,
            "The kernel copies packets to a ring buffer, as for tcpdump",
        ),
        possible_value(
            CaptureMethod::Bpf,
            "BPF programs in the kernel copy the start of each packet",
        ),
    ];
    PossibleValuesParser::new(possible_values).map(|name| {
        if name == CaptureMethod::Bpf.name() {
            CaptureMethod::Bpf
        } else {
            CaptureMethod::Ring
        }
    })
}

/// Creates the file of `--write`.
fn write_into(path: &Path, force: Force, header: (u32, u32)) -> Result<Writing, Failure> {
    // If standard output is closed, another file may have its descriptor.
    if path == Path::new(OUT) {
        output::check_open()?;
    }
    let writer = Writing::begin(path, force.existing(), header);
    writer.map_err(|error| {
        Failure::usage(format!(
            "--write: {}",
            sink::unwritable_message(path, &error)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_size_is_refused_outside_of_2_mib_to_1_gib() {
        for (text, is_valid) in [
            ("0", false),
            ("1", false),
            ("1MiB", false),
            ("2MB", true),
            ("2MiB", true),
            ("1GiB", true),
            ("1025MiB", false),
        ] {
            let ring_size = parse_ring_size(text);
            assert_eq!(ring_size.is_ok(), is_valid, "{text}");
            let remedy = "write a size from 2MiB to 1GiB";
            assert!(
                ring_size
                    .err()
                    .is_none_or(|reason| reason.starts_with(remedy)),
                "{text}"
            );
        }
        assert!(parse_ring_size("much").is_err());
    }
}
