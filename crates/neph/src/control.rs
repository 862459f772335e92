//! `neph control` and `neph agents`: the controller, its agents and operators, and its schedules.
//!
//! Owns the commands. neph-control has the functions of a controller.

mod agents;
mod campaigns;
mod interference;
mod invite;
mod schedule;
mod workspace_tidier;

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

use crate::controller_commands::DEFAULT_LISTEN;
use crate::exit::{Failure, Outcome};
use crate::metrics::MetricsArgs;
use crate::metrics::control::ControlMetrics;
use crate::service::Service;
use crate::tidy::RetentionArgs;
use crate::{format, interrupt, output, value};
pub(crate) use agents::{Args as AgentsArgs, run as agents};
use campaigns::StoredCampaigns;
use workspace_tidier::WorkspaceTidier;

/// Interval of checks for ctrl-C.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Schedules are checked every second: after this number of checks for ctrl-C.
const CHECKS_PER_STEP: u32 = 20;
/// How long a controller waits for its runs when it ends.
const RUNS_END_TIMEOUT: Duration = Duration::from_secs(40);

/// The default folder of a controller.
const CONTROL_FOLDER: &str = ".neph-control";

/// The folder of a controller.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ControlFolder {
    /// Folder of the controller (keys, agents, schedules), which `neph control serve` creates
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

impl Args {
    /// Whether this is `neph control serve`, which runs until it is stopped.
    pub(crate) const fn is_service(&self) -> bool {
        matches!(self.command, Command::Serve(_))
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the controller until ctrl-C: agents on other hosts connect to it, and `neph run` measures
    /// with them.
    Serve(ServeArgs),
    /// Creates an invitation: a secret line with which one agent or operator can enrol within one hour.
    Invite(invite::Args),
    /// Revokes the certificate of an agent or operator; its connection ends within seconds.
    Revoke(NameArgs),
    /// Lists the operators: persons who may start campaigns at this controller from other hosts.
    Operators(OperatorsArgs),
    /// Lets the controller run a plan periodically; without a plan, lists the schedules.
    Schedule(schedule::Args),
    /// Finds circuits (site to endpoint) that disturb each other: measures each alone, then two at a time.
    Interference(Box<interference::Args>),
    /// Writes the configuration file of a NATS server through which agents reach the controller.
    Nats(NatsArgs),
}

#[derive(Debug, ClapArgs)]
struct ServeArgs {
    /// Address and TCP port on which the controller listens; [::] means all IPv6 and IPv4 addresses
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = DEFAULT_LISTEN, value_parser = value::listen_address)]
    listen: SocketAddr,
    /// NATS servers through which agents may also connect: nats://HOST:PORT, separated by commas
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
    /// Host name or address of the NATS server, to be named in its certificate; repeatable
    #[arg(long = "name", value_name = "HOST", required = true)]
    names: Vec<String>,
    /// Address and TCP port on which the NATS server listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:4222", value_parser = value::listen_address)]
    listen: SocketAddr,
    /// Write the NATS configuration, certificate and key to this folder [default: nats in the --control
    /// folder]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    folder: ControlFolder,
}

#[derive(Debug, ClapArgs)]
struct NameArgs {
    /// Name of the agent or operator: 1 to 63 lower-case letters, digits and hyphens
    name: AgentName,
    /// NAME is an operator (a person who starts campaigns from another host), not an agent
    #[arg(long)]
    operator: bool,
    #[command(flatten)]
    folder: ControlFolder,
}

#[derive(Debug, ClapArgs)]
struct OperatorsArgs {
    #[command(flatten)]
    folder: ControlFolder,
    /// Output format
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
        rows::write_json(document, &mut out)?;
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
        Command::Nats(args) => write_nats_files(args),
        Command::Invite(args) => invite::run(args),
        Command::Revoke(args) => revoke(args),
        Command::Operators(args) => list_operators(args),
    }
}

