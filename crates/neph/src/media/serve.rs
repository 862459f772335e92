//! `neph media serve`: serves video streams until ctrl-C.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_documents::Format;
use neph_documents::media::ServedLine;
use neph_documents::rows::json_line;
use neph_load::media::{MediaError, MediaServed, Server, ServerCaps, ServerSpec, Trace};
use neph_model::{BitRate, ByteSize, Span};
use neph_sys::restrict::AppliedRestrictions;
use neph_text::counted::counted;

use crate::exit::{Failure, Outcome};
use crate::privileges::{self, Needs, Row, UserChoice};
use crate::{format, interrupt, output, text_file, value};

/// Options of `neph media serve`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Address and TCP port on which the server listens for RTSP; [::] means all IPv6 and IPv4 addresses
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "[::]:8554",
          value_parser = value::listen_address)]
    listen: SocketAddr,
    /// Send frames of the sizes in this file, instead of neph's built-in video: 'fps N', then one size in bytes
    /// per line
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Maximum number of concurrent streams of all clients together, 1 to 1024
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_streams: u16,
    /// Maximum total bit rate: the sum of the mean bit rates of all streams
    #[arg(long, value_name = "RATE", default_value = "100Mbit/s", value_parser = value::rate)]
    max_rate: BitRate,
    /// Maximum duration of a stream; the server then ends the stream
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = value::positive_span)]
    max_duration: Span,
    #[command(flatten)]
    user: UserChoice,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ENDLESS))]
    format: Format,
    /// Print only errors
    #[arg(long, short)]
    quiet: bool,
}

/// Serves until ctrl-C.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    args.user.find()?;
    let trace = match &args.trace {
        Some(path) => read_trace(path)?,
        None => Trace::animation().map_err(Failure::refused)?,
    };
    let rate = trace.mean_rate();
    if rate.bits_per_second() > args.max_rate.bits_per_second() {
        let max = args.max_rate;
        return Err(Failure::Usage(format!(
            "a stream has {rate}, --max-rate grants {max} to all: raise --max-rate"
        )));
    }
    let spec = ServerSpec {
        listen: args.listen,
        caps: ServerCaps {
            streams: args.max_streams,
            rate: Some(args.max_rate),
            duration: args.max_duration,
        },
        trace,
    };
    let server = Server::bind(&spec).map_err(|error| start_failure(&error))?;
    // No thread runs yet. From now on only incoming connections and ports for them are opened.
    let restrictions = Needs::of(&Row::MEDIA_SERVE)
        .without_connections()
        .restrict(&args.user)?;
    let stop = interrupt::stop_on_ctrl_c()?;
    if !args.quiet {
        show_start(&server, &restrictions, args.format, rate)?;
    }
    let show = |event: MediaServed| {
        if !args.quiet {
            show_event(event, args.format);
        }
    };
    server.run(&stop, &show).map_err(Failure::refused)?;
    Ok(Outcome::Done)
}

fn read_trace(path: &Path) -> Result<Trace, Failure> {
    let path_hint = "write its path as seen from this folder";
    let source = text_file::read(text_file::TRACE, path, path_hint)?;
    let name = neph_text::PrintableText::path(path);
    let result = Trace::parse(source.text());
    result.map_err(|error| Failure::Usage(format!("trace {name}: {error}")))
}

fn show_start(
    server: &Server,
    restrictions: &AppliedRestrictions,
    format: Format,
    rate: BitRate,
) -> Result<(), Failure> {
    let address = server.address();
    if format == Format::Ndjson {
        let line = ServedLine::Listening {
            address: address.to_string(),
            privileges: privileges::document(restrictions),
        };
        return Ok(output::print_line(&json_line(&line))?);
    }
    output::say(&format!(
        "neph media: {address} serves a video of {rate} at rtsp://HOST:{}/video",
        address.port()
    ));
    output::say(&format!(
        "neph media: {}",
        privileges::sentence(restrictions)
    ));
    Ok(())
}

fn show_event(event: MediaServed, format: Format) {
    if format == Format::Ndjson {
        // A closed pipe does not end streams.
        let _ = output::print_line(&json_line(&ServedLine::from(event)));
        return;
    }
    let sentence = match event {
        MediaServed::Began { peer, streams } => {
            let streams = counted(streams.into(), "stream");
            format!("{peer}: stream begins; {streams} now")
        }
        MediaServed::Ended { peer, sent, fault } => {
            let packets = counted(sent.packets, "packet");
            let (bytes, duration) = (ByteSize(sent.bytes), sent.lasted);
            let reason = fault.map_or_else(String::new, |fault| format!(": {fault}"));
            let mut sentence =
                format!("{peer}: stream ended after {duration}, {packets}, {bytes}{reason}");
            if sent.refused + sent.frames_left_out > 0 {
                let (refused, frames) = (sent.refused, sent.frames_left_out);
                sentence.push_str(&format!(
                    "; this host did not send {refused} packets and left out {frames} frames"
                ));
            }
            sentence
        }
        MediaServed::Refused { peer, reason } => format!("{peer} was refused: {reason}"),
    };
    output::say(&format!("neph media: {sentence}"));
}

/// Why the server cannot start; for port errors with the remedy.
fn start_failure(error: &MediaError) -> Failure {
    let remedy = match error {
        MediaError::Listen { source, .. } => match source.kind() {
            ErrorKind::AddrInUse => {
                "; another program listens there: end it, or choose another port with --listen"
            }
            ErrorKind::PermissionDenied => "; choose a port from 1024 on with --listen",
            ErrorKind::AddrNotAvailable => {
                "; this host does not have this address: give one of its own with --listen"
            }
            _ => "",
        },
        _ => "",
    };
    Failure::Refused(format!("{error}{remedy}"))
}
