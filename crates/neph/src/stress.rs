//! `neph stress`: background load for measured hosts and networks.
//!
//! Owns the command; each kind of load has a separate file. neph-agent generates the loads for this
//! command, for orders and for executors.

mod cpu;
mod flow;
mod load_report;
mod load_target;
mod stream;

use clap::{Args as ClapArgs, Subcommand};
use neph_agent::GeneratedLoad;
use neph_model::LoadOrder;

use crate::exit::{Failure, Outcome};
use crate::interrupt;
use crate::privileges::{Needs, Row, UserChoice};
use load_report::LoadReportOptions;

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
    generate(
        order,
        &LoadReportOptions::FOR_ORDERS,
        &UserChoice::default(),
    )
}

/// Generates the load.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.command {
        Command::Cpu(args) => generate(&args.order(), &args.report_options(), &args.user),
        Command::Flow(args) => generate(&args.order()?, &args.report_options(), &args.user),
        Command::Stream(args) => generate(&args.order()?, &args.report_options(), &args.user),
    }
}

/// Generates a load for its duration or until ctrl-C, and shows the result.
fn generate(
    order: &LoadOrder,
    report_options: &LoadReportOptions,
    user: &UserChoice,
) -> Result<Outcome, Failure> {
    Needs::of(&Row::STRESS).restrict(user)?;
    let ready_load = load_target::prepare_load(order)?;
    let overcommit = cpu::detect_overcommit(order, ready_load.thread_count());
    let stop = interrupt::stop_on_ctrl_c()?;
    let result = ready_load.run(&|| report_options.announce_start(), &stop);
    let is_stopped = || stop.is_set();
    match result.map_err(cpu::to_failure)? {
        GeneratedLoad::Cpu(result) => {
            cpu::show(&result, report_options, overcommit.as_ref(), is_stopped)
        }
        GeneratedLoad::Tcp(result) => flow::show(result, report_options, is_stopped),
        GeneratedLoad::Udp(result) => stream::show(&result, report_options, is_stopped),
    }
}
