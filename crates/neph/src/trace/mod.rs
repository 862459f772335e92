//! `neph trace`: the route of each flow, and the diamonds where paths split.

mod progress;
mod target;

use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs};
use neph_documents::Format;
use neph_documents::rows::{write_json, write_json_line};
use neph_documents::trace::{self as documents, TraceConditions, TraceDocument};
use neph_flows::build_diamond;
use neph_model::{FlowTrace, Span, TraceKind};
use neph_probe::{FlowSet, Placement, ProbeError, Sockets, TraceSpec, trace};
use neph_stats::flows_to_rule_out;

use crate::exit::{Failure, Outcome};
use crate::ip_choice::IpChoice;
use crate::privileges::{Needs, Row, UserChoice};
use crate::sink::Force;
use crate::{format, interrupt, output, resolving, sink, value};

use progress::ProgressLine;

/// Below the ephemeral ports of Linux (from 32768 on).
const DEFAULT_FIRST_PORT: u16 = 24_000;
/// Number of next hops of a router for which the stopping rule is calculated; beyond, its last
/// number is used. No routing table has more paths.
const MAX_NEXT_HOPS: u32 = 128;

/// Options of `neph trace`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "TARGET: a host, udp://host[:port], syn://host:port or icmp://host. Without a scheme, neph sends UDP to port 33434. This port is normally closed, so the target answers with an ICMP error.\n\
Exit status: 0 at least one hop replied, 1 no reply, 2 usage error, 130 interrupted by ctrl-C (prints the results so far)."
)]
pub(crate) struct Args {
    /// Host or URL whose route neph traces; the end of this help lists the URL schemes
    target: String,
    #[command(flatten)]
    ip: IpChoice,
    /// Number of flows to trace, 1 to 50000 [default: as many as needed to find all paths]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    flows: Option<u32>,
    /// Trace the flows with these source ports (ICMP: identifiers), such as 40001 or 40000-40511
    #[arg(long, value_name = "PORT[-PORT]", value_parser = target::parse_ports, conflicts_with = "flows")]
    source_port: Option<target::Ports>,
    /// Probability, 0.5 to 0.9999, with which neph finds all next hops of a router that balances load
    #[arg(long, value_name = "SHARE", value_parser = parse_confidence, default_value = "0.99")]
    confidence: Confidence,
    /// Maximum number of flows with which neph searches for all paths, 1 to 40000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=40_000), default_value = "512")]
    most_flows: u32,
    /// Maximum distance in hops: the largest TTL that neph sends, 1 to 64
    #[arg(long, short = 'm', value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64), default_value = "30")]
    max_hops: u8,
    /// Number of probes per flow and hop, 1 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100), default_value = "3")]
    queries: u8,
    /// Maximum number of probes per second, to all hops together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), default_value = "500")]
    rate: u32,
    /// Maximum number of probes per second with the same TTL; neph sends fewer with a TTL that gets no replies
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), default_value = "50")]
    hop_rate: u32,
    /// Time for which neph waits for the reply to a probe
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, default_value = "1s")]
    timeout: Span,
    /// Send probes with ordinary sockets even if raw sockets are permitted; this is slower, and
    /// impossible for syn://
    #[arg(long, action = ArgAction::SetTrue)]
    no_raw: bool,
    #[command(flatten)]
    user: UserChoice,
    /// Run inside this network namespace of Linux, or at this site (host) of a running lab (emulated
    /// network, `neph lab up`)
    #[arg(long, value_name = "SITE", value_parser = neph_lab::namespace)]
    site: Option<String>,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
    /// Write the results to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

/// A share between 0 and 1.
#[derive(Clone, Copy, Debug)]
struct Confidence(f64);

fn parse_confidence(text: &str) -> Result<Confidence, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    match share {
        Ok(share) if (0.5..=0.9999).contains(&share) => Ok(Confidence(share)),
        _ => Err("write a share from 0.5 to 0.9999, or 99%".to_owned()),
    }
}

