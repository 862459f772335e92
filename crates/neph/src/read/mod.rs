//! `neph read`: passive RTT of the flows in captures.
//!
//! Connects captures, the table of flows and the output. The number of tracked flows bounds the
//! memory, not the number of packets: ended flows are written or counted, then dropped. Exception:
//! for a JSON document all ended exchanges are kept until the end.

mod stdin;

#[cfg(test)]
mod tests;

use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use neph_capture::{Ending, Limits, Method};
use neph_model::{Stop, Wall};
use neph_wire::dissect::{Link, NoPacket, dissect, plain, why_not};

use crate::exit::{Failure, Outcome};
use crate::{format, interrupt, output, value};
use neph_capture::reading::conversations::Conversations;
use neph_capture::reading::file::{File, PacketTimes};
use neph_capture::reading::source::{self, ReadCapture};
use neph_capture::reading::{ReadError, Reader, ending, order};
use neph_documents::Format;
use neph_documents::captures::Sort;
use neph_documents::captures::{CaptureWriter, OutputOptions};
use neph_text::counted::counted;

/// The order of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortChoice {
    /// Flows with the largest median RTT from capture point to server come first
    P50,
    /// Flows with the most bytes come first
    Bytes,
    /// Flows with the most packets come first
    Packets,
    /// Flows with the most retransmissions come first
    Repeated,
}

impl SortChoice {
    pub(crate) const fn sort(self) -> Sort {
        match self {
            Self::P50 => Sort::P50,
            Self::Bytes => Sort::Bytes,
            Self::Packets => Sort::Packets,
            Self::Repeated => Sort::Repeated,
        }
    }
}

/// Writes to standard output.
pub(crate) type OutputWriter = CaptureWriter<BufWriter<output::Data>>;

/// The method that matches segments and acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MatchMethod {
    /// The RTT of a segment ends at the ACK whose number acknowledges its last byte
    Acknowledgement,
    /// The RTT of a segment ends at the first packet that echoes its TCP timestamp (RFC 7323)
    Echo,
}

/// Options of `neph read`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Capture files (pcap or pcapng, also gzip or zstd), which neph reads in order of time; '-' is
    /// standard input. a.pcap+b.pcap merges the two directions of a TAP
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
    /// Order of the flows in the table
    #[arg(long, value_enum, default_value = "p50")]
    sort: SortChoice,
    /// Maximum number of lines in each table; JSON output has all flows
    #[arg(long, value_name = "N", default_value_t = 50)]
    top: usize,
    /// Method that measures the TCP RTTs in text output; JSON output has the RTTs of both methods
    #[arg(long, value_enum, default_value = "acknowledgement")]
    by: MatchMethod,
    /// Also write one line for each RTT and each event, such as a retransmission (needs --format ndjson)
    #[arg(long)]
    samples: bool,
    /// Maximum number of flows that neph tracks at a time; above it, neph ends the least recently active flow
    #[arg(long, value_name = "N", value_parser = value::flows, default_value_t = Limits::default().max_flows)]
    flows: usize,
    /// Treat this UDP port as QUIC, like 443, even if the capture lacks the handshake of a flow; repeatable
    #[arg(long, value_name = "PORT", value_parser = value::port)]
    quic_port: Vec<u16>,
}

impl MatchMethod {
    pub(crate) const fn method(self) -> Method {
        match self {
            Self::Acknowledgement => Method::Acknowledgement,
            Self::Echo => Method::Echo,
        }
    }
}

impl Args {
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

/// Reads.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.samples && args.format != Format::Ndjson {
        return Err(Failure::usage("--samples needs --format ndjson"));
    }
    args.files
        .iter()
        .try_for_each(|path| source::check_exists(path))?;
    let stop = interrupt::stop_on_ctrl_c()?;
    let limits = Limits {
        max_flows: args.flows,
        ..Limits::default()
    };
    let (mut conversations, mut writer) = (
        Conversations::new(limits, &args.quic_port),
        OutputWriter::new(args.display_settings(), output::data()),
    );
    let mut files = Vec::new();
    let mut last_failure = None;
    let reader = reader(&stop, &say);
    for path in &order::sort_by_time(&args.files, reader) {
        match read_capture(path, reader, &mut conversations, &mut writer) {
            Ok((file, part_error)) => {
                last_failure = part_error
                    .map(Failure::from)
                    .or_else(|| capture_failure(&file));
                let order_warnings = [
                    order::step_back_message(&file),
                    order::gap_message(&file),
                    order::overlap_message(&files, &file),
                ];
                order_warnings
                    .iter()
                    .flatten()
                    .for_each(|warning| say(warning));
                let is_stopped = matches!(file.summary.ending, Ending::Stopped);
                files.push(file);
                if is_stopped {
                    report_interruption(&files, args.files.len(), &stop);
                    break;
                }
            }
            Err(failure) => last_failure = Some(failure.into()),
        }
        if last_failure.is_some() {
            break;
        }
    }
    let is_empty = files
        .iter()
        .all(|file| file.summary.packets == 0 || has_only_unsupported_packets(file));
    if let Some(failure) = last_failure.take_if(|_| is_empty) {
        return Err(failure);
    }
    conversations.end(&mut writer);
    writer.finish(&conversations, &files)?;
    match last_failure {
        Some(failure) => Err(failure),
        None if stop.is_set() => Ok(Outcome::Interrupted),
        None if is_empty => Ok(Outcome::Nothing),
        None => Ok(Outcome::Done),
    }
}

