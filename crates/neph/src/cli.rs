//! The commands, in the order in which a new user needs them.
//!
//! Owns the names and first lines of commands. The file of a command has its options. Both are the
//! source of help, man pages and completions.

use clap::{Parser, Subcommand};

use crate::{
    agent, campaign, clock, control, demo, diagnose, execute, explain, export, flows, gallery,
    health, hops, import, lab, list, media, ping, read, reflect, report, rr, shell, show, stress,
    throughput, tidy, trace, version, watch,
};

/// Measures network latency layer by layer, and reports where the time goes.
#[derive(Debug, Parser)]
#[command(name = "neph", version = version::VERSION, long_version = version::LONG)]
#[command(
    after_help = "First try: neph demo\nGuides and reference: docs/ in the source tree. Man pages: neph man --output FOLDER."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measures an emulated network and writes a report, as a first try (about 90 s).
    Demo(demo::Args),
    /// Reproduces published findings, each in an emulated network, with a control.
    Gallery(gallery::Args),
    /// Measures the latency of a target by layer (application, TCP, ICMP), for every message.
    Ping(Box<ping::Args>),
    /// Measures many flows to a target: slow flows, path changes, the best source port.
    Flows(Box<flows::Args>),
    /// Traces the route of each flow, and all paths behind load balancers.
    Trace(Box<trace::Args>),
    /// Reports passive RTT from captures, split into network path and server processing.
    Read(read::Args),
    /// Reports passive RTT at an interface, live, with alarms.
    Watch(Box<watch::Args>),
    /// Measures clock offset and drift of a peer, with error bounds.
    Clock(Box<clock::Args>),
    /// Reports delay and loss of each segment of a path, from captures at 2 to 8 points.
    Hops(Box<hops::Args>),
    /// Answers probes until ctrl-C: WebSocket, HTTP, TCP and STAMP on one port.
    Reflect(Box<reflect::Args>),
    /// Checks whether a reflector or a controller answers (exit status 0 or 1).
    Health(health::Args),
    /// Checks a plan and lists every mistake with its line and remedy.
    Check(campaign::PlanArgs),
    /// Shows what a plan would run: scenarios, order, messages, bytes, duration.
    Plan(campaign::PreviewArgs),
    /// Runs a plan: measures all its scenarios and writes a report.
    Run(campaign::RunArgs),
    /// Continues a campaign after ctrl-C, a failure or a crash.
    Resume(campaign::ResumeArgs),
    /// Writes the report of a campaign: page, figures, tables.
    Report(report::Args),
    /// Lists the root causes of a campaign's latency, with evidence and remedy.
    Diagnose(diagnose::Args),
    /// Lists campaigns, or the experiments of one.
    List(list::Args),
    /// Shows a campaign or an experiment in full.
    Show(show::Args),
    /// Replaces old messages by a histogram per minute, and removes old histograms.
    Tidy(tidy::Args),
    /// Exports the messages of a campaign: CSV, JSON lines, Parquet, Latency Tester folder.
    Export(export::Args),
    /// Imports an output folder of the Latency Tester.
    Import(import::Args),
    /// Emulates networks: check, plan, up, run, shell, status, verify, predict, truth, down, list.
    Lab(lab::Args),
    /// Measures goodput over TCP or UDP, and what limits it.
    Throughput(Box<throughput::Args>),
    /// Measures transactions per second and RTT of requests and replies in turn.
    Rr(Box<rr::Args>),
    /// Measures media streams over RTP: bit rate, jitter, loss, late frames, stalls, video quality.
    Media(Box<media::Args>),
    /// Generates background load: CPU time or traffic.
    Stress(stress::Args),
    /// Runs the controller of agents at other sites: serve, invite, revoke, schedule.
    Control(control::Args),
    /// Lists the agents of a controller, or shows one of them.
    Agents(control::AgentsArgs),
    /// Carries out the orders of a controller on this host, until ctrl-C.
    Agent(agent::Args),
    /// Explains a warning by its code, or lists all warnings.
    Explain(explain::Args),
    /// Prints a completion script for a shell.
    Completions(shell::CompletionArgs),
    /// Writes the man pages.
    Man(shell::ManArgs),
    /// Carries out an order from another neph process.
    #[command(hide = true)]
    Execute(execute::Args),
}

#[cfg(test)]
mod docs_tests;
