//! The commands, in the order of a first day with neph. Each command's options stand beside what
//! it does; help, man pages and completions are made from them.

use clap::{Parser, Subcommand};

use crate::{
    agent, campaign, clock, control, demo, diagnose, execute, export, flows, gallery, health, hops,
    import, lab, list, media, ping, read, reflect, report, rr, shell, show, stress, throughput,
    tidy, trace, version, watch,
};

/// Measures latency in cloud networks, layer by layer, and says where the time went.
#[derive(Debug, Parser)]
#[command(name = "neph", version = version::VERSION, long_version = version::LONG)]
#[command(after_help = "Start with: neph demo\nManual: neph man --help, and docs/ of the source.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// A first campaign: an emulated network, measurements over it, a report; about 90 seconds.
    Demo(demo::Args),
    /// Published findings, each in its emulated network: what neph says of it, and whether it is right.
    Gallery(gallery::Args),
    /// A layered ping: application, TCP and ICMP round trips and each message's ledger.
    Ping(Box<ping::Args>),
    /// Thousands of flows to a target: which are slow, when paths change, which source port is best.
    Flows(Box<flows::Args>),
    /// The route of each flow, and all paths where routers balance by flow.
    Trace(Box<trace::Args>),
    /// Round trips of what captures hold, without sending a packet: path and programs told apart.
    Read(read::Args),
    /// Round trips of what passes an interface, live, without sending a packet.
    Watch(Box<watch::Args>),
    /// How far a peer's clock is from ours, and how fast they drift apart: each with its bound.
    Clock(Box<clock::Args>),
    /// What each part of a path adds to each packet, from captures at two to eight points of it.
    Hops(Box<hops::Args>),
    /// Answers probes: WebSocket, HTTP, TCP and STAMP on one port.
    Reflect(Box<reflect::Args>),
    /// Checks whether a reflector or a controller answers: exit status 0 or 1, for health checks.
    Health(health::Args),
    /// Checks a plan: every mistake with its line, column and remedy.
    Check(campaign::PlanArgs),
    /// Shows what a plan would do: scenarios, order, messages, bytes, minutes.
    Plan(campaign::PreviewArgs),
    /// Carries a plan out.
    Run(campaign::RunArgs),
    /// Goes on with a campaign after ctrl-C, a failure or a crash.
    Resume(campaign::ResumeArgs),
    /// Writes a campaign's report: page, figures, tables.
    Report(report::Args),
    /// Names the causes that a campaign's measurements show, each with evidence and remedy.
    Diagnose(diagnose::Args),
    /// Lists campaigns, or the experiments of one.
    List(list::Args),
    /// Shows everything that is known about a campaign or an experiment.
    Show(show::Args),
    /// Replaces messages that were kept long enough by a histogram for each minute, and removes old histograms.
    Tidy(tidy::Args),
    /// Writes a campaign's messages as CSV, JSON lines, Parquet, or a Latency Tester's folder.
    Export(export::Args),
    /// Reads a Latency Tester's output folder, so that old measurements get the new report.
    Import(import::Args),
    /// Emulated networks: check, plan, up, run, shell, status, verify, predict, truth, down, list.
    Lab(lab::Args),
    /// Goodput of a path over TCP or UDP, and what limits it.
    Throughput(Box<throughput::Args>),
    /// Transactions per second and round-trip times: one request at a time, as fast as replies come.
    Rr(Box<rr::Args>),
    /// Media streams over RTP: bit rate, jitter, loss, late frames, stalls, estimated video quality.
    Media(Box<media::Args>),
    /// Load for machines that are measured: a share of their processors' time, or traffic.
    Stress(stress::Args),
    /// The controller of agents at other sites: serve, invite, revoke, schedule.
    Control(control::Args),
    /// Lists the agents of a controller, or shows all that is known of one.
    Agents(control::AgentsArgs),
    /// Carries out orders of a controller at this host, until ctrl-C.
    Agent(agent::Args),
    /// Prints a completion script for a shell.
    Completions(shell::CompletionArgs),
    /// Writes the man pages.
    Man(shell::ManArgs),
    /// Carries out an order that another neph wrote.
    #[command(hide = true)]
    Execute(execute::Args),
}
