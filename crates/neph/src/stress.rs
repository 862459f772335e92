//! `neph stress`: background load for measured hosts and networks.
//!
//! Owns the command; each kind of load has a separate file. neph-agent generates the loads for this
//! command, for orders and for executors.

mod aim;
mod cpu;
mod flow;
mod reporting;
mod stream;

use clap::{Args as ClapArgs, Subcommand};
use neph_agent::GeneratedLoad;
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
    /// Generates CPU load on some or all cores, each busy for a given share of the time
    Cpu(cpu::Args),
    /// Sends cross traffic over TCP to a reflector: bulk data, or requests and replies
    Flow(flow::Args),
    /// Sends UDP traffic with a constant bit rate, in frames like a video, to a reflector, which returns it
    Stream(stream::Args),
}

/// Generates an ordered load: reports when it is established, and writes the result as JSON.
pub(crate) fn carry_out(order: &LoadOrder) -> Result<Outcome, Failure> {
    make(order, &LoadReporting::ORDERED, &UserChoice::default())
}

/// Generates the load.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.command {
        Command::Cpu(args) => make(&args.order(), &args.reporting(), &args.user),
        Command::Flow(args) => make(&args.order()?, &args.reporting(), &args.user),
        Command::Stream(args) => make(&args.order()?, &args.reporting(), &args.user),
    }
}

/// Generates a load for its duration or until ctrl-C, and shows the result.
fn make(
    order: &LoadOrder,
    reporting: &LoadReporting,
    user: &UserChoice,
) -> Result<Outcome, Failure> {
    Needs::of(&Row::STRESS).restrict(user)?;
    let ready = aim::ready(order)?;
    let overcommit = cpu::overcommit(order, ready.thread_count());
    let stop = interrupt::stop_on_ctrl_c()?;
    let done = ready.run(&|| reporting.works(), &stop);
    let is_stopped = || stop.is_set();
    match done.map_err(cpu::failure)? {
        GeneratedLoad::Cpu(done) => cpu::show(&done, reporting, overcommit.as_ref(), is_stopped),
        GeneratedLoad::Tcp(done) => flow::show(done, reporting, is_stopped),
        GeneratedLoad::Udp(done) => stream::show(&done, reporting, is_stopped),
    }
}
