//! `neph stress`: load for machines and networks that are measured.
//!
//! Owns the words; each kind of load is a file of its own.

mod aim;
mod announce;
mod cpu;
mod flow;
mod stream;
mod telling;

use clap::{Args as ClapArgs, Subcommand};
use neph_model::{LoadOrder, LoadSpec};

use crate::exit::{Failure, Outcome};
use crate::privileges::{Needs, Row};

/// Options of `neph stress`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Hashes on some cores, each busy for a given share of the time
    Cpu(cpu::Args),
    /// Sends cross traffic over TCP to a reflector: bulk, or requests and replies in turn
    Flow(flow::Args),
    /// Sends a constant bit-rate to a reflector in UDP packets, in frames as a video has them
    Stream(stream::Args),
}

/// Makes a load that was ordered: says when it works, and writes what it did as JSON.
pub(crate) fn carry_out(order: &LoadOrder) -> Result<Outcome, Failure> {
    let command = match &order.load {
        LoadSpec::Cpu(share) => Command::Cpu(cpu::Args::ordered(*share, order.duration)),
        LoadSpec::Flow { to, rate } => {
            Command::Flow(flow::Args::ordered(to, *rate, order.duration))
        }
        LoadSpec::Stream { to, rate } => {
            Command::Stream(stream::Args::ordered(to, *rate, order.duration))
        }
    };
    run(&Args { command })
}

/// Makes the load.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let user = match &args.command {
        Command::Cpu(args) => &args.user,
        Command::Flow(args) => &args.user,
        Command::Stream(args) => &args.user,
    };
    Needs::of(&Row::STRESS).restrict(user)?;
    match &args.command {
        Command::Cpu(args) => cpu::run(args),
        Command::Flow(args) => flow::run(args),
        Command::Stream(args) => stream::run(args),
    }
}
