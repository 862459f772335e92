//! The command line: what is typed, what is shown, and the exit status.
//!
//! Joins the other crates and measures nothing itself. Data goes to standard output, everything
//! else to standard error.

mod cli;
mod exit;
mod interrupt;
mod output;
mod ping;
mod reflect;
mod shell;
mod value;
mod version;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::exit::{Failure, Outcome};

/// Reads the command line and carries it out.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    exit::status(run(cli))
}

fn run(cli: Cli) -> Result<Outcome, Failure> {
    match cli.command {
        Command::Ping(args) => ping::run(&args),
        Command::Reflect(args) => reflect::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    }
}
