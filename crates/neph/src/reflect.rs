//! `neph reflect`: the answering half, until ctrl-C.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use neph_model::{BitRate, ByteSize, Span, bracketed};
use neph_probe::{Caps, Counted, Identity, ProbeError, Reflector, ReflectorSpec, Secret};
use neph_sys::clock;
use neph_sys::restrict::InForce;
use neph_sys::{files, memory};
use serde_json::{Map, json};

use crate::awake::AwakeChoice;
use crate::exit::{Failure, Outcome};
use crate::ping::TlsChoice;
use crate::privileges::{self, Needs, Row, UserChoice};
use crate::{interrupt, output, value};

pub(crate) use neph_probe::REFLECT_PORT as PORT;

/// How often what was refused is told, while it grows.
const TELL: Duration = Duration::from_secs(10);
/// Files that are no connections: sockets, standard ones, /proc; and connections that are about to end.
const FILES_KEPT: u64 = 64;

/// How a reflector's lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Sentences, to standard error.
    Text,
    /// A JSON object a line, to standard output.
    Ndjson,
}

/// Options of `neph reflect`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Address and port to listen on, TCP and UDP; [::] is all addresses of IPv6 and IPv4
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "[::]:8080",
          value_parser = value::listening)]
    pub(crate) listen: SocketAddr,
    /// Offer TLS and plain text on the same port; makes a certificate unless one is given
    #[arg(long)]
    pub(crate) tls: bool,
    /// Certificate chain (PEM); implies --tls
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key (PEM), with mode 0600; a file of root may have 0640
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Name or address that the made certificate is valid for too, as a public name; may be repeated.
    /// Without, it is valid for the address of --listen, or for localhost where that is all addresses
    #[arg(long, value_name = "NAME", value_parser = value::certificate_name, requires = "tls", conflicts_with = "cert")]
    pub(crate) tls_name: Vec<String>,
    /// Offer only this TLS version
    #[arg(long, value_enum)]
    pub(crate) tls_version: Option<TlsChoice>,
    /// Secret of authenticated STAMP, read from a file (mode 0600) or an environment variable. Packets
    /// without it are refused
    #[arg(long, value_name = "file:PATH|env:NAME", value_parser = value::secret)]
    pub(crate) stamp_key: Option<Secret>,
    /// Answer STAMP requests from this source port although a server may have it, and an answer to an
    /// answer would go on for ever: our own, 7, 13, 17, 19, 37, 53, 69, 123, 862. May be repeated
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) answer_port: Vec<u16>,
    /// Wait this long before each reply, as a busy server would
    #[arg(long, value_name = "TIME", value_parser = value::span, default_value = "0")]
    pub(crate) think: Span,
    /// Largest reply granted
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "16MiB")]
    pub(crate) max_reply: ByteSize,
    /// Largest request read
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "64MiB")]
    pub(crate) max_request: ByteSize,
    /// Memory for all that peers make it hold, every copy of a message counted. Half of it at most is for
    /// connections (256 KiB each); of the rest one peer, or a /56, gets a quarter, or its largest message
    #[arg(long, value_name = "SIZE", value_parser = memory_size, default_value = "512MiB")]
    pub(crate) max_memory: ByteSize,
    /// Messages a second from one peer: an IPv4 address, or a /64 of IPv6
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 120_000)]
    pub(crate) max_rate: u32,
    /// Reply bytes to one peer
    #[arg(long, value_name = "RATE", value_parser = value::rate, default_value = "1Gbit/s")]
    pub(crate) max_reply_rate: BitRate,
    /// Connections at the same time. When all are taken, a newcomer replaces the longest idle connection
    /// of the network that has the most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 1024)]
    pub(crate) max_connections: u32,
    /// Connections at the same time from one address or /64; a /56 gets half as many more
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 512)]
    pub(crate) max_connections_per_peer: u32,
    /// Close a connection that sends nothing for this long; less when more than half of all connections are
    /// taken, and 5 s at least
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, default_value = "300s")]
    pub(crate) idle: Span,
    #[command(flatten)]
    pub(crate) awake: AwakeChoice,
    #[command(flatten)]
    pub(crate) user: UserChoice,
    /// How to write where it listens, its certificate and what it counted
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Args {
    /// The reflector that was asked for, here.
    pub(crate) fn spec(&self) -> ReflectorSpec {
        let identity = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Some(Identity::Files {
                certificate: certificate.clone(),
                key: key.clone(),
            }),
            _ if self.tls => Some(Identity::SelfSigned(self.tls_name.clone())),
            _ => None,
        };
        ReflectorSpec {
            address: self.listen,
            identity,
            tls_version: TlsChoice::version(self.tls_version),
            key: self.stamp_key.clone(),
            answered_ports: self.answer_port.clone(),
            think: self.think,
            caps: Caps {
                reply_size: self.max_reply,
                request_size: self.max_request,
                memory: self.max_memory,
                messages_per_second: self.max_rate,
                reply_rate: self.max_reply_rate,
                connections: self.max_connections,
                connections_per_peer: self.max_connections_per_peer,
                idle: self.idle,
                ..Caps::default()
            },
            site: None,
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
    // Before a port is taken.
    args.user.find()?;
    memory::return_large_blocks();
    let asked = spec.caps;
    // More connections than files would leave none for newcomers.
    if let Ok(files) = files::raise_limit() {
        let most = files.saturating_sub(FILES_KEPT).max(1);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        spec.caps.connections = spec.caps.connections.min(most);
    }
    let bound = Reflector::bind(&spec).map_err(|error| not_started(error, args.listen))?;
    let _awake = args.awake.keep();
    // No thread runs yet, and nothing more is opened but connections that come.
    let force = Needs::of(&Row::REFLECT)
        .without_connections()
        .restrict(&args.user)?;
    let reflector = bound.answer()?;
    if !args.quiet {
        show_start(&reflector, &force, args.format)?;
        say_what_fits(&asked, &spec.caps.fitting());
    }
    let mut told = Vec::new();
    let mut waited = Duration::ZERO;
    while !stop.is_set() {
        const TICK: Duration = Duration::from_millis(50);
        clock::nap(TICK);
        waited += TICK;
        if waited >= TELL && !args.quiet {
            waited = Duration::ZERO;
            tell(&mut told, reflector.counted(), args.format)?;
        }
    }
    let counted = reflector.stop();
    if !args.quiet {
        tell(&mut Vec::new(), counted, args.format)?;
    }
    Ok(Outcome::Done)
}

/// The least memory with which messages of the usual size are answered.
const LEAST_MEMORY: ByteSize = ByteSize(4 << 20);

fn memory_size(text: &str) -> Result<ByteSize, String> {
    let size = value::size(text)?;
    if size < LEAST_MEMORY {
        return Err(format!("the least is {}", LEAST_MEMORY.exact()));
    }
    Ok(size)
}

/// Prints the caps that the memory, or the limit on open files, does not allow.
fn say_what_fits(asked: &Caps, fitting: &Caps) {
    if fitting != asked {
        output::say(&format!(
            "neph reflect: --max-memory {} and the limit on open files allow {} connections, requests up to \
             {} and replies up to {}",
            asked.memory, fitting.connections, fitting.request_size, fitting.reply_size
        ));
    }
}

/// Shows where it listens, the certificate that its clients can pin, and which privileges it has.
fn show_start(reflector: &Reflector, force: &InForce, format: Format) -> Result<(), Failure> {
    let (address, certificate) = (reflector.address(), reflector.certificate());
    if format == Format::Ndjson {
        let certificate = certificate.map(|certificate| {
            json!({"sha256": certificate.fingerprint.to_string(), "names": certificate.names})
        });
        let line = json!({
            "kind": "listening",
            "address": address.to_string(),
            "certificate": certificate,
            "privileges": privileges::document(force),
        });
        return Ok(output::line(&line.to_string())?);
    }
    let schemes = match certificate {
        Some(_) => "ws, wss, http, https, tcp and udp (STAMP)",
        None => "ws, http, tcp and udp (STAMP); --tls adds wss and https",
    };
    output::say(&format!("neph reflect: {address} answers {schemes}"));
    if let Some(certificate) = certificate {
        let names = match &certificate.names[..] {
            [] => String::new(),
            names => format!(" for {}", names.join(", ")),
        };
        output::say(&format!(
            "neph reflect: certificate{names}: SHA-256 {}; clients accept it and no other with --pin",
            certificate.fingerprint
        ));
    }
    output::say(&format!("neph reflect: {}", privileges::sentence(force)));
    Ok(())
}

/// Why there is no reflector; where the port is the reason, with what to do.
fn not_started(error: ProbeError, at: SocketAddr) -> Failure {
    let remedy = match &error {
        ProbeError::Socket { source, .. } => match source.kind() {
            ErrorKind::AddrInUse => format!(
                "somebody listens there already: end them, or choose another port with --listen \
                 {}:PORT",
                bracketed(&at.ip().to_string())
            ),
            ErrorKind::PermissionDenied => "choose a port from 1024 on with --listen, or allow \
                                            this one: setcap cap_net_bind_service+ep on neph"
                .to_owned(),
            ErrorKind::AddrNotAvailable => {
                "this host has no such address: --listen names one that it has".to_owned()
            }
            _ => return error.into(),
        },
        _ => return error.into(),
    };
    Failure::Refused(format!("{error}; {remedy}"))
}

/// Says what was counted, if it changed since it was last told.
fn tell(
    told: &mut Vec<(Counted, u64)>,
    counted: Vec<(Counted, u64)>,
    format: Format,
) -> Result<(), Failure> {
    if *told == counted {
        return Ok(());
    }
    if format == Format::Ndjson {
        let counts = counted
            .iter()
            .map(|(what, count)| (what.name().to_owned(), json!(count)));
        let counts: Map<_, _> = counts.collect();
        output::line(&json!({"kind": "counted", "counts": counts}).to_string())?;
        *told = counted;
        return Ok(());
    }
    let words: Vec<String> = counted
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{what} {count}"))
        .collect();
    if !words.is_empty() {
        output::say(&format!("neph reflect: {}", words.join(", ")));
    }
    *told = counted;
    Ok(())
}
