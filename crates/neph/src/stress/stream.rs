//! `neph stress stream`: a constant bit rate over UDP, in frames like a video.
//!
//! The packets are STAMP requests. The reflector returns each with the number that it received, so
//! loss on the forward and on the reverse path is distinguished.

use clap::Args as ClapArgs;
use neph_agent::UdpResult;
use neph_documents::generated_load::StreamRow;
use neph_model::{BitRate, LoadOrder, LoadWork, Span};

use super::load_report::{LoadReportOptions, write_rows};
use super::load_target;
use crate::exit::{Failure, Outcome};
use crate::privileges::UserChoice;
use crate::{format, output, value};
use neph_documents::Format;

/// Options of `neph stress stream`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "TARGET: host[:port] where neph reflect runs (default port 8080).\n\
Exit status: 0 rate reached within 3 percentage points, 1 rate missed or no replies at the end, 2 usage error, 130 interrupted by ctrl-C (prints the results so far)."
)]
pub(super) struct Args {
    /// Host where `neph reflect` receives the traffic and returns it: host[:port], default port 8080
    target: String,
    /// Payload bit rate in each direction
    #[arg(long, value_name = "RATE", default_value = "1450kbit/s", value_parser = load_target::parse_rate)]
    rate: BitRate,
    /// Generate the load for this time, such as 30s or 5min
    #[arg(short = 'w', long, value_name = "TIME", default_value = "1min",
          value_parser = value::positive_span)]
    duration: Span,
    /// Print a line on standard error as soon as the load runs, so that a measurement can start
    #[arg(long)]
    announce: bool,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
    #[command(flatten)]
    pub(super) user: UserChoice,
}

impl Args {
    /// The options as an order.
    pub(super) fn order(&self) -> Result<LoadOrder, Failure> {
        let work = LoadWork::Stream {
            to: load_target::parse_target(&self.target)?,
            rate: self.rate,
        };
        Ok(LoadOrder {
            work,
            duration: self.duration,
        })
    }

    pub(super) const fn report_options(&self) -> LoadReportOptions {
        LoadReportOptions {
            format: self.format,
            announce: self.announce,
            capacity: None,
        }
    }
}

/// Reports the results.
pub(super) fn show(
    udp_result: &UdpResult,
    report_options: &LoadReportOptions,
    is_stopped: impl Fn() -> bool,
) -> Result<Outcome, Failure> {
    write_rows(&[StreamRow::from(udp_result)], report_options.format)?;
    if is_stopped() {
        return Ok(Outcome::Interrupted);
    }
    let Some(reason) = &udp_result.fault else {
        return Ok(Outcome::Done);
    };
    output::say(&format!("neph stress: {reason}"));
    Ok(Outcome::Nothing)
}
