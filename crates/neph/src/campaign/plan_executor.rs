//! The executor of a plan: a lab, agents, or this host.

use std::collections::BTreeMap;
use std::path::Path;

use neph_agent::LocalExecutor;
use neph_agent::lab::{LabPlan, LabSetupError, SeasonalLab, SiteReflector};
use neph_agent::remote::Signer;
use neph_campaign::Plan;
use neph_campaign::estimate::estimate;
use neph_campaign::expand::scenarios;
use neph_campaign::plan::AgentSite;
use neph_control::{
    AgentReflector, AgentsExecutor, CampaignSocket, ControllerPlace, Registry, Sites, agents_at,
    controller_id,
};
use neph_lab::Lab;
use neph_model::{AgentName, Executor, ReflectorOrder, Span, Stop};

use super::PlanSource;
use crate::control;
use crate::controller_commands::ControllerCommands;
use crate::exit::Failure;
use crate::lab;
use crate::operator::{self, OperatorArgs, OperatorController};
use crate::workspace::Workspace;

/// The controller whose agents measure, as the command line names it.
pub(super) struct Control<'a> {
    /// The folder of a controller, if the sites of a plan are agents.
    pub(super) folder: Option<&'a Path>,
    /// A controller at another host, otherwise.
    pub(super) operator: &'a OperatorArgs,
}

/// Checks that the lab of a plan is permitted, before anything is written.
pub(super) fn check_lab_permission(plan: &Plan) -> Result<(), Failure> {
    match plan.lab {
        None => Ok(()),
        Some(_) => Lab::check_permission().map_err(lab::failure),
    }
}

/// Reserves the agents of a plan, if it has agents, at their controller. Writes nothing: a plan that
/// cannot run leaves no workspace.
pub(super) fn reserve_agents(
    plan: &Plan,
    control: &Control<'_>,
) -> Result<Option<ReservedAgents>, Failure> {
    if !plan.agents.is_empty() {
        let controller = find_controller(control)?;
        check_enrolled(plan, &controller.enrolled, &controller.commands)?;
        let agents = plan.agents.iter().map(|site| site.agent.value.clone());
        let socket = CampaignSocket::connect(controller.controller_place, agents.collect());
        return Ok(Some(ReservedAgents {
            socket: socket.map_err(operator::failure)?,
            controller_id: controller.id,
            signer: controller.signer,
        }));
    }
    if control.operator.is_typed() {
        return Err(Failure::usage(
            "--controller has no effect: the plan has no site with an agent; add [[site]] with name and agent",
        ));
    }
    if control.folder.is_some() {
        return Err(Failure::usage(
            "--control has no effect: the plan has no site with an agent; add [[site]] with name and agent",
        ));
    }
    Ok(None)
}

/// The executor of a plan's experiments: at agents, in its lab or on this host. The lab is up, with
/// the topology of this season, until the executor is dropped.
pub(super) fn build_executor(
    plan_source: &PlanSource,
    season: Option<&str>,
    reserved_agents: Option<ReservedAgents>,
    workspace: &Workspace,
    stop: &Stop,
) -> Result<Box<dyn Executor>, Failure> {
    let PlanSource {
        plan,
        lab_topologies,
        ..
    } = plan_source;
    if let Some(reserved_agents) = reserved_agents {
        return build_agents_executor(plan, reserved_agents, workspace);
    }
    let Some(plan_lab) = &plan.lab else {
        return Ok(Box::new(LocalExecutor::new()));
    };
    let seasons = plan.seasons.iter().map(|season| season.name.as_str());
    let season_topologies = seasons.filter_map(|season| {
        let file = &plan.season_topology(Some(season))?.value;
        let topology_index = lab_topologies
            .iter()
            .position(|lab_topology| lab_topology.file == *file)?;
        Some((season.to_owned(), topology_index))
    });
    let reflectors = plan_lab.reflectors.iter().map(|reflector| SiteReflector {
        site: reflector.site.value.clone(),
        spec: reflector.spec.value.clone(),
    });
    let plan = LabPlan {
        reflectors: reflectors.collect(),
        topologies: lab_topologies
            .iter()
            .map(|lab_topology| lab_topology.topology.clone())
            .collect(),
        season_topologies: season_topologies.collect::<BTreeMap<_, _>>(),
    };
    let seasonal_lab = SeasonalLab::up(plan, season, stop).map_err(to_failure)?;
    Ok(Box::new(LocalExecutor::in_lab(Box::new(seasonal_lab))))
}

/// The agents of a plan, which no other campaign can use while this exists.
pub(super) struct ReservedAgents {
    socket: CampaignSocket,
    /// Name of the folder of the controller's orders in a workspace.
    controller_id: String,
    signer: Signer,
}

