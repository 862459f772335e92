//! `neph control` and `neph agents`: the controller of agents at a distance, who they are, and its schedules.
//!
//! Owns the commands. What a controller does is neph-control's.

mod agents;
mod campaigns;
mod interference;
mod invite;
mod schedule;
mod tidying;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use neph_agent::remote::{ControllerAddress, Role};
use neph_control::{Controller, EnrolledAgent, Registry, Runner, RunnerFolder, write_nats_config};
use neph_documents::agents::OperatorRow;
use neph_documents::{Format, rows};
use neph_model::{AgentName, Wall};
use neph_sys::{clock, files};
use neph_text::counted::counted;
use serde::Serialize;

use crate::exit::{Failure, Outcome};
use crate::metrics::MetricsArgs;
use crate::metrics::control::ControlMetrics;
use crate::service::Service;
use crate::tidy::RetentionArgs;
use crate::{format, interrupt, output, value};
pub(crate) use agents::{Args as AgentsArgs, run as agents};
use campaigns::StoredCampaigns;
use tidying::Tidying;

/// How often ctrl-C is looked for.
const PATIENCE: Duration = Duration::from_millis(50);
/// Schedules are looked at each second: after so many looks for ctrl-C.
const TURN_EVERY: u32 = 20;
/// How long a controller that ends waits for its runs.
const LAST_WAIT: Duration = Duration::from_secs(40);

/// Where a controller's folder is, unless another is named.
const CONTROL_FOLDER: &str = ".neph-control";

/// The folder of a controller.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ControlFolder {
    /// Folder of the controller: its keys, its agents and its schedules
    #[arg(
        long = "control",
        value_name = "FOLDER",
        env = "NEPH_CONTROL",
        default_value = CONTROL_FOLDER
    )]
    folder: PathBuf,
}

/// Options of `neph control`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the controller until ctrl-C: agents connect to it, campaigns reach them through it.
    Serve(ServeArgs),
    /// Writes an invitation: one line, with which one agent or operator enrols within an hour.
    Invite(invite::Args),
    /// Takes the rights of an agent or operator away; one that is connected is cut off within seconds.
    Revoke(NameArgs),
    /// Lists operators: who may start campaigns from other hosts.
    Operators(OperatorsArgs),
    /// Starts a plan's campaign at intervals, by the controller that runs; without a plan: lists schedules.
    Schedule(schedule::Args),
    /// Finds out which circuits of a plan disturb each other: measures them alone and at the same time.
    Interference(Box<interference::Args>),
    /// Writes the configuration of a NATS server that carries messages between agents and the controller.
    Nats(NatsArgs),
}

#[derive(Debug, ClapArgs)]
struct ServeArgs {
    /// Address and port to listen on, TCP; [::] is all addresses of IPv6 and IPv4
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "[::]:7443", value_parser = value::listening)]
    listen: SocketAddr,
    /// A bus at which agents reach the controller too: nats://HOST:PORT, several servers separated by commas
    #[arg(long, value_name = "nats://HOST:PORT")]
    bus: Option<ControllerAddress>,
    #[command(flatten)]
    folder: ControlFolder,
    #[command(flatten)]
    retention: RetentionArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
}

#[derive(Debug, ClapArgs)]
struct NatsArgs {
    /// Names and addresses by which agents reach the server; for its certificate
    #[arg(long = "name", value_name = "HOST", required = true)]
    names: Vec<String>,
    /// Where the server listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:4222", value_parser = value::listening)]
    listen: SocketAddr,
    /// Folder for the configuration, the server's certificate and its key; nats in the controller's folder unless
    /// another is named
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    folder: ControlFolder,
}

#[derive(Debug, ClapArgs)]
struct NameArgs {
    /// The agent or operator: 1 to 63 lower-case letters, digits and hyphens
    name: AgentName,
    /// An operator, who starts campaigns from another host, instead of an agent
    #[arg(long)]
    operator: bool,
    #[command(flatten)]
    folder: ControlFolder,
}

#[derive(Debug, ClapArgs)]
struct OperatorsArgs {
    #[command(flatten)]
    folder: ControlFolder,
    /// How to write the list
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
}

/// Writes a document: its text, or JSON.
fn write_document<D: Serialize>(
    document: &D,
    text: fn(&D) -> String,
    format: Format,
) -> Result<(), Failure> {
    let mut out = output::data();
    if format == Format::Text {
        out.write_all(text(document).as_bytes())?;
    } else {
        rows::pretty(document, &mut out)?;
    }
    out.flush()?;
    Ok(())
}

fn now() -> Wall {
    Wall::from_unix_nanos(clock::wall().0)
}

/// Carries the command out.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.command {
        Command::Serve(args) => serve(args),
        Command::Schedule(args) => schedule::run(args),
        Command::Interference(args) => interference::run(args),
        Command::Nats(args) => nats(args),
        Command::Invite(args) => invite::run(args),
        Command::Revoke(args) => revoke(args),
        Command::Operators(args) => operators(args),
    }
}

