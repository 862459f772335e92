//! The command line: arguments, output and exit status.
//!
//! Connects the other crates and measures nothing itself. Data goes to standard output, everything
//! else to standard error.

mod agent;
mod agent_points;
mod alarm;
mod approval;
mod awake;
mod campaign;
mod cli;
mod clock;
mod congestion;
mod control;
mod controller_commands;
mod demo;
mod diagnose;
mod execute;
mod exit;
mod explain;
mod export;
mod flows;
mod format;
mod gallery;
mod health;
mod hops;
mod import;
mod interrupt;
mod ip_choice;
mod lab;
mod list;
mod live_point_options;
mod load;
mod log_output;
mod media;
mod metrics;
mod operator;
mod output;
mod packet_filter;
mod ping;
mod privileges;
mod read;
mod reflect;
mod report;
mod resolving;
mod rr;
mod service;
mod shell;
mod shipped;
mod show;
mod sink;
mod size;
mod stress;
mod text_file;
mod throughput;
mod tidy;
mod time_zone;
mod topology;
mod trace;
mod value;
mod version;
mod watch;
mod workspace;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command};
use crate::exit::{Failure, Outcome};

/// Reads the command line and carries it out.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage_status(&error),
    };
    log_output::install_subscriber(is_service(&cli.command));
    exit::status(run(cli))
}

/// Whether the command runs until it is stopped, and logs events.
fn is_service(command: &Command) -> bool {
    match command {
        Command::Agent(_) | Command::Reflect(_) => true,
        Command::Control(args) => args.is_service(),
        _ => false,
    }
}

fn run(cli: Cli) -> Result<Outcome, Failure> {
    match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Gallery(args) => gallery::run(&args),
        Command::Ping(args) => ping::run(&args),
        Command::Flows(args) => flows::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Read(args) => read::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Clock(args) => clock::run(&args),
        Command::Hops(args) => hops::run(&args),
        Command::Reflect(args) => reflect::run(&args),
        Command::Health(args) => health::run(&args),
        Command::Check(args) => campaign::check(&args),
        Command::Plan(args) => campaign::preview(&args),
        Command::Run(args) => campaign::run(&args),
        Command::Resume(args) => campaign::resume(&args),
        Command::Report(args) => report::run(&args),
        Command::Diagnose(args) => diagnose::run(&args),
        Command::List(args) => list::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Tidy(args) => tidy::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Throughput(args) => throughput::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Size(args) => size::run(&args),
        Command::Rr(args) => rr::run(&args),
        Command::Media(args) => media::run(&args),
        Command::Stress(args) => stress::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Man(args) => shell::man(&args, Cli::command()),
        Command::Control(args) => control::run(&args),
        Command::Agents(args) => control::agents(&args),
        Command::Agent(args) => agent::run(&args),
        Command::Execute(args) => execute::run(&args),
    }
}
