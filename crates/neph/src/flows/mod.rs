//! `neph flows`: many flows to one or more targets: slow flows, path changes, and the best source
//! ports.

mod fleet;
mod fleet_outcome;
mod fleet_run;
mod recorder;
mod tracing;
mod transfer_spec;
mod transfers;

use std::path::PathBuf;

use clap::Args as ClapArgs;
use neph_documents::Format;
use neph_documents::flows::FlowsWriter;
use neph_model::{Criteria, Span};
use neph_probe::{Placement, Priority, Secret, check_files};

use crate::awake::AwakeChoice;
use crate::exit::{Failure, Outcome};
use crate::ip_choice::IpChoice;
use crate::metrics::MetricsArgs;
use crate::metrics::flows::FlowsMetrics;
use crate::privileges::{Needs, Row, UserChoice};
use crate::sink::Force;
use crate::workspace::Workspace;
use crate::{format, interrupt, output, sink, value};

/// Options of `neph flows`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "TARGET is one of:\n  \
host[:port], udp://host[:port]  a STAMP reflector, which returns UDP probes (RFC 8762): neph reflect, for example\n  \
syn://host:port                 any TCP server; neph sends SYNs\n  \
tcp://host:port                 neph reflect, over one TCP connection per flow\n\
Exit status: 0 measured, 1 nothing measured, 2 usage error, 130 interrupted by ctrl-C (prints the summary).")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Args {
    /// One or more targets (forms: end of this help); neph assigns the flows to them in turn
    #[arg(required = true, value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// Number of concurrent flows, 1 to 50000, each with its own source port
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000), default_value = "512")]
    pub(crate) flows: u32,
    /// Time between two messages of a flow; a number without a unit is in seconds
    #[arg(long, short, value_name = "TIME", value_parser = value::positive_span, default_value = "1s")]
    pub(crate) interval: Span,
    /// Measure for this time, such as 30s or 5min [default: until ctrl-C]
    #[arg(long, short = 'w', value_name = "TIME", value_parser = value::positive_span, conflicts_with = "count")]
    pub(crate) duration: Option<Span>,
    /// Send this number of messages in each flow, then stop [default: send until ctrl-C]
    #[arg(long, short, value_name = "N", value_parser = value::positive_count)]
    pub(crate) count: Option<u64>,
    /// Replace each flow by a new one with another source port after this time [default: never]
    #[arg(long, value_name = "TIME", value_parser = value::positive_span)]
    pub(crate) renew: Option<Span>,
    /// First source port, 1024 to 65535; the flows use the free ports from this port on [default: 10000]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1024..))]
    pub(crate) first_port: Option<u16>,
    /// Count a message as lost after this time without a reply
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, default_value = "2s")]
    pub(crate) timeout: Span,
    /// Refuse to start with more messages per second than this [default: 60000; SYN: 1000, and 200
    /// per target]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate_cap: Option<u32>,
    #[command(flatten)]
    pub(crate) ip: IpChoice,
    /// neph derives a flow's base latency (RTT without queueing) from this number of latest RTTs, 2 to 16
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=16), default_value = "4")]
    pub(crate) window: u8,
    /// Minimum number of the --window RTTs that agree before neph changes the base latency, 2 to --window
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=16), default_value = "3")]
    pub(crate) quorum: u8,
    /// RTTs agree if they differ by at most this time. neph reports a path change if the base latency changes
    /// by more than this time
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, default_value = "500us")]
    pub(crate) tolerance: Span,
    /// Report the source ports of the fastest path, and how long such ports stayed on it
    #[arg(long)]
    pub(crate) advise: bool,
    /// Trace the route of each flow (traceroute) at the start and after each path change; needs root
    #[arg(long)]
    pub(crate) trace: bool,
    /// After the measurement, make this number of small TCP transfers per class (flows with the same
    /// base latency), 1 to 100000. Needs syn:// or tcp://, and --duration or --count
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) transfers: Option<u32>,
    /// Bytes that `neph reflect` sends in each of the --transfers, 1 to 1048576; other servers send their page
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_048_576), default_value = "1024", requires = "transfers")]
    pub(crate) transfer_size: u32,
    /// Store every message in the --workspace folder, as a campaign with this name for `neph report NAME`
    #[arg(long, value_name = "NAME", value_parser = recorder::parse_name)]
    pub(crate) save: Option<String>,
    #[command(flatten)]
    pub(crate) workspace: Workspace,
    /// HMAC key for authenticated STAMP (RFC 8762), read from a file (mode 0600) or an environment variable
    #[arg(long, value_name = "file:PATH|env:NAME", value_parser = value::secret)]
    pub(crate) stamp_key: Option<Secret>,
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
    const fn priority(&self) -> Priority {
        if self.normal_priority {
            Priority::Normal
        } else {
            Priority::Auto
        }
    }

    /// The privileges that the command keeps.
    fn needs(&self) -> Needs {
        let folder = self.save.as_ref().map(|_| self.workspace.folder());
        Needs::of(&Row::FLOWS)
            .bpf()
            .at_site(self.site.as_deref())
            .writes(self.output.as_deref())
            .workspace(folder.as_deref())
    }

    /// The site; `None` for this host.
    fn placement(&self) -> Option<Placement> {
        self.site.as_ref().map(Placement::with_name)
    }

    /// The number of messages of each slot; `None` until interrupted.
    fn messages(&self) -> Option<u64> {
        let messages_in = |duration: Span| {
            u64::try_from(duration.nanos() / self.interval.nanos())
                .unwrap_or(0)
                .max(1)
        };
        self.count.or_else(|| self.duration.map(messages_in))
    }

    fn criteria(&self) -> Criteria {
        Criteria {
            quorum: self.quorum,
            window: self.window,
            tolerance: self.tolerance,
            ..Criteria::after(self.timeout)
        }
    }

    /// Checks combinations of options.
    fn check(&self) -> Result<(), Failure> {
        if self.quorum > self.window {
            return Err(Failure::Usage(format!(
                "--quorum {} of --window {}: no more round trips can agree than are looked at; \
                 give a lower --quorum, or a larger --window",
                self.quorum, self.window
            )));
        }
        if self.save.is_none() && self.workspace.is_given() {
            return Err(Failure::Usage(format!(
                "--workspace {}: nothing is kept there without --save NAME; add it, or leave \
                 --workspace out",
                self.workspace.location
            )));
        }
        if self.renew.is_some_and(|renew| renew < self.interval) {
            return Err(Failure::Usage(format!(
                "--renew {} is shorter than --interval {}: a flow would end before its first message; \
                 give a longer --renew, or a shorter --interval",
                self.renew.unwrap_or_default(),
                self.interval
            )));
        }
        Ok(())
    }
}