/// A controller that can be used.
struct UsableController {
    controller_place: ControllerPlace,
    id: String,
    signer: Signer,
    enrolled: Vec<AgentName>,
    commands: ControllerCommands,
}

impl UsableController {
    fn in_folder(folder: &Path) -> Result<Self, Failure> {
        let registry = control::open_registry(folder)?;
        Ok(Self {
            controller_place: ControllerPlace::Folder(folder.to_owned()),
            id: registry.id(),
            signer: registry.signer().map_err(Failure::refused)?,
            enrolled: enrolled_agents(&registry)?,
            commands: ControllerCommands::in_folder(folder),
        })
    }

    fn at_port(args: &OperatorArgs, controller: OperatorController) -> Result<Self, Failure> {
        let controller_agents =
            agents_at(&controller.controller_place).map_err(operator::failure)?;
        Ok(Self {
            controller_place: controller.controller_place,
            id: controller_id(&controller.authority),
            signer: Signer::without_key(),
            enrolled: controller_agents
                .enrolled
                .into_iter()
                .map(|(name, _)| name)
                .collect(),
            commands: ControllerCommands::of_operator(&args.option_text()),
        })
    }
}

/// The controller that was named; a folder has precedence over an address.
fn find_controller(control: &Control<'_>) -> Result<UsableController, Failure> {
    if let Some(folder) = control.folder {
        if control.operator.is_typed() {
            return Err(Failure::usage(
                "--control and --controller name two controllers: give one of them",
            ));
        }
        return UsableController::in_folder(folder);
    }
    match control.operator.find()? {
        Some(controller) => UsableController::at_port(control.operator, controller),
        None => Err(Failure::usage(
            "the plan has sites with agents: add --control FOLDER, the folder in which neph control serve runs, or \
             --controller wss://HOST:PORT from another host",
        )),
    }
}

/// The executor whose orders go to agents.
fn build_agents_executor(
    plan: &Plan,
    reserved_agents: ReservedAgents,
    workspace: &Workspace,
) -> Result<Box<dyn Executor>, Failure> {
    let site_agents = plan.agents.iter();
    let site_agents = site_agents.map(|site| (site.name.value.clone(), site.agent.value.clone()));
    let sites = Sites {
        agents: site_agents.collect(),
        reflectors: build_reflectors(plan),
        default: None,
    };
    // In the workspace: only one campaign uses it at a time, and it is there when the campaign is
    // resumed.
    let ReservedAgents {
        socket,
        controller_id,
        signer,
    } = reserved_agents;
    let orders = workspace.folder().join("orders").join(controller_id);
    let executor = AgentsExecutor::new(&orders, sites, socket, signer);
    Ok(Box::new(executor.map_err(Failure::refused)?))
}

fn enrolled_agents(registry: &Registry) -> Result<Vec<AgentName>, Failure> {
    let agents = registry.agents().map_err(Failure::refused)?;
    Ok(agents.into_iter().map(|(name, _)| name).collect())
}

/// Checks that all agents of a plan are enrolled at the controller in `folder`.
pub(crate) fn check_agents(plan: &Plan, registry: &Registry, folder: &Path) -> Result<(), Failure> {
    check_enrolled(
        plan,
        &enrolled_agents(registry)?,
        &ControllerCommands::in_folder(folder),
    )
}

fn check_enrolled(
    plan: &Plan,
    enrolled: &[AgentName],
    commands: &ControllerCommands,
) -> Result<(), Failure> {
    for site in &plan.agents {
        let agent = &site.agent.value;
        if !enrolled.contains(agent) {
            return Err(Failure::usage(format!(
                "site '{}': {}",
                site.name.value,
                commands.not_enrolled(agent)
            )));
        }
    }
    Ok(())
}

/// The reflectors of a plan, ordered for longer than the plan can take, but at most for a day; then
/// each is ordered again.
fn build_reflectors(plan: &Plan) -> BTreeMap<AgentName, AgentReflector> {
    const MARGIN: Span = Span::from_secs(600);
    const MAX_DURATION: Span = Span::from_secs(23 * 3600);
    let span = estimate(plan, &scenarios(plan)).total;
    let duration = (span.times(2) + MARGIN).min(MAX_DURATION);
    let sites = plan.agents.iter();
    let order = |site: &AgentSite| {
        let spec = site.reflector.clone()?;
        let order = ReflectorOrder { spec, duration };
        let host = site.address.as_ref().unwrap_or(&site.name.value).clone();
        Some((site.agent.value.clone(), AgentReflector { order, host }))
    };
    sites.filter_map(order).collect()
}

fn to_failure(error: LabSetupError) -> Failure {
    match error {
        LabSetupError::Lab(error) => lab::failure(error),
        LabSetupError::Site(error) => Failure::usage(error),
        LabSetupError::Reflector(error) => Failure::refused(error),
    }
}
