//! `neph reflect`: answers probes until ctrl-C.

mod lines;

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use neph_agent::{BoundService, ReflectorError, RunningService};
use neph_model::{
    BitRate, ByteSize, Permit, ReflectorCaps, ReflectorIdentity, ReflectorSpec, SecretSource,
    ServiceModel, Span,
};
use neph_probe::{Reflector, fitting_caps};
use neph_sys::clock;
use neph_sys::restrict::Capability;
use neph_sys::{files, memory};

use crate::awake::AwakeChoice;
use crate::exit::{Failure, Outcome};
use crate::ping::TlsChoice;
use crate::privileges::{Needs, Row, UserChoice};
use crate::service::Service;
use crate::{format, interrupt, value};
use lines::{report_counters, report_reduced_caps, show_start, start_failure};
use neph_documents::Format;

pub(crate) use neph_model::REFLECT_PORT as PORT;

/// Interval of reports about refusals, while their number grows.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// File descriptors that are not connections: sockets, standard streams, /proc, and connections
/// that are about to end.
const RESERVED_FILES: u64 = 64;

/// Options of `neph reflect`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Address and port on which the reflector listens (TCP and UDP); [::] means all IPv6 and IPv4 addresses
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "[::]:8080",
          value_parser = value::listen_address)]
    pub(crate) listen: SocketAddr,
    /// Offer TLS and plain text on the same port; neph creates a certificate unless --cert is given
    #[arg(long)]
    pub(crate) tls: bool,
    /// File with the server's certificate chain (PEM); includes --tls
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// File with the private key of --cert (PEM). Its file mode must be 0600, or 0640 if root owns it
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Additional host name or address in the certificate that --tls creates; clients can see it;
    /// repeatable. The certificate always has the address of --listen (localhost, if neph listens at all
    /// addresses)
    #[arg(long, value_name = "NAME", value_parser = value::certificate_name, requires = "tls", conflicts_with = "cert")]
    pub(crate) tls_name: Vec<String>,
    /// Offer only this TLS version [default: 1.2 and 1.3]
    #[arg(long, value_enum)]
    pub(crate) tls_version: Option<TlsChoice>,
    /// HMAC key for authenticated STAMP (RFC 8762), read from a file (mode 0600) or a variable; neph
    /// then refuses unauthenticated packets
    #[arg(long, value_name = "file:PATH|env:NAME", value_parser = value::secret_source)]
    pub(crate) stamp_key: Option<SecretSource>,
    /// Also answer STAMP requests that come from this source port; repeatable. By default neph ignores
    /// those from port 7, 13, 17, 19, 37, 53, 69, 123, 862 and the port of --listen. Servers use these
    /// ports, and two servers could answer each other forever
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) answer_port: Vec<u16>,
    /// Wait for this time before each reply, to simulate server processing time
    #[arg(long, value_name = "TIME", value_parser = value::span, default_value = "0")]
    pub(crate) think: Span,
    /// Also serve `neph throughput` and `neph rr`, one test at a time, at this port of the --listen address
    /// [default port: 7420]
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "7420")]
    pub(crate) throughput: Option<NonZeroU16>,
    /// Also serve video streams for `neph media` (RTSP) at this port of the --listen address [default
    /// port: 8554]
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "8554")]
    pub(crate) media: Option<NonZeroU16>,
    /// Also serve HTTP with known service times, to test load generators: c servers, a distribution of
    /// service times, and the places in the queue. For example 'c=8 exp 63ms queue=100'; port 8090 of the
    /// --listen address, or 'port=N'
    #[arg(long, value_name = "SERVICE")]
    pub(crate) serve: Option<ServiceModel>,
    /// Maximum size of a reply that a client may request
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "16MiB")]
    pub(crate) max_reply: ByteSize,
    /// Maximum size of a request
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "64MiB")]
    pub(crate) max_request: ByteSize,
    /// Maximum memory for messages and connections of all clients together. Each connection takes 256
    /// KiB; all connections take at most half of this size, and messages the rest. For its messages, one
    /// client (an IPv4 address or an IPv6 /56) may use a quarter of this rest, or more if the largest
    /// allowed message needs more
    #[arg(long, value_name = "SIZE", value_parser = value::memory_size, default_value = "512MiB")]
    pub(crate) max_memory: ByteSize,
    /// Maximum number of messages per second from one peer (an IPv4 address or an IPv6 /64)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 120_000)]
    pub(crate) max_rate: u32,
    /// Maximum bit rate of the replies to one peer
    #[arg(long, value_name = "RATE", value_parser = value::rate, default_value = "1Gbit/s")]
    pub(crate) max_reply_rate: BitRate,
    /// Maximum number of connections. Above it, a new connection replaces an old one: the longest idle
    /// connection of the client network (IPv4 address or IPv6 /56) that has the most connections
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 1024)]
    pub(crate) max_connections: u32,
    /// Maximum number of connections from one IPv4 address or IPv6 /64; an IPv6 /56 gets 1.5 times as many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 512)]
    pub(crate) max_connections_per_peer: u32,
    /// Close a connection after this time without data. While more than half of --max-connections are
    /// in use, neph shortens this time, but not below 5 s
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, default_value = "300s")]
    pub(crate) idle: Span,
    #[command(flatten)]
    pub(crate) awake: AwakeChoice,
    #[command(flatten)]
    pub(crate) user: UserChoice,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ENDLESS))]
    format: Format,
    /// Print only errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Args {
    /// The reflector that the options describe.
    pub(crate) fn spec(&self) -> ReflectorSpec {
        let identity = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Some(ReflectorIdentity::Files {
                certificate: certificate.clone(),
                key: key.clone(),
            }),
            _ if self.tls => Some(ReflectorIdentity::SelfSigned(self.tls_name.clone())),
            _ => None,
        };
        ReflectorSpec {
            address: self.listen,
            identity,
            tls_version: TlsChoice::version(self.tls_version),
            stamp_key: self.stamp_key.clone(),
            answered_ports: self.answer_port.clone(),
            reply_delay: self.think,
            throughput: self.throughput,
            media: self.media,
            service: self.serve.clone(),
            caps: ReflectorCaps {
                reply_size: self.max_reply,
                request_size: self.max_request,
                memory: self.max_memory,
                messages_per_second: self.max_rate,
                reply_rate: self.max_reply_rate,
                connections: self.max_connections,
                connections_per_peer: self.max_connections_per_peer,
                idle: self.idle,
                ..ReflectorCaps::default()
            },
        }
    }
}