fn serve(args: &ServeArgs) -> Result<Outcome, Failure> {
    let stop = interrupt::stop_on_ctrl_c()?;
    // A connection is a file.
    files::raise_limit().map_err(Failure::refused)?;
    let mut service = Service::find("control");
    let folder = &args.folder.folder;
    let nats = match &args.bus {
        None => None,
        Some(ControllerAddress::Nats(servers)) => Some(servers.as_str()),
        Some(other) => {
            return Err(Failure::usage(format!(
                "--bus {other}: write nats://HOST:PORT"
            )));
        }
    };
    let metrics = args.metrics.bind("neph control")?;
    let controller = Controller::start(folder, args.listen, nats).map_err(Failure::refused)?;
    output::say(&format!(
        "neph control: listening at {}, folder {}; neph control invite NAME makes an invitation, \
         ctrl-C ends it",
        controller.address(),
        folder.display()
    ));
    let exporting = metrics.begin(ControlMetrics(controller.monitor().clone()))?;
    let status = format!("listens at {}", controller.address());
    service.ready(&status, controller.pulses().to_vec());
    let runs = runner_folder(folder)?;
    let mut tidying = Tidying::new(runs.clone(), args.retention);
    let mut runner = Runner::new(runs, Box::new(StoredCampaigns), now());
    while !stop.is_set() {
        turn(&mut runner);
        tidying.turn(now());
        for _ in 0..TURN_EVERY {
            if !stop.is_set() {
                clock::nap(PATIENCE);
            }
        }
    }
    // Runs reach their agents through this controller, also to end.
    runner.stop(&now, LAST_WAIT).map_err(Failure::refused)?;
    drop(service);
    exporting.finish();
    drop(controller);
    Ok(Outcome::Done)
}

/// Where the schedules of the controller in `folder` are carried out.
fn runner_folder(folder: &Path) -> Result<RunnerFolder, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::refused(format!(
            "find the program that carries schedules out: {error}"
        ))
    })?;
    let control = std::path::absolute(folder).map_err(|error| {
        Failure::refused(format!("find the folder {}: {error}", folder.display()))
    })?;
    Ok(RunnerFolder { program, control })
}

/// Starts what is due. A disk that refuses is reported, and tried later: agents stay connected.
fn turn(runner: &mut Runner) {
    match runner.turn(now()) {
        Ok(events) => {
            for one in events {
                output::say(&format!("neph control: {one}"));
            }
        }
        Err(error) => tracing::warn!("schedules: {error}"),
    }
}

fn nats(args: &NatsArgs) -> Result<Outcome, Failure> {
    let registry = existing(&args.folder.folder)?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| args.folder.folder.join("nats"));
    let listen = args.listen.to_string();
    let files = write_nats_config(&registry, &out, &listen, &args.names);
    let files = files.map_err(Failure::refused)?;
    output::say(&format!(
        "neph control: wrote {config} for {count}; start it with nats-server -c {config}, then neph control \
         serve --bus nats://HOST:PORT; one that runs: nats-server --signal reload",
        config = files.config.display(),
        count = counted(files.agents as u64, "agent"),
    ));
    Ok(Outcome::Done)
}

fn revoke(args: &NameArgs) -> Result<Outcome, Failure> {
    let registry = existing(&args.folder.folder)?;
    let (revoked, role) = if args.operator {
        (registry.revoke_operator(&args.name), Role::Operator)
    } else {
        (registry.revoke(&args.name), Role::Agent)
    };
    revoked.map_err(Failure::usage)?;
    output::say(&format!("neph control: {role} {} is revoked", args.name));
    Ok(Outcome::Done)
}

fn operators(args: &OperatorsArgs) -> Result<Outcome, Failure> {
    let operators = existing(&args.folder.folder)?
        .operators()
        .map_err(Failure::refused)?;
    let row = |(operator, enrolled): (AgentName, EnrolledAgent)| OperatorRow {
        operator,
        enrolled_unix_ns: enrolled.enrolled,
        fingerprint: enrolled.fingerprint,
    };
    let rows: Vec<OperatorRow> = operators.into_iter().map(row).collect();
    let mut out = output::data();
    rows::write(&rows, args.format, &mut out)?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// Whether a controller was set up in a folder.
fn holds_controller(folder: &Path) -> bool {
    folder.join("authority.pem").exists()
}

/// The registry of a controller that was set up.
pub(crate) fn existing(folder: &Path) -> Result<Registry, Failure> {
    if !holds_controller(folder) {
        return Err(Failure::usage(format!(
            "{} is the folder of no controller; name the folder in which neph control serve runs",
            folder.display()
        )));
    }
    Registry::open(folder).map_err(Failure::refused)
}
