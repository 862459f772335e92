//! `neph agents`: the agents of a controller, and the details of one agent.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use clap::{Args as ClapArgs, Subcommand};
use neph_control::{
    AgentDetails, AwayAgent, ConnectedAgent, ControllerAgents, ControllerPlace, EnrolledAgent,
    SeenOrder, SeenState, agent_details, agents_at, is_running,
};
use neph_documents::Format;
use neph_documents::agents::{AgentDocument, AgentOrderRow, AgentRow, ClockRow, PolicyRow};
use neph_documents::rows;
use neph_documents::version::Version;
use neph_model::AgentName;

use super::{CONTROL_FOLDER, ControlFolder, has_controller, open_registry, write_document};
use crate::controller_commands::{ControllerCommands, no_controller};
use crate::exit::{Failure, Outcome};
use crate::operator::{self, OperatorArgs};
use crate::{format, output};

/// Options of `neph agents`.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    folder: ControlFolder,
    #[command(flatten)]
    operator: OperatorArgs,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows one agent: its policy, clock offset, last orders and refused orders.
    Show(ShowArgs),
}

#[derive(Debug, ClapArgs)]
struct ShowArgs {
    /// Name of the agent
    agent: AgentName,
    #[command(flatten)]
    folder: ControlFolder,
    #[command(flatten)]
    operator: OperatorArgs,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::DOCUMENT))]
    format: Format,
}

/// Carries the command out.
pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.command {
        None => list(args),
        Some(Command::Show(args)) => show(args),
    }
}

/// A controller and its list of agents.
struct KnownController {
    /// Where the controller runs; `None` if it does not run.
    controller_place: Option<ControllerPlace>,
    agents: ControllerAgents,
}

fn find_controller(
    folder: &ControlFolder,
    operator: &OperatorArgs,
) -> Result<KnownController, Failure> {
    // A folder on the command line has precedence over an address in the environment.
    let is_operator_selected = operator.is_typed() || folder.folder == Path::new(CONTROL_FOLDER);
    if is_operator_selected && let Some(controller) = operator.find()? {
        let agents = agents_at(&controller.controller_place).map_err(operator::failure)?;
        let controller_place = Some(controller.controller_place);
        return Ok(KnownController {
            controller_place,
            agents,
        });
    }
    let folder = &folder.folder;
    if !has_controller(folder) {
        return Err(Failure::usage(format!(
            "{} holds no controller: on its host give --control FOLDER, the folder of neph control serve; on \
             another host give --controller wss://HOST:PORT",
            folder.display()
        )));
    }
    if is_running(folder).map_err(Failure::refused)? {
        let controller_place = ControllerPlace::Folder(folder.clone());
        let agents = agents_at(&controller_place).map_err(operator::failure)?;
        let controller_place = Some(controller_place);
        return Ok(KnownController {
            controller_place,
            agents,
        });
    }
    let enrolled = open_registry(folder)?.agents().map_err(Failure::refused)?;
    Ok(KnownController {
        controller_place: None,
        agents: ControllerAgents {
            enrolled,
            connected: Vec::new(),
            away: BTreeMap::new(),
        },
    })
}

fn list(args: &Args) -> Result<Outcome, Failure> {
    let KnownController {
        controller_place,
        agents,
    } = find_controller(&args.folder, &args.operator)?;
    let ControllerAgents {
        enrolled,
        connected,
        away,
    } = agents;
    let row = |(agent, enrolled): (AgentName, EnrolledAgent)| {
        let connection = connected
            .iter()
            .find(|connected_agent| connected_agent.agent == agent);
        build_row(&enrolled, connection, away.get(&agent), agent)
    };
    let rows: Vec<AgentRow> = enrolled.into_iter().map(row).collect();
    let mut out = output::data();
    rows::write(&rows, args.format, &mut out)?;
    out.flush()?;
    if controller_place.is_none() {
        output::say(&format!(
            "neph agents: {}",
            no_controller(&args.folder.folder)
        ));
    }
    Ok(Outcome::Done)
}