/// Answers until ctrl-C.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let stop = interrupt::stop_on_ctrl_c()?;
    let mut spec = args.spec();
    if spec.identity.is_none() && args.tls_version.is_some() {
        return Err(Failure::usage(
            "--tls-version: no TLS is offered; give --tls, or --cert and --key, too",
        ));
    }
    // Checked before a port is bound.
    args.user.find()?;
    memory::return_large_blocks();
    let mut service = Service::find("reflect");
    let requested_caps = spec.caps;
    // More connections than file descriptors would leave none for new connections.
    if let Ok(files) = files::raise_limit() {
        let max = files.saturating_sub(RESERVED_FILES).max(1);
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        spec.caps.connections = spec.caps.connections.min(max);
    }
    let bound_reflector =
        Reflector::bind(&spec).map_err(|error| start_failure(error, args.listen))?;
    let services =
        BoundService::alongside(&spec, None, &Permit::ANYTHING).map_err(Failure::refused)?;
    let _awake = args.awake.keep();
    // No thread runs yet. From now on only incoming connections are opened.
    let restrictions = Needs::of(&Row::REFLECT)
        .capability(Capability::CAP_NET_ADMIN, spec.throughput.is_some())
        .without_connections()
        .restrict(&args.user)?;
    let reflector = bound_reflector.answer()?;
    let services: Result<Vec<RunningService>, ReflectorError> =
        services.into_iter().map(BoundService::serve).collect();
    let services = services.map_err(Failure::refused)?;
    if !args.quiet {
        show_start(&reflector, &services, &restrictions, args.format)?;
        report_reduced_caps(&requested_caps, &fitting_caps(spec.caps));
    }
    service.report_ready(
        &format!("answers at {}", reflector.address()),
        reflector.pulses().to_vec(),
    );
    let mut last_counts = Vec::new();
    let mut elapsed = Duration::ZERO;
    while !stop.is_set() {
        const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
        clock::nap(STOP_CHECK_INTERVAL);
        elapsed += STOP_CHECK_INTERVAL;
        if elapsed >= REPORT_INTERVAL && !args.quiet {
            elapsed = Duration::ZERO;
            report_counters(&mut last_counts, reflector.counted(), args.format)?;
        }
    }
    drop((service, services));
    let counters = reflector.stop();
    if !args.quiet {
        report_counters(&mut Vec::new(), counters, args.format)?;
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: Args,
    }

    /// Every flag with its value, except the one that plans refuse.
    const VALID_ARGUMENTS: &[(&str, &[&str])] = &[
        ("listen", &["--listen", "127.0.0.1:9"]),
        ("tls", &["--tls"]),
        ("cert", &["--cert", "a.pem", "--key", "b.pem"]),
        ("key", &["--key", "b.pem", "--cert=a.pem"]),
        (
            "tls-name",
            &["--tls", "--tls-name", "a", "--tls-name", "192.0.2.1"],
        ),
        ("tls-version", &["--tls", "--tls-version", "1.3"]),
        ("stamp-key", &["--stamp-key", "env:NAME"]),
        (
            "answer-port",
            &["--answer-port", "7", "--answer-port", "862"],
        ),
        ("think", &["--think", "0.25"]),
        ("throughput", &["--throughput=7421"]),
        ("media", &["--media=8555"]),
        ("serve", &["--serve", "c=2 exp 5ms queue=9 port=8091"]),
        ("max-reply", &["--max-reply", "1MiB"]),
        ("max-request", &["--max-request", "100"]),
        ("max-memory", &["--max-memory", "4MiB"]),
        ("max-rate", &["--max-rate", "3"]),
        ("max-reply-rate", &["--max-reply-rate", "1.5Mbit/s"]),
        ("max-connections", &["--max-connections", "2"]),
        (
            "max-connections-per-peer",
            &["--max-connections-per-peer", "1"],
        ),
        ("idle", &["--idle", "5s"]),
        ("awake", &["--awake"]),
        ("format", &["--format", "ndjson"]),
        ("quiet", &["-q"]),
    ];

    const INVALID_ARGUMENTS: &[&[&str]] = &[
        &["--listn"],
        &["--listen", "localhost:1"],
        &["--tls", "--tls"],
        &["--tls=yes"],
        &["--cert", "a.pem"],
        &["--key", "b.pem"],
        &["--tls-name", "a"],
        &["--cert", "a", "--key", "b", "--tls", "--tls-name", "a"],
        &["--tls-version", "1.1"],
        &["--stamp-key", "hunter2"],
        &["--answer-port", "0"],
        &["--think"],
        &["--think", "--tls"],
        &["--serve", "c=0 5ms"],
        &["--max-memory", "1MiB"],
        &["--max-rate", "0"],
        &["--idle", "0"],
        &["--format", "yaml"],
        &["nonsense"],
    ];

    fn parse_options(arguments: &[&str]) -> Option<ReflectorSpec> {
        let arguments = std::iter::once("neph").chain(arguments.iter().copied());
        CommandLine::try_parse_from(arguments)
            .ok()
            .map(|line| line.args.spec())
    }

    fn parse_in_plan(arguments: &[&str]) -> Option<ReflectorSpec> {
        neph_campaign::plan::parse_reflector_flags(arguments.iter().copied()).ok()
    }

    #[test]
    fn a_plan_reads_the_flags_of_a_reflector_as_the_command_line_does() {
        let no_arguments: &[&str] = &[];
        let samples = VALID_ARGUMENTS
            .iter()
            .map(|(_, arguments)| *arguments)
            .chain([no_arguments]);
        for arguments in samples {
            let spec = parse_options(arguments);
            assert!(spec.is_some(), "{arguments:?}");
            assert_eq!(parse_in_plan(arguments), spec, "{arguments:?}");
        }
        for arguments in INVALID_ARGUMENTS {
            assert_eq!(
                (parse_options(arguments), parse_in_plan(arguments)),
                (None, None),
                "{arguments:?}"
            );
        }
        let command = Args::augment_args(CommandLine::command());
        let known_names: Vec<&str> = VALID_ARGUMENTS
            .iter()
            .map(|(name, _)| *name)
            .chain(["user"])
            .collect();
        let unknown_names = command.get_arguments().filter_map(clap::Arg::get_long);
        let unknown_names: Vec<_> = unknown_names
            .filter(|name| !known_names.contains(name))
            .collect();
        assert_eq!(unknown_names, [""; 0], "flags that plans do not know");
    }
}