impl Args {
    fn flow_set(&self) -> FlowSet {
        let first_port = DEFAULT_FIRST_PORT;
        match (&self.source_port, self.flows) {
            (Some(ports), _) => FlowSet::These(ports.numbers()),
            (None, Some(flows)) => FlowSet::Count {
                flows,
                first: first_port,
            },
            (None, None) => FlowSet::Enough {
                needed: (1..=MAX_NEXT_HOPS)
                    .map_while(|next_hops| flows_to_rule_out(next_hops, self.confidence.0))
                    .collect(),
                max_flows: self.most_flows,
                first: first_port,
            },
        }
    }

    fn spec(&self) -> Result<TraceSpec, Failure> {
        let (kind, target) = target::parse(&self.target)?;
        let site = self.site.as_ref().map(Placement::with_name);
        let destination = resolving::find(&target, self.ip.version(), site)?.address;
        target::check_single_host(destination.ip())?;
        target::check_link(destination)?;
        if let Some(ports) = self.source_port {
            target::check_ports(kind, ports)?;
        }
        if self.no_raw && kind == TraceKind::Syn {
            return Err(Failure::Usage(
                "--no-raw: SYNs of a trace are sent with raw sockets; drop it, or use udp://"
                    .to_owned(),
            ));
        }
        Ok(TraceSpec {
            sockets: if self.no_raw {
                Sockets::Plain
            } else {
                Sockets::BestPermitted
            },
            max_hops: self.max_hops,
            queries: self.queries,
            timeout: self.timeout,
            hop_rate: self.hop_rate,
            rate: self.rate,
            ..TraceSpec::new(destination, kind, self.flow_set())
        })
    }
}

/// Traces and shows.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    Needs::of(&Row::TRACE)
        .at_site(args.site.as_deref())
        .writes(args.output.as_deref())
        .restrict(&args.user)?;
    let spec = args.spec()?;
    let mut out = sink::open(args.output.as_deref(), args.force)?;
    let stop = interrupt::stop_on_ctrl_c()?;
    let site = args.site.as_ref().map(Placement::with_name);
    let progress_line = ProgressLine::begin();
    let result = trace(&spec, site.as_ref(), &stop);
    drop(progress_line);
    let result = result.map_err(|error| to_failure(error, spec.destination.ip()))?;
    for reason in &result.left_out {
        output::say(&format!("neph: a flow is left out: {reason}"));
    }
    let conditions = TraceConditions {
        confidence: args.confidence.0,
        stopped: result.stopped,
    };
    let flow_trace = result.trace;
    let path_diamond = build_diamond(&flow_trace.routes);
    let document = TraceDocument::of(&flow_trace, &path_diamond);
    match args.format {
        Format::Text => {
            out.write_all(documents::text(&flow_trace, &path_diamond, conditions).as_bytes())?;
        }
        Format::Json => write_json(&document, &mut *out)?,
        Format::Ndjson => document
            .lines()
            .try_for_each(|trace_line| write_json_line(&trace_line, &mut *out))?,
        Format::Csv => documents::write_csv(&flow_trace, &mut *out)?,
    }
    // Dropping the buffer would swallow a refusal.
    out.flush()?;
    Ok(match (stop.is_set(), has_answer(&flow_trace)) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Done,
        (false, false) => Outcome::Nothing,
    })
}

/// The remedy if this host has no route to the target.
fn to_failure(error: ProbeError, target: IpAddr) -> Failure {
    let no_route = [ErrorKind::NetworkUnreachable, ErrorKind::HostUnreachable];
    match &error {
        ProbeError::Socket { source, .. } if no_route.contains(&source.kind()) => {
            Failure::Refused(format!(
                "{error}: this host has no route to it; see 'ip route get {target}', or trace from \
                 another place with --site"
            ))
        }
        _ => error.into(),
    }
}

fn has_answer(flow_trace: &FlowTrace) -> bool {
    let mut hops = flow_trace.routes.iter().flat_map(|route| &route.hops);
    hops.any(|hop| hop.address.is_some())
}
