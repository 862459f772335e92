//! `neph throughput serve`: serves throughput tests until ctrl-C.

use std::io::ErrorKind;
use std::net::SocketAddr;

use clap::Args as ClapArgs;
use neph_documents::Format;
use neph_documents::rows::json_line;
use neph_documents::throughput::ServedLine;
use neph_load::throughput::{Job, ServedEvent, Server, ServerCaps, ServerSpec, ThroughputError};
use neph_model::{BitRate, ByteSize, Permit, Span};
use neph_sys::restrict::AppliedRestrictions;
use neph_wire::throughput::{Direction, Protocol, RrKind, TestRequest};

use super::{MaxRate, parse_max_rate};
use crate::exit::{Failure, Outcome};
use crate::privileges::{self, Needs, Row, UserChoice};
use crate::{format, interrupt, output, value};

/// Options of `neph throughput serve`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Address and port on which the server listens (TCP and UDP); [::] means all IPv6 and IPv4 addresses
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "[::]:7420",
          value_parser = value::listen_address)]
    listen: SocketAddr,
    /// Maximum duration of a test
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = value::positive_span)]
    max_duration: Span,
    /// Maximum number of streams per direction of a test, 1 to 64
    #[arg(long, value_name = "N", default_value_t = TestRequest::MAX_STREAMS,
          value_parser = clap::value_parser!(u16).range(1..=i64::from(TestRequest::MAX_STREAMS)))]
    max_streams: u16,
    /// Maximum bit rate per direction of a test; max: no limit
    #[arg(long, value_name = "RATE", default_value = "max", value_parser = parse_max_rate)]
    max_rate: MaxRate,
    /// Wait for this time before each read, to simulate a slow receiver
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = value::span)]
    read_pause: Span,
    /// Poll for requests of `neph rr` without sleeping; each stream (UDP, TCP) uses one CPU core of this host
    #[arg(long)]
    busy_poll: bool,
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
    let spec = ServerSpec {
        listen: args.listen,
        caps: ServerCaps {
            duration: args.max_duration,
            streams: args.max_streams,
            rate: args.max_rate.0,
        },
        read_pause: args.read_pause,
        permit: Permit::ANYTHING,
        busy_poll: args.busy_poll,
    };
    let server = Server::bind(&spec).map_err(|error| start_failure(&error))?;
    // No thread runs yet. From now on only incoming connections are opened.
    let restrictions = Needs::of(&Row::THROUGHPUT_SERVE)
        .without_connections()
        .restrict(&args.user)?;
    let stop = interrupt::stop_on_ctrl_c()?;
    if !args.quiet {
        show_start(server.address(), &restrictions, args.format)?;
    }
    let show = |event: ServedEvent| {
        if !args.quiet {
            show_event(event, args.format);
        }
    };
    server.run(&stop, &show).map_err(Failure::refused)?;
    Ok(Outcome::Done)
}

fn show_start(
    address: SocketAddr,
    restrictions: &AppliedRestrictions,
    format: Format,
) -> Result<(), Failure> {
    if format == Format::Ndjson {
        let line = ServedLine::Listening {
            address: address.to_string(),
            privileges: privileges::document(restrictions),
        };
        return Ok(output::print_line(&json_line(&line))?);
    }
    output::say(&format!(
        "neph throughput: {address} serves throughput and request/response tests over TCP and UDP, one at a time"
    ));
    output::say(&format!(
        "neph throughput: {}",
        privileges::sentence(restrictions)
    ));
    Ok(())
}

fn show_event(event: ServedEvent, format: Format) {
    if format == Format::Ndjson {
        let line = match event {
            ServedEvent::Began { peer, job } => ServedLine::began(peer.to_string(), &job),
            ServedEvent::Ended { peer, fault } => ServedLine::Ended {
                peer: peer.to_string(),
                fault,
            },
            ServedEvent::Refused { peer, reason } => ServedLine::Refused {
                peer: peer.to_string(),
                reason,
            },
        };
        // A closed pipe does not end tests.
        let _ = output::print_line(&json_line(&line));
        return;
    }
    let sentence = match event {
        ServedEvent::Began { peer, job } => format!("{peer} measures {}", to_text(&job)),
        ServedEvent::Ended { peer, fault: None } => format!("{peer} has measured"),
        ServedEvent::Ended {
            peer,
            fault: Some(fault),
        } => format!("the test of {peer} broke off: {fault}"),
        ServedEvent::Refused { peer, reason } => format!("{peer} was refused: {reason}"),
    };
    output::say(&format!("neph throughput: {sentence}"));
}

/// The requested settings.
fn to_text(job: &Job) -> String {
    let streams = neph_text::counted::counted(job.streams().into(), "stream");
    let duration = job.duration();
    let request = match job {
        Job::Throughput(request) => request,
        Job::Rr(request) => {
            let test = match request.kind {
                RrKind::UdpRr => "UDP_RR",
                RrKind::TcpRr => "TCP_RR",
                RrKind::TcpCrr => "TCP_CRR",
            };
            let (request, reply) = (request.request_bytes.into(), request.reply_bytes.into());
            let (request, reply) = (ByteSize(request), ByteSize(reply));
            return format!("{test}, {streams}, request {request}, reply {reply}, for {duration}");
        }
    };
    let protocol = match request.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    };
    let direction = match request.direction {
        Direction::Up => "up",
        Direction::Down => "down",
        Direction::Both => "both directions",
    };
    let rate = request.rate_bit_s.map_or_else(
        || "the highest possible".to_owned(),
        |rate| BitRate(rate).to_string(),
    );
    format!("{protocol}, {direction}, {streams}, {rate}, for {duration}")
}

/// Why the server cannot start; for port errors with the remedy.
fn start_failure(error: &ThroughputError) -> Failure {
    let remedy = match error {
        ThroughputError::Listen { source, .. } => match source.kind() {
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
