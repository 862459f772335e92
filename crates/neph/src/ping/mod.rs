//! `neph ping`: one or more flows to a target, with a line per message and a summary.

mod answer;
mod first_reply;
mod flows;
mod ping_writer;
mod route;
mod target_options;
mod watch;

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use neph_documents::Format;
use neph_documents::ping::{PlannedFlow, PlannedFlows};
use neph_model::{ByteSize, ExpectedStatus, Fingerprint, SCHEMES, Span, TlsVersion};
use neph_probe::{ConnectionUse, Priority, Secret, Trust};
use neph_sys::restrict::Capability;

use crate::awake::AwakeChoice;
use crate::exit::{Failure, Outcome};
use crate::ip_choice::IpChoice;
use crate::metrics::MetricsArgs;
use crate::metrics::ping::PingMetrics;
use crate::privileges::{Needs, Row, UserChoice};
use crate::sink::Force;
use crate::{format, interrupt, output, value};

/// A TLS version that can be required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TlsChoice {
    /// TLS 1.2
    #[value(name = "1.2")]
    V12,
    /// TLS 1.3
    #[value(name = "1.3")]
    V13,
}

impl TlsChoice {
    /// The required version; `None` for any.
    pub(crate) const fn version(choice: Option<Self>) -> Option<TlsVersion> {
        match choice {
            None => None,
            Some(Self::V12) => Some(TlsVersion::V12),
            Some(Self::V13) => Some(TlsVersion::V13),
        }
    }
}

/// The default payload of a request.
const DEFAULT_REQUEST_SIZE: ByteSize = ByteSize(64);

/// The schemes, and the exit status.
fn after_help() -> String {
    let schemes: Vec<String> = SCHEMES
        .iter()
        .map(|scheme| format!("{}://", scheme.name))
        .collect();
    format!(
        "TARGET: {}host[:port][/path]. Without a scheme neph uses the first protocol that answers.\n\
         Exit status: 0 measured, 1 nothing measured, 2 usage error, 130 interrupted by ctrl-C (prints the summary).",
        schemes.join(" ")
    )
}

/// Options of `neph ping`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = after_help()
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// Host (host[:port]) or URL to measure; the end of this help lists the URL schemes
    pub(crate) target: String,
    /// Send this number of messages, then stop [default: send until ctrl-C]
    #[arg(long, short, value_name = "N", value_parser = value::positive_count)]
    pub(crate) count: Option<u64>,
    /// Time between two messages, at least 1us; a number without a unit is in seconds
    #[arg(long, short, value_name = "TIME", value_parser = value::positive_span, default_value = "1s")]
    pub(crate) interval: Span,
    /// Measure for this time, such as 30s or 5min [default: until ctrl-C]
    #[arg(long, short = 'w', value_name = "TIME", value_parser = value::positive_span, conflicts_with = "count")]
    pub(crate) duration: Option<Span>,
    /// Payload size of each request, such as 1KiB; udp:// sends at least 104 B,
    /// so that the reflector's timestamps fit into the reply. Exception: 44B, for replies without them
    #[arg(long, short = 's', value_name = "SIZE", value_parser = value::size, default_value_t = DEFAULT_REQUEST_SIZE)]
    pub(crate) request_size: ByteSize,
    /// Payload size of each reply, if `neph reflect` is the target; over WebSocket and TCP, a reply
    /// has at least 68 B
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "64")]
    pub(crate) response_size: ByteSize,
    /// Local source port of the messages [default: the kernel chooses]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) source_port: Option<u16>,
    #[command(flatten)]
    pub(crate) ip: IpChoice,
    /// Use only this TLS version [default: the newest version that the server supports]
    #[arg(long, value_enum)]
    pub(crate) tls_version: Option<TlsChoice>,
    /// Accept any TLS certificate from the target, without verification
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Trust the CA certificates in this file (PEM), as well as the public CAs
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Accept only TLS certificates with these SHA-256 fingerprints (comma-separated, repeatable)
    #[arg(long, value_name = "SHA256", value_delimiter = ',', conflicts_with_all = ["insecure", "ca_file"])]
    pub(crate) pin: Vec<Fingerprint>,
    /// Open a new connection (with TLS if the target uses it) for each message
    #[arg(long)]
    pub(crate) new_connection: bool,
    /// Count a message as lost after this time without a reply
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, default_value = "5s")]
    pub(crate) timeout: Span,
    /// TCP congestion control of this host: cubic, bbr, reno ... [default: that of the system]
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// HMAC key for authenticated STAMP (the protocol of udp://, RFC 8762), read
    /// from a file (mode 0600) or an environment variable
    #[arg(long, value_name = "file:PATH|env:NAME", value_parser = value::secret)]
    pub(crate) stamp_key: Option<Secret>,
    /// Do not send ICMP echo requests to the target's host in addition to the messages
    #[arg(long)]
    pub(crate) no_icmp: bool,
    /// Refuse to start if --interval needs more SYNs per second than this (syn:// only) [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate_cap: Option<u32>,
    /// Comma-separated HTTP statuses that count as a reply, such as
    /// 200,2xx,200-204; or any for all. A status that is not in the list is an error
    #[arg(long, value_name = "STATUS", default_value_t = ExpectedStatus::default())]
    pub(crate) expect_status: ExpectedStatus,
    /// Follow up to 20 HTTP redirects before the first message, and measure the last target
    #[arg(long)]
    pub(crate) follow: bool,
    /// If this host stalls for more than 1 s, send the overdue messages at once; without this option
    /// they count as not sent
    #[arg(long)]
    pub(crate) catch_up: bool,
    /// Busy-wait (use the CPU, do not sleep) for this time before each send, and before and
    /// after the expected reply. 0 saves CPU time, but
    /// delays sends and wake-ups by 10 to 20 us
    #[arg(long, value_name = "TIME", value_parser = value::span, default_value = "60us")]
    pub(crate) spin: Span,
    /// Run with normal scheduling priority, even if neph may use real-time priority
    #[arg(long)]
    pub(crate) normal_priority: bool,
    #[command(flatten)]
    pub(crate) awake: AwakeChoice,
    #[command(flatten)]
    user: UserChoice,
    #[command(flatten)]
    metrics: MetricsArgs,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    pub(crate) format: Format,
    /// Print only the summary at the end, in the chosen --format; errors still go to standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Trace the route to this host before the first message; without HOST, the route to the target
    #[arg(long, value_name = "HOST", num_args = 0..=1, default_missing_value = "")]
    pub(crate) traceroute: Option<String>,
    /// Run inside this network namespace of Linux, or at this site (host) of a running lab (emulated
    /// network, `neph lab up`)
    #[arg(long, value_name = "SITE", value_parser = neph_lab::namespace)]
    pub(crate) site: Option<String>,
    /// Write the results to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) force: Force,
}

