//! `neph clock`: offset, drift and steps of a peer's clock, from messages of neph or from two
//! captures of any traffic.
//!
//! Connects the sources of messages ([`live`], [`captures`]), the estimation (neph-stats) and the
//! output.

pub(crate) mod captures;
mod figure;
mod live;

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use neph_model::Span;
use neph_probe::Secret;
use neph_stats::ClockNature;
use neph_sys::restrict::Capability;

use crate::exit::{Failure, Outcome};
use crate::ip_choice::IpChoice;
use crate::privileges::{Needs, Row, UserChoice};
use crate::sink::Force;
use crate::{format, output, value};
use neph_documents::Format;
use neph_documents::clock::{ClockWriter, Methods};

/// The estimation method of the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Limits from all messages in both directions; with an error bound
    Hulls,
    /// Mean of T2 - T1 - RTT / 2; without an error bound
    FourStamps,
}

/// Options of `neph clock`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "PEER: a host with neph reflect, host[:port] (default port 8080), or a STAMP reflector, udp://host[:port] \
(default port 862).\nExit status: 0 measured, 1 nothing measured, 2 usage, 130 interrupted (with the summary)."
)]
pub(crate) struct Args {
    /// Peer whose clocks are compared with the local clocks
    #[arg(conflicts_with = "captures")]
    peer: Option<String>,
    /// Compare the clocks of two captures of the same packets: offset of the second minus the first
    #[arg(long, num_args = 2, value_names = ["HERE", "THERE"])]
    captures: Vec<PathBuf>,
    /// Estimation method; for both: hulls,four-stamps
    #[arg(long, value_enum, value_delimiter = ',', default_value = "hulls")]
    method: Vec<Method>,
    /// Number of messages to send [default: until ctrl-C]
    #[arg(long, short, value_name = "N", value_parser = value::at_least_one, conflicts_with = "captures")]
    count: Option<u64>,
    /// Time between two messages, at least 100us; a number without a unit is in seconds
    #[arg(long, short, value_name = "TIME", value_parser = value::positive_span, default_value = "100ms", conflicts_with = "captures")]
    interval: Span,
    /// Run for this duration [default: until ctrl-C]
    #[arg(long, short = 'w', value_name = "TIME", value_parser = value::positive_span, conflicts_with_all = ["count", "captures"])]
    duration: Option<Span>,
    /// Time between two output lines [default: 1s; captures: a tenth of their duration]
    #[arg(long, value_name = "TIME", value_parser = value::positive_span)]
    every: Option<Span>,
    /// Maximum change of the drift within 100 s, 0 to 1000 ppm [default: 2]
    #[arg(long, value_name = "PPM", value_parser = parts_per_million)]
    wander: Option<f64>,
    /// Draw the offset over time into this file (.svg, .png or .pdf)
    #[arg(long, value_name = "FILE.svg")]
    figure: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::STREAM))]
    format: Format,
    #[command(flatten)]
    ip: IpChoice,
    /// Key of authenticated STAMP, from a file (mode 0600) or an environment variable
    #[arg(long, value_name = "file:PATH|env:NAME", value_parser = value::secret)]
    stamp_key: Option<Secret>,
    #[command(flatten)]
    user: UserChoice,
    /// Run at this site of a lab, or in this network namespace
    #[arg(long, value_name = "SITE", value_parser = neph_lab::namespace)]
    site: Option<String>,
}

impl Args {
    fn asks_for(&self, method: Method) -> bool {
        self.method.contains(&method)
    }

    /// Writes to standard output.
    fn writer(&self) -> ClockWriter {
        let methods = Methods {
            hulls: self.asks_for(Method::Hulls),
            four_stamps: self.asks_for(Method::FourStamps),
        };
        ClockWriter::new(self.format, methods, Box::new(output::data()))
    }

    /// The privileges that the command keeps.
    fn needs(&self) -> Needs {
        let needs = if self.captures.is_empty() {
            let is_fast = self.interval < Span::from_millis(1);
            Needs::of(&Row::CLOCK)
                .capability(Capability::CAP_NET_ADMIN, is_fast)
                .at(self.site.as_deref())
        } else {
            Needs::of(&Row::CLOCK_CAPTURES).without_connections()
        };
        let captures = self.captures.iter();
        captures
            .fold(needs, |needs, capture| needs.reads(Some(capture)))
            .writes(self.figure.as_deref())
    }

    /// Assumptions about the clocks.
    fn nature(&self) -> ClockNature {
        neph_capture::clocks::nature(self.wander)
    }
}

/// Measures and shows.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    args.needs().restrict(&args.user)?;
    match (&args.peer, args.captures.as_slice()) {
        (Some(peer), _) => live::run(args, peer),
        (None, [here, there]) => captures::run(args, here, there),
        (None, _) => Err(Failure::usage(
            "whose clock? Name a peer where neph reflect answers (neph clock HOST), or two captures of the \
             same packets (neph clock --captures HERE THERE)",
        )),
    }
}

pub(crate) fn parts_per_million(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("'{text}' is no number"))?;
    if (0.0..=1_000.0).contains(&number) {
        return Ok(number);
    }
    Err("from 0 to 1000 ppm".to_owned())
}