/// Measures and shows.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    args.check()?;
    let _awake = args.awake.keep();
    let exporters = args.metrics.bind("neph flows")?;
    args.needs().restrict(&args.user)?;
    let spec = fleet::build_spec(args)?;
    check_files(&[(&spec.fleet, spec.timeout)]).map_err(Failure::usage)?;
    let stop = interrupt::stop_on_ctrl_c()?;
    transfers::check(args, &spec, &stop)?;
    let mut report = FlowsWriter::new(args.format, sink::open(args.output.as_deref(), args.force)?)
        .quiet(args.quiet);
    let recorder = recorder::FleetRecorder::new(args, &spec, &stop)?;
    let metrics = FlowsMetrics::of(args.site.as_deref(), &spec.fleet);
    let exporter = exporters.begin(metrics.clone())?;
    let fleet_sink = fleet_outcome::FleetSink {
        report: &mut report,
        recorder,
        metrics,
    };
    let mut fleet_outcome = fleet_run::run(args, spec.clone(), &stop, fleet_sink)?;
    // Measured results are reported even if no transfers could be made.
    let transfers_result = transfers::make(args, &spec, &mut fleet_outcome, &stop);
    if let Err(error) = report.end(&fleet_outcome.result) {
        transfers_result?;
        return Err(error.into());
    }
    if let Some(campaign) = &fleet_outcome.campaign {
        output::say(&recorder::stored_message(campaign, &args.workspace));
    }
    let unreported_reasons = fleet_outcome
        .result
        .no_reply_reasons
        .iter()
        .filter(|_| !fleet_outcome.is_silence_reported);
    for reason in unreported_reasons.chain(&fleet_outcome.early_end_reason) {
        output::say(&format!("neph: {reason}"));
    }
    exporter.finish();
    transfers_result?;
    Ok(
        match (stop.is_set(), fleet_outcome.result.sender_tally.replies > 0) {
            (true, _) => Outcome::Interrupted,
            (false, true) => Outcome::Done,
            (false, false) => Outcome::Nothing,
        },
    )
}