impl Args {
    fn trust(&self) -> Trust {
        match (&self.ca_file, self.insecure) {
            _ if !self.pin.is_empty() => Trust::Pinned(self.pin.clone()),
            (Some(file), _) => Trust::CaFile(file.clone()),
            (None, true) => Trust::AnyCertificate,
            (None, false) => Trust::Public,
        }
    }
    const fn connection_use(&self) -> ConnectionUse {
        if self.new_connection {
            ConnectionUse::PerMessage
        } else {
            ConnectionUse::Lasting
        }
    }
    const fn priority(&self) -> Priority {
        if self.normal_priority {
            Priority::Normal
        } else {
            Priority::Auto
        }
    }
    /// The privileges that the command keeps.
    fn needs(&self) -> Needs {
        let is_privileged_port = self.source_port.is_some_and(|port| port < 1024);
        let is_fast = self.interval < Span::from_millis(1);
        Needs::of(&Row::PING)
            .at_site(self.site.as_deref())
            .capability(Capability::CAP_NET_BIND_SERVICE, is_privileged_port)
            .capability(
                Capability::CAP_NET_ADMIN,
                is_fast || self.congestion.is_some(),
            )
            .reads(self.ca_file.as_deref())
            .writes(self.output.as_deref())
    }
    /// Whether the certificate of the server decides its identity.
    pub(crate) const fn needs_certificate(&self) -> bool {
        !self.pin.is_empty() || self.ca_file.is_some()
    }
    /// Whether the command runs until ctrl-C.
    const fn is_endless(&self) -> bool {
        self.count.is_none() && self.duration.is_none()
    }
}

/// The metric labels of each flow: endpoint and kind.
fn labels(planned_flows: &PlannedFlows) -> impl Iterator<Item = (String, &'static str)> {
    planned_flows.flows.iter().map(|planned| {
        let target = &planned.spec.target;
        (target.to_string(), target.kind().name())
    })
}

/// Measures and shows.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.interval < Span::from_micros(1) {
        return Err(Failure::Usage(format!(
            "an interval of {} is too short; the minimum is 1us",
            args.interval
        )));
    }
    let stop = interrupt::stop_on_ctrl_c()?;
    let _awake = args.awake.keep();
    let bound_exporters = args.metrics.bind("neph ping")?;
    args.needs().restrict(&args.user)?;
    let planned_flows = flows::plan_flows(args)?;
    let mut writer = ping_writer::PingWriter::new(args)?;
    if let Some(host) = &args.traceroute {
        writer.route(&route::trace(args, host, &planned_flows, &stop)?)?;
    }
    writer.begin(&planned_flows)?;
    let metrics = PingMetrics::of(args.site.as_deref(), labels(&planned_flows));
    let running_exporters = bound_exporters.begin(metrics.clone())?;
    let result = watch::run(&planned_flows, &stop, &mut writer, &metrics)?;
    writer.end(&planned_flows, &result)?;
    running_exporters.finish();
    if let Some(reason) = &result.early_end_reason {
        output::say(&format!("neph: {reason}"));
    }
    let silent_flows = planned_flows.flows.iter().zip(&result.flows);
    let silent_flows =
        silent_flows.filter(|(_, flow)| flow.tally.replies == 0 && flow.tally.lost > 0);
    for reason in silent_flows.filter_map(|(planned, _)| flows::udp_silence_reason(planned)) {
        output::say(&format!("neph: {reason}"));
    }
    let is_main_flow = |index: usize| {
        planned_flows
            .flows
            .get(index)
            .is_some_and(PlannedFlow::is_requested)
    };
    let has_reply = result
        .flows
        .iter()
        .enumerate()
        .any(|(index, flow)| is_main_flow(index) && flow.tally.replies > 0);
    Ok(match (stop.is_set(), has_reply) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Done,
        (false, false) => Outcome::Nothing,
    })
}