fn say(sentence: &str) {
    output::say(&format!("neph read: {sentence}"));
}

/// A reader of captures that ends when `stop` is set; `print_message` adds the command's name.
pub(crate) fn reader<'a>(stop: &'a Stop, print_message: &'a dyn Fn(&str)) -> Reader<'a> {
    Reader {
        stop,
        stdin: stdin::open,
        print_message,
    }
}

/// Reports that reading was interrupted, and which captures were not read. Not after an output
/// error, which has a message of its own.
fn report_interruption(files: &[File], file_count: usize, stop: &Stop) {
    let Some(last) = files.last().filter(|_| stop.is_set()) else {
        return;
    };
    let skipped_text = match file_count - files.len() {
        0 => String::new(),
        count => format!("; {} behind it left out", counted(count as u64, "capture")),
    };
    output::say(&format!(
        "neph read: interrupted while reading {}: the result covers what was read{skipped_text}",
        last.name
    ));
}

/// Reads one capture. Also returns the error of a part, if several files were read as one capture.
fn read_capture(
    path: &Path,
    reader: Reader<'_>,
    conversations: &mut Conversations,
    writer: &mut OutputWriter,
) -> Result<(File, Option<ReadError>), ReadError> {
    let stop = reader.stop;
    let source = source::open(path, reader)?;
    conversations.begin_capture();
    let (mut not_ip, mut without_time) = (0, 0);
    let (mut unknown_link, mut times) = (None, None::<PacketTimes>);
    let is_over = |writer: &OutputWriter| stop.is_set() || writer.is_refused();
    let ReadCapture { mut summary, error } = source.read(reader, |record| {
        if conversations.can_use_fast_parser()
            && let Some(timestamp) = record.at
            && let Some(plain_packet) = plain(record.link, record.bytes)
        {
            times
                .get_or_insert_with(|| PacketTimes::new(timestamp))
                .add(timestamp);
            conversations.add_segment(Wall::from_unix_nanos(timestamp), &plain_packet, writer);
            return continue_unless(is_over(writer));
        }
        let packet = dissect(record.link, record.bytes, record.length);
        // By reference: the value is large.
        match (record.at, &packet) {
            (Some(timestamp), Some(packet)) => {
                times
                    .get_or_insert_with(|| PacketTimes::new(timestamp))
                    .add(timestamp);
                let interface = record.link.interface(record.bytes);
                let interface = interface.unwrap_or(record.interface);
                conversations.add_packet(
                    Wall::from_unix_nanos(timestamp),
                    interface,
                    packet,
                    writer,
                );
            }
            (None, _) => without_time += 1,
            (_, None) if why_not(record.link, record.bytes, record.length) == NoPacket::Cut => {
                conversations.count_cut_packet();
            }
            (_, None) => {
                not_ip += 1;
                if let Link::Unknown(number) = record.link {
                    unknown_link = Some(number);
                }
            }
        }
        continue_unless(is_over(writer))
    });
    if stop.is_set() && !matches!(summary.ending, Ending::Broken(_) | Ending::Undecodable(_)) {
        // Ended on request, possibly within a record.
        summary.ending = Ending::Stopped;
    }
    let file = File {
        name: path.display().to_string(),
        summary,
        not_ip,
        unknown_link,
        without_time,
        times,
    };
    Ok((file, error))
}

const fn continue_unless(is_over: bool) -> ControlFlow<()> {
    if is_over {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// The error of a capture; a truncated one is reported, and is not an error.
fn capture_failure(file: &File) -> Option<Failure> {
    match ending::message(&file.name, &file.summary) {
        Err(failure) => return Some(failure.into()),
        // Nothing was read.
        Ok(Some(_)) if has_only_unsupported_packets(file) => {}
        Ok(Some(message)) => say(&message),
        Ok(None) => {}
    }
    empty_capture_failure(file)
}

/// Whether all packets of a capture have an unsupported link type.
fn has_only_unsupported_packets(file: &File) -> bool {
    file.unknown_link.is_some() && file.not_ip == file.summary.packets
}

/// The error of a capture without readable packets.
fn empty_capture_failure(file: &File) -> Option<Failure> {
    let name = &file.name;
    match file.unknown_link {
        Some(number) if has_only_unsupported_packets(file) => Some(Failure::usage(format!(
            "{name} has link type {number}, which neph does not read; it reads Ethernet, IP, PPP, Cisco HDLC, Linux \
             cooked captures (-i any), loopback and netfilter's log"
        ))),
        Some(number) => {
            output::say(&format!(
                "neph read: {name} has packets of link type {number} too, which neph does not read"
            ));
            None
        }
        None if file.summary.packets == 0 && !matches!(file.summary.ending, Ending::Stopped) => {
            output::say(&format!("neph read: {name} holds no packet"));
            None
        }
        None => None,
    }
}
