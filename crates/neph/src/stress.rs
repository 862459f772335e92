//! `neph stress`: load for machines and networks that are measured.
//!
//! Owns the words; each kind of load has its own file. neph-agent generates the loads, for this command,
//! for orders and for executors.

mod aim;
mod cpu;
mod flow;
mod reporting;
mod stream;

use clap::{Args as ClapArgs, Subcommand};
use neph_agent::LoadDone;
use neph_model::LoadOrder;

use crate::exit::{Failure, Outcome};
use crate::interrupt;
use crate::privileges::{Needs, Row, UserChoice};
use reporting::LoadReporting;

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

/// Makes a load that was ordered: prints when it works, and writes what it did as JSON.
pub(crate) fn carry_out(order: &LoadOrder) -> Result<Outcome, Failure> {
    make(order, &LoadReporting::ORDERED, &UserChoice::default())
}

/// Makes the load.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.command {
        Command::Cpu(args) => make(&args.order(), &args.reporting(), &args.user),
        Command::Flow(args) => make(&args.order()?, &args.reporting(), &args.user),
        Command::Stream(args) => make(&args.order()?, &args.reporting(), &args.user),
    }
}

/// Makes a load until its time is over or ctrl-C, and shows what it did.
fn make(
    order: &LoadOrder,
    reporting: &LoadReporting,
    user: &UserChoice,
) -> Result<Outcome, Failure> {
    Needs::of(&Row::STRESS).restrict(user)?;
    let ready = aim::ready(order)?;
    let overcommit = cpu::overcommit(order, ready.threads());
    let stop = interrupt::stop_on_ctrl_c()?;
    let done = ready.run(&|| reporting.works(), &stop);
    let is_stopped = || stop.is_set();
    match done.map_err(cpu::failure)? {
        LoadDone::Cpu(done) => cpu::show(&done, reporting, overcommit.as_ref(), is_stopped),
        LoadDone::Flow(done) => flow::show(done, reporting, is_stopped),
        LoadDone::Stream(done) => stream::show(&done, reporting, is_stopped),
    }
}