fn serve(args: &ServeArgs) -> Result<Outcome, Failure> {
    let stop = interrupt::stop_on_ctrl_c()?;
    // Each connection needs a file descriptor.
    files::raise_limit().map_err(Failure::refused)?;
    let mut service = Service::find("control");
    let folder = &args.folder.folder;
    let nats_servers = match &args.bus {
        None => None,
        Some(ControllerAddress::Nats(servers)) => Some(servers.as_str()),
        Some(other) => {
            return Err(Failure::usage(format!(
                "--bus {other}: write nats://HOST:PORT"
            )));
        }
    };
    let metrics = args.metrics.bind("neph control")?;
    let controller =
        Controller::start(folder, args.listen, nats_servers).map_err(Failure::refused)?;
    let folder_text = folder.display();
    output::say(&format!(
        "neph control: listening at {}, folder {folder_text}; neph control invite NAME --control \
         {folder_text} makes an invitation, ctrl-C ends it",
        controller.address(),
    ));
    let exporter = metrics.begin(ControlMetrics(controller.monitor().clone()))?;
    let status = format!("listens at {}", controller.address());
    service.report_ready(&status, controller.pulses().to_vec());
    let runs = runner_folder(folder)?;
    let mut tidier = WorkspaceTidier::new(runs.clone(), args.retention);
    let mut runner = Runner::new(runs, Box::new(StoredCampaigns), now());
    while !stop.is_set() {
        step_schedules(&mut runner);
        tidier.step(now());
        for _ in 0..CHECKS_PER_STEP {
            if !stop.is_set() {
                clock::nap(STOP_CHECK_INTERVAL);
            }
        }
    }
    // Runs need this controller to reach their agents, also when they end.
    runner
        .stop(&now, RUNS_END_TIMEOUT)
        .map_err(Failure::refused)?;
    drop(service);
    exporter.finish();
    drop(controller);
    Ok(Outcome::Done)
}

/// The executor of the schedules of the controller in `folder`.
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

/// Starts due runs. Disk errors are reported, and the run is retried later: agents stay connected.
fn step_schedules(runner: &mut Runner) {
    match runner.step(now()) {
        Ok(events) => {
            for event in events {
                tracing::info!("{event}");
            }
        }
        Err(error) => tracing::warn!("schedules: {error}"),
    }
}

fn write_nats_files(args: &NatsArgs) -> Result<Outcome, Failure> {
    let registry = open_registry(&args.folder.folder)?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| args.folder.folder.join("nats"));
    let listen = args.listen.to_string();
    let nats_files = write_nats_config(&registry, &out, &listen, &args.names);
    let nats_files = nats_files.map_err(Failure::refused)?;
    output::say(&format!(
        "neph control: wrote {config} for {count}; start it with nats-server -c {config}, then neph control \
         serve --bus nats://HOST:PORT; one that runs: nats-server --signal reload",
        config = nats_files.config.display(),
        count = counted(nats_files.agents as u64, "agent"),
    ));
    Ok(Outcome::Done)
}

fn revoke(args: &NameArgs) -> Result<Outcome, Failure> {
    let registry = open_registry(&args.folder.folder)?;
    let (result, role) = if args.operator {
        (registry.revoke_operator(&args.name), Role::Operator)
    } else {
        (registry.revoke(&args.name), Role::Agent)
    };
    result.map_err(Failure::usage)?;
    output::say(&format!("neph control: {role} {} is revoked", args.name));
    Ok(Outcome::Done)
}

fn list_operators(args: &OperatorsArgs) -> Result<Outcome, Failure> {
    let operators = open_registry(&args.folder.folder)?
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

/// Checks that the folder contains a controller.
fn has_controller(folder: &Path) -> bool {
    folder.join("authority.pem").exists()
}

/// The registry of an existing controller.
pub(crate) fn open_registry(folder: &Path) -> Result<Registry, Failure> {
    if !has_controller(folder) {
        return Err(Failure::usage(format!(
            "{} is the folder of no controller; name the folder in which neph control serve runs",
            folder.display()
        )));
    }
    Registry::open(folder).map_err(Failure::refused)
}
