//! `neph stress`: load for machines that are measured.
//!
//! Owns the words; each kind of load is a file of its own.

mod cpu;
mod duty;

use clap::{Args as ClapArgs, Subcommand};

use crate::exit::{Failure, Outcome};

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
}

/// Makes the load.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.command {
        Command::Cpu(args) => cpu::run(args),
    }
}