/// An agent that is connected, is away, or has not connected since the controller's start.
fn build_row(
    enrolled: &EnrolledAgent,
    connection: Option<&ConnectedAgent>,
    away: Option<&AwayAgent>,
    agent: AgentName,
) -> AgentRow {
    let clock = connection.and_then(|agent| agent.clock);
    let last_seen = connection.cloned().map(ConnectedAgent::into_away);
    let last_seen = last_seen.or_else(|| away.cloned());
    AgentRow {
        connected: connection.is_some(),
        last_seen_unix_ns: last_seen.as_ref().map(|agent| agent.received),
        version: last_seen.as_ref().and_then(|agent| agent.version.clone()),
        labels: last_seen.map(|agent| agent.labels).unwrap_or_default(),
        running: connection.map(|agent| agent.running),
        clock_offset_ns: clock.map(|clock| clock.offset),
        clock_bound_ns: clock.map(|clock| clock.bound),
        refusals: connection
            .map(|agent| agent.refusals.clone())
            .unwrap_or_default(),
        enrolled_unix_ns: enrolled.enrolled,
        agent,
    }
}

/// The command that lists the agents.
fn list_command(args: &ShowArgs) -> String {
    match args.operator.address() {
        Some(_) => format!("neph agents {}", args.operator.option_text()),
        None => ControllerCommands::in_folder(&args.folder.folder).list,
    }
}

fn show(args: &ShowArgs) -> Result<Outcome, Failure> {
    let KnownController {
        controller_place,
        agents,
    } = find_controller(&args.folder, &args.operator)?;
    let mut agent_entries = agents.enrolled.into_iter();
    let entry = agent_entries.find(|(agent, _)| *agent == args.agent);
    let (agent, enrolled) = entry.ok_or_else(|| {
        Failure::usage(format!(
            "there is no agent {}; {} lists those that there are",
            args.agent,
            list_command(args)
        ))
    })?;
    let details = match &controller_place {
        Some(controller_place) => {
            agent_details(controller_place, &agent).map_err(operator::failure)?
        }
        None => AgentDetails::default(),
    };
    let document = build_document(agent, enrolled, details);
    write_document(&document, AgentDocument::text, args.format)?;
    if controller_place.is_none() {
        output::say(&format!(
            "neph agents: {}",
            no_controller(&args.folder.folder)
        ));
    }
    Ok(Outcome::Done)
}

fn build_document(
    agent: AgentName,
    enrolled: EnrolledAgent,
    details: AgentDetails,
) -> AgentDocument {
    let connection = details.presence.as_ref();
    let agent_row = build_row(&enrolled, connection, details.away.as_ref(), agent);
    let agent_history = details.seen;
    AgentDocument {
        schema: Version,
        agent: agent_row,
        fingerprint: enrolled.fingerprint,
        connected_unix_ns: connection.map(|agent| agent.connected),
        results_pending: connection.map(|agent| agent.results),
        in_campaign: details.has_campaign,
        policy: agent_history
            .policy
            .into_iter()
            .map(|(key, value)| PolicyRow { key, value })
            .collect(),
        clock: agent_history
            .clocks
            .into_iter()
            .map(|reading| ClockRow {
                at_unix_ns: reading.at,
                offset_ns: reading.clock.offset,
                bound_ns: reading.clock.bound,
            })
            .collect(),
        orders: agent_history
            .orders
            .into_iter()
            .map(build_order_row)
            .collect(),
    }
}

fn build_order_row(seen_order: SeenOrder) -> AgentOrderRow {
    let (state, failure) = match seen_order.state {
        SeenState::Sent => ("sent", None),
        SeenState::Running => ("running", None),
        SeenState::Ended => ("ended", None),
        SeenState::Failed { reason } => ("ended", Some(reason)),
        SeenState::Stored => ("stored", None),
        SeenState::StoredFailure { reason } => ("stored", Some(reason)),
    };
    AgentOrderRow {
        order: seen_order.id,
        kind: seen_order.kind,
        parts: seen_order.parts,
        sent_unix_ns: seen_order.sent,
        state,
        changed_unix_ns: seen_order.changed,
        failure,
    }
}
