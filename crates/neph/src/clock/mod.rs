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
    /// Each message limits the possible offsets; neph reports the middle of the offsets that remain possible, with an error bound
    Hulls,
    /// neph averages the NTP formula ((T2 - T1) + (T3 - T4)) / 2, without an error bound
    #[value(name = "four-stamps")]
    FourTimestamps,
}

/// Options of `neph clock`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "PEER: host[:port] of neph reflect (default port 8080), or udp://host[:port] of any STAMP reflector \
(default port 862).\nExit status: 0 measured, 1 nothing measured, 2 usage error, 130 interrupted by ctrl-C (prints the summary)."
)]
pub(crate) struct Args {
    /// Host whose clocks neph compares with the local clocks; it runs `neph reflect` or a STAMP reflector
    #[arg(conflicts_with = "captures")]
    peer: Option<String>,
    /// Compare the clocks of two capture files of the same packets: clock of THERE minus clock of HERE
    #[arg(long, num_args = 2, value_names = ["HERE", "THERE"])]
    captures: Vec<PathBuf>,
    /// Method that estimates the clock offset; write hulls,four-stamps for both
    #[arg(long, value_enum, value_delimiter = ',', default_value = "hulls")]
    method: Vec<Method>,
    /// Send this number of messages, then stop [default: send until ctrl-C]
    #[arg(long, short, value_name = "N", value_parser = value::positive_count, conflicts_with = "captures")]
    count: Option<u64>,
    /// Time between two messages, at least 100us; a number without a unit is in seconds
    #[arg(long, short, value_name = "TIME", value_parser = value::positive_span, default_value = "100ms", conflicts_with = "captures")]
    interval: Span,
    /// Measure for this time, such as 30s or 5min [default: until ctrl-C]
    #[arg(long, short = 'w', value_name = "TIME", value_parser = value::positive_span, conflicts_with_all = ["count", "captures"])]
    duration: Option<Span>,
    /// Time between two lines of output [default: 1s; with --captures: 1/10 of the captured time]
    #[arg(long, value_name = "TIME", value_parser = value::positive_span)]
    every: Option<Span>,
    /// Maximum change of the clock drift in 100 s that neph assumes, in ppm, 0 to 1000 [default: 2]
    #[arg(long, value_name = "PPM", value_parser = parse_ppm)]
    wander: Option<f64>,
    /// Write a figure of the clock offset over time to this file (.svg, .png or .pdf)
    #[arg(long, value_name = "FILE.svg")]
    figure: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::STREAM))]
    format: Format,
    #[command(flatten)]
    ip: IpChoice,
    /// HMAC key for authenticated STAMP (RFC 8762), read from a file (mode 0600) or an environment variable
    #[arg(long, value_name = "file:PATH|env:NAME", value_parser = value::secret)]
    stamp_key: Option<Secret>,
    #[command(flatten)]
    user: UserChoice,
    /// Run inside this network namespace of Linux, or at this site (host) of a running lab (emulated
    /// network, `neph lab up`)
    #[arg(long, value_name = "SITE", value_parser = neph_lab::namespace)]
    site: Option<String>,
}

impl Args {
    fn uses_method(&self, method: Method) -> bool {
        self.method.contains(&method)
    }

    /// Writes to standard output.
    fn writer(&self) -> ClockWriter {
        let methods = Methods {
            hulls: self.uses_method(Method::Hulls),
            four_stamps: self.uses_method(Method::FourTimestamps),
        };
        ClockWriter::new(self.format, methods, Box::new(output::data()))
    }

    /// The privileges that the command keeps.
    fn needs(&self) -> Needs {
        let needs = if self.captures.is_empty() {
            let is_fast = self.interval < Span::from_millis(1);
            Needs::of(&Row::CLOCK)
                .capability(Capability::CAP_NET_ADMIN, is_fast)
                .at_site(self.site.as_deref())
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
        (None, [first, second]) => captures::run(args, first, second),
        (None, _) => Err(Failure::usage(
            "whose clock? Name a peer where neph reflect answers (neph clock HOST), or two captures of the \
             same packets (neph clock --captures HERE THERE)",
        )),
    }
}

pub(crate) fn parse_ppm(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("'{text}' is no number"))?;
    if (0.0..=1_000.0).contains(&number) {
        return Ok(number);
    }
    Err("from 0 to 1000 ppm".to_owned())
}
