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
use neph_capture::reading::file::{File, Times};
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
pub(crate) type Forwarder = CaptureWriter<BufWriter<output::Data>>;

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
    /// Method that measures TCP RTTs for the tables and sentences; JSON output has both methods
    #[arg(long, value_enum, default_value = "acknowledgement")]
    by: MatchMethod,
    /// Also write one line for each RTT and each event, such as a retransmission (needs --format ndjson)
    #[arg(long)]
    samples: bool,
    /// Maximum number of flows that neph tracks at a time; above it, neph ends the least recently active flow
    #[arg(long, value_name = "N", value_parser = value::flows, default_value_t = Limits::default().flows)]
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
    const fn shown(&self) -> OutputOptions {
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
    args.files.iter().try_for_each(|path| source::check(path))?;
    let stop = interrupt::stop_on_ctrl_c()?;
    let limits = Limits {
        flows: args.flows,
        ..Limits::default()
    };
    let (mut observed, mut reporting) = (
        Conversations::new(limits, &args.quic_port),
        Forwarder::new(args.shown(), output::data()),
    );
    let mut files = Vec::new();
    let mut wrong = None;
    let reader = reader(&stop, &say);
    for path in &order::by_time(&args.files, reader) {
        match read(path, reader, &mut observed, &mut reporting) {
            Ok((file, of_a_part)) => {
                wrong = of_a_part.map(Failure::from).or_else(|| failure(&file));
                let unlike = [
                    order::backwards(&file),
                    order::silent(&file),
                    order::unordered(&files, &file),
                ];
                unlike.iter().flatten().for_each(|printed| say(printed));
                let is_stopped = matches!(file.account.ending, Ending::Stopped);
                files.push(file);
                if is_stopped {
                    say_stopped(&files, args.files.len(), &stop);
                    break;
                }
            }
            Err(failure) => wrong = Some(failure.into()),
        }
        if wrong.is_some() {
            break;
        }
    }
    let is_empty = files
        .iter()
        .all(|file| file.account.packets == 0 || is_of_others(file));
    if let Some(failure) = wrong.take_if(|_| is_empty) {
        return Err(failure);
    }
    observed.end(&mut reporting);
    reporting.finish(&observed, &files)?;
    match wrong {
        Some(failure) => Err(failure),
        None if stop.is_set() => Ok(Outcome::Interrupted),
        None if is_empty => Ok(Outcome::Nothing),
        None => Ok(Outcome::Done),
    }
}

fn say(sentence: &str) {
    output::say(&format!("neph read: {sentence}"));
}

/// A reader of captures that ends when `stop` is set; `say` adds the command's name.
pub(crate) fn reader<'a>(stop: &'a Stop, say: &'a dyn Fn(&str)) -> Reader<'a> {
    Reader {
        stop,
        stdin: stdin::open,
        say,
    }
}

/// Reports that reading was interrupted, and which captures were not read. Not after an output
/// error, which has a message of its own.
fn say_stopped(files: &[File], given: usize, stop: &Stop) {
    let Some(last) = files.last().filter(|_| stop.is_set()) else {
        return;
    };
    let left_out = match given - files.len() {
        0 => String::new(),
        more => format!("; {} behind it left out", counted(more as u64, "capture")),
    };
    output::say(&format!(
        "neph read: interrupted while reading {}: the result covers what was read{left_out}",
        last.name
    ));
}

/// Reads one capture. Also returns the error of a part, if several files were read as one capture.
fn read(
    path: &Path,
    reader: Reader<'_>,
    observed: &mut Conversations,
    reporting: &mut Forwarder,
) -> Result<(File, Option<ReadError>), ReadError> {
    let stop = reader.stop;
    let source = source::open(path, reader)?;
    observed.begin();
    let (mut not_ip, mut without_time) = (0, 0);
    let (mut unread, mut times) = (None, None::<Times>);
    let is_over = |reporting: &Forwarder| stop.is_set() || reporting.is_refused();
    let ReadCapture { mut account, wrong } = source.read(reader, |record| {
        if observed.takes_plain()
            && let Some(at) = record.at
            && let Some(read) = plain(record.link, record.bytes)
        {
            times.get_or_insert_with(|| Times::from(at)).see(at);
            observed.see_plain(Wall::from_unix_nanos(at), &read, reporting);
            return flow_unless(is_over(reporting));
        }
        let packet = dissect(record.link, record.bytes, record.length);
        // By reference: the value is large.
        match (record.at, &packet) {
            (Some(at), Some(packet)) => {
                times.get_or_insert_with(|| Times::from(at)).see(at);
                let interface = record.link.interface(record.bytes);
                let interface = interface.unwrap_or(record.interface);
                observed.see(Wall::from_unix_nanos(at), interface, packet, reporting);
            }
            (None, _) => without_time += 1,
            (_, None) if why_not(record.link, record.bytes, record.length) == NoPacket::Cut => {
                observed.see_cut();
            }
            (_, None) => {
                not_ip += 1;
                if let Link::Unknown(number) = record.link {
                    unread = Some(number);
                }
            }
        }
        flow_unless(is_over(reporting))
    });
    if stop.is_set() && !matches!(account.ending, Ending::Broken(_) | Ending::BrokenPacked(_)) {
        // Ended on request, possibly within a record.
        account.ending = Ending::Stopped;
    }
    let file = File {
        name: path.display().to_string(),
        account,
        not_ip,
        unread,
        without_time,
        times,
    };
    Ok((file, wrong))
}

const fn flow_unless(is_over: bool) -> ControlFlow<()> {
    if is_over {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// The error of a capture; a truncated one is reported, and is not an error.
fn failure(file: &File) -> Option<Failure> {
    match ending::printed(&file.name, &file.account) {
        Err(failure) => return Some(failure.into()),
        // Nothing was read.
        Ok(Some(_)) if is_of_others(file) => {}
        Ok(Some(printed)) => say(&printed),
        Ok(None) => {}
    }
    nothing_read(file)
}

/// Whether all packets of a capture have an unsupported link type.
fn is_of_others(file: &File) -> bool {
    file.unread.is_some() && file.not_ip == file.account.packets
}

/// The error of a capture without readable packets.
fn nothing_read(file: &File) -> Option<Failure> {
    let name = &file.name;
    match file.unread {
        Some(number) if is_of_others(file) => Some(Failure::usage(format!(
            "{name} has link type {number}, which neph does not read; it reads Ethernet, IP, PPP, Cisco HDLC, Linux \
             cooked captures (-i any), loopback and netfilter's log"
        ))),
        Some(number) => {
            output::say(&format!(
                "neph read: {name} has packets of link type {number} too, which neph does not read"
            ));
            None
        }
        None if file.account.packets == 0 && !matches!(file.account.ending, Ending::Stopped) => {
            output::say(&format!("neph read: {name} holds no packet"));
            None
        }
        None => None,
    }
}
