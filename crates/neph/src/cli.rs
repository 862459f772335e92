//! The commands, in the order in which a new user needs them.
//!
//! Owns the names and first lines of commands. The file of a command has its options. Both are the
//! source of help, man pages and completions.

use clap::{Parser, Subcommand};

use crate::{
    agent, campaign, clock, control, demo, diagnose, execute, explain, export, flows, gallery,
    health, hops, import, lab, list, load, media, ping, read, reflect, report, rr, shell, show,
    size, stress, throughput, tidy, trace, version, watch,
};

/// Measures network latency layer by layer, and reports where the time goes.
#[derive(Debug, Parser)]
#[command(name = "neph", version = version::VERSION, long_version = version::LONG_VERSION)]
#[command(
    after_help = "First try: neph demo\nGuides and reference: docs/ in the source tree. Man pages: neph man --output FOLDER."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measures a small emulated network and writes a report: a first try of neph (about 90 s).
    Demo(demo::Args),
    /// Reproduces published latency findings in emulated networks, each with a control run without the cause.
    Gallery(gallery::Args),
    /// Sends messages to a target and measures the latency of each one by layer: application, TCP, ICMP.
    Ping(Box<ping::Args>),
    /// Measures many flows to a target, and reports slow flows, path changes and the best source ports.
    Flows(Box<flows::Args>),
    /// Traces the route of each flow to a target, and finds all load-balanced paths.
    Trace(Box<trace::Args>),
    /// Reports RTTs from capture files (pcap), split into network path and server processing time.
    Read(read::Args),
    /// Captures packets at an interface and reports their RTTs live, with alarms; sends no packets.
    Watch(Box<watch::Args>),
    /// Measures offset and drift of another host's clock against the local clock, with error bounds.
    Clock(Box<clock::Args>),
    /// Reports delay and loss of each segment of a path, from captures at 2 to 8 points.
    Hops(Box<hops::Args>),
    /// Runs the server that answers neph's probes until ctrl-C: WebSocket, HTTP, TCP and STAMP on one port.
    Reflect(Box<reflect::Args>),
    /// Checks whether a running `neph reflect` or `neph control serve` responds (exit status 0: yes, 1: no).
    Health(health::Args),
    /// Checks a plan file for mistakes, and lists each with its line and remedy.
    Check(campaign::PlanArgs),
    /// Shows what `neph run` would do with a plan file: scenarios, their order, messages, bytes, duration.
    Plan(campaign::PreviewArgs),
    /// Runs a plan file: measures all of its scenarios, stores the messages and writes a report.
    Run(campaign::RunArgs),
    /// Continues a campaign (one run of a plan) after ctrl-C, a failure or a crash.
    Resume(campaign::ResumeArgs),
    /// Writes the report of a campaign (one run of a plan): HTML page, figures, tables.
    Report(report::Args),
    /// Lists the root causes of latency in a campaign (one run of a plan), with evidence and remedy.
    Diagnose(diagnose::Args),
    /// Lists the stored campaigns (runs of plans), or the experiments of one campaign.
    List(list::Args),
    /// Shows all details of one stored campaign or of one of its experiments.
    Show(show::Args),
    /// Saves disk space: replaces old stored messages by one histogram per minute, and later deletes the histograms.
    Tidy(tidy::Args),
    /// Exports the stored messages of a campaign as CSV, JSON lines, Parquet, or a folder for the program Latency Tester.
    Export(export::Args),
    /// Imports measurements from an output folder of the program Latency Tester.
    Import(import::Args),
    /// Emulates networks on this host: check, plan, up, run, shell, status, verify, predict, truth,
    /// down, list.
    Lab(lab::Args),
    /// Measures goodput over TCP or UDP to a neph server, and reports what limits it.
    Throughput(Box<throughput::Args>),
    /// Measures transactions (a request, then its reply) per second and their RTT, to a neph server.
    Rr(Box<rr::Args>),
    /// Sends a load of HTTP requests to a service, and measures its response times and errors.
    Load(Box<load::Args>),
    /// Computes how many servers or pods a rate and a latency goal need.
    Size(size::Args),
    /// Receives video over RTP and measures bit rate, jitter, loss, late frames, stalls and video quality.
    Media(Box<media::Args>),
    /// Generates background load for measurements: CPU load on this host, or traffic to another host.
    Stress(stress::Args),
    /// Runs the controller that measures with agents on other hosts: serve, invite, revoke, schedule.
    Control(control::Args),
    /// Lists the agents of a controller, or shows one of them.
    Agents(control::AgentsArgs),
    /// Runs an agent until ctrl-C: a controller orders it to measure from this host.
    Agent(agent::Args),
    /// Explains a warning of neph by its code, such as W012, or lists all warnings.
    Explain(explain::Args),
    /// Prints a completion script for a shell.
    Completions(shell::CompletionArgs),
    /// Writes the man pages of neph.
    Man(shell::ManArgs),
    /// Carries out an order from another neph process.
    #[command(hide = true)]
    Execute(execute::Args),
}

#[cfg(test)]
mod docs_tests;
