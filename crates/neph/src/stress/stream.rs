//! `neph stress stream`: a constant bit-rate in UDP packets, in frames as a video has them.
//!
//! The packets are STAMP requests. A reflector sends each back with the number that it received:
//! loss on the forward path and on the reverse path is distinguished.

use clap::Args as ClapArgs;
use neph_agent::StreamDone;
use neph_documents::generated::StreamRow;
use neph_model::{BitRate, LoadOrder, LoadWork, Span};

use super::aim;
use super::reporting::{LoadReporting, write};
use crate::exit::{Failure, Outcome};
use crate::privileges::UserChoice;
use crate::{format, output, value};
use neph_documents::Format;

/// Options of `neph stress stream`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "TARGET: where neph reflect answers, host[:port] (8080 unless another is named).\n\
Exit status: 0 sent within 3 points of its rate and answered to the end, 1 not sent so or not answered, 2 usage, 130 interrupted (with what was sent)."
)]
pub(super) struct Args {
    /// The reflector that receives it, and sends it back
    target: String,
    /// Payload that is sent, each way
    #[arg(long, value_name = "RATE", default_value = "1450kbit/s", value_parser = aim::some_rate)]
    rate: BitRate,
    /// Stop after this long
    #[arg(short = 'w', long, value_name = "TIME", default_value = "1min",
          value_parser = value::positive_span)]
    duration: Span,
    /// Say on standard error when the load works: each core at its target, an answer on each
    /// connection
    #[arg(long)]
    announce: bool,
    /// How to write what was sent
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
    #[command(flatten)]
    pub(super) user: UserChoice,
}

impl Args {
    /// What was typed, as an order.
    pub(super) fn order(&self) -> Result<LoadOrder, Failure> {
        let work = LoadWork::Stream {
            to: aim::target(&self.target)?,
            rate: self.rate,
        };
        Ok(LoadOrder {
            work,
            duration: self.duration,
        })
    }

    pub(super) const fn reporting(&self) -> LoadReporting {
        LoadReporting {
            format: self.format,
            announce: self.announce,
            capacity: None,
        }
    }
}

/// Reports what was sent.
pub(super) fn show(
    done: &StreamDone,
    reporting: &LoadReporting,
    is_stopped: impl Fn() -> bool,
) -> Result<Outcome, Failure> {
    write(&[StreamRow::from(done)], reporting.format)?;
    if is_stopped() {
        return Ok(Outcome::Interrupted);
    }
    let Some(why) = &done.fault else {
        return Ok(Outcome::Done);
    };
    output::say(&format!("neph stress: {why}"));
    Ok(Outcome::Nothing)
}
