//! Brings a lab up: each object is listed in the journal first, then acquired.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use neph_sys::netns::{self, NetNs};
use neph_sys::offload;

use super::engine_configs::EngineConfigs;
use super::kernel_features::add_remedy;
use super::namespace_worker::ReadyMessage;
use super::rerouting::Rerouting;
use super::running_engine::RunningEngine;
use super::running_tunnel::RunningTunnel;
use super::service::RunningService;
use super::status::StatusServer;
use super::traffic::RunningTraffic;
use super::wake::CoreWaker;
use super::{Lab, LabError, Recording, UpOptions, namespace_exists, namespace_name};
use crate::group::{self, CgroupMounts};
use crate::guest;
use crate::journal::{self, Journal, JournalIdentity, LabObject};
use crate::plan::{self, Operation, Plan, Program, Step};
use crate::program;
use crate::settings;
use crate::topology::{Site, Topology};
use crate::truth::TruthThread;

/// The lab's own namespace, which has the links; no site can have this name.
pub(super) const WIRE: &str = "wire";

pub(super) fn up(topology: &Topology, options: &UpOptions) -> Result<Lab, LabError> {
    let journal = Journal::begin(&options.name).map_err(|source| journal_error(options, source))?;
    let journal_identity =
        JournalIdentity::open(&options.name).map_err(|source| journal_error(options, source))?;
    let mut lab = Lab {
        name: options.name.clone(),
        topology: topology.clone(),
        fallback_guests: Vec::new(),
        status_server: None,
        waker: None,
        services: Vec::new(),
        traffic: Vec::new(),
        rerouting: None,
        engines: Vec::new(),
        tunnels: Vec::new(),
        journal: journal_identity,
        seed: options.seed,
        cue: Arc::default(),
        is_abandoned: false,
    };
    let result = build(&mut lab, &journal, options);
    // Releases the lock before a failed lab is dropped, and so taken down.
    drop(journal);
    if check_not_stopped(options).is_err() {
        // Takes down after any error: ctrl-C also reaches the programs that were running.
        lab.down()?;
        return Err(interrupted_error(options));
    }
    result.map(|()| lab)
}

/// Whether the lab should still come up: checked before every step that takes time.
fn check_not_stopped(options: &UpOptions) -> Result<(), LabError> {
    if options.stop.load(Ordering::Relaxed) {
        return Err(interrupted_error(options));
    }
    Ok(())
}

fn interrupted_error(options: &UpOptions) -> LabError {
    LabError::Interrupted {
        lab: options.name.clone(),
    }
}

fn journal_error(options: &UpOptions, source: io::Error) -> LabError {
    match source.kind() {
        io::ErrorKind::AlreadyExists => {
            let name = options.name.clone();
            let content = journal::read_journal(&name).unwrap_or_default();
            let state = if content.has_running_owner() {
                "up"
            } else {
                "left behind by a crash"
            };
            LabError::NameTaken { name, state }
        }
        io::ErrorKind::PermissionDenied => LabError::NotPermitted {
            source: source.into(),
        },
        _ => LabError::Journal {
            lab: options.name.clone(),
            source,
        },
    }
}

fn build(lab: &mut Lab, journal: &Journal, options: &UpOptions) -> Result<(), LabError> {
    let recorded = journal.record_description(&lab.topology.fingerprint(), options.keeper);
    recorded.map_err(|source| LabError::Journal {
        lab: lab.name.clone(),
        source,
    })?;
    let folder = journal::folder(&lab.name);
    let (topology, fallback_guests) = guest::replace_unsupported(&lab.topology, Some(&folder))?;
    (lab.topology, lab.fallback_guests) = (topology.clone(), fallback_guests);
    let plan = make_plan(&topology, &lab.name);
    plan.programs().try_for_each(program::require_program)?;
    plan.static_programs()
        .try_for_each(program::require_static)?;
    let wire = create_namespace(&lab.name, WIRE, journal)?;
    settings::apply(&wire, &plan::WIRE_SETTINGS)?;
    for (index, site) in topology.sites.iter().enumerate() {
        check_not_stopped(options)?;
        let namespace = create_namespace(&lab.name, &site.name, journal)?;
        settings::apply(&namespace, &plan::settings(&topology, index))?;
        create_groups(site, &namespace, lab, journal)?;
    }
    record_links(&plan, journal, &lab.name)?;
    run_operations(&plan.operations(), &plan.folder, options)?;
    switch_offloads_off(&plan)?;
    let mut ready_messages = Vec::new();
    let truth_thread = options.truth.as_ref().map(start_truth_thread).transpose()?;
    let engine_configs = EngineConfigs {
        topology: &topology,
        options,
        cue: &lab.cue,
        truth_thread: truth_thread.as_ref(),
    };
    for (link_index, kind) in plan.kinds.iter().enumerate() {
        check_not_stopped(options)?;
        if let Some(config) = engine_configs.config(*kind, link_index) {
            let (engine, ready_message) = RunningEngine::start(link_index, config, &wire)?;
            lab.engines.push(engine);
            ready_messages.push(ready_message);
        }
    }
    // All are started before waiting for any: the kernel takes time to open each socket.
    ready_messages
        .into_iter()
        .try_for_each(ReadyMessage::wait)?;
    record_groups(&plan, journal, &lab.name)?;
    start_tunnels(lab, &plan, options)?;
    start_services(lab, &plan, options)?;
    check_not_stopped(options)?;
    start_traffic(lab, &topology)?;
    let folder = options.truth.as_ref().map(|truth| truth.folder.as_path());
    let record = folder.zip(truth_thread.as_ref());
    lab.rerouting = Rerouting::start(&plan, lab.shared_cue(), record)?;
    lab.waker = Some(CoreWaker::start(lab, options.keeper)?);
    lab.cue();
    lab.status_server = Some(StatusServer::start(lab)?);
    journal.record_up().map_err(|source| LabError::Journal {
        lab: lab.name.clone(),
        source,
    })
}

fn make_plan<'t>(topology: &'t Topology, lab: &str) -> Plan<'t> {
    let namespace_of = |site: &str| namespace_name(lab, site);
    let sites = topology.sites.iter().map(|site| namespace_of(&site.name));
    Plan::new(
        topology,
        namespace_of(WIRE),
        sites.collect(),
        journal::folder(lab),
    )
}

/// Every step of [`up`], in order.
pub(super) fn steps(topology: &Topology, options: &UpOptions) -> Result<Vec<Step>, LabError> {
    // Tries nothing; bringing up a lab reports what is impossible.
    let runnable_topology =
        guest::replace_unsupported(topology, None).map(|(topology, _)| topology);
    let topology = &runnable_topology.unwrap_or_else(|_| topology.clone());
    let plan = make_plan(topology, &options.name);
    let record = options.truth.as_ref().map(|truth| truth.folder.as_path());
    let cgroup_mounts = CgroupMounts::of_host();
    let mut steps = guest::trial_steps(topology, &plan.wire);
    steps.extend(plan.wire_steps());
    for (index, site) in topology.sites.iter().enumerate() {
        let groups = cgroup_mounts.groups_for(&plan.sites[index], site)?;
        steps.extend(plan.site_steps(index, &groups));
    }
    steps.extend(plan.operations().iter().map(Operation::step));
    steps.extend(plan.offload_steps());
    steps.extend(plan.engine_steps(record));
    steps.extend(plan.tunnel_steps());
    steps.extend(plan.service_steps());
    steps.extend(plan.traffic_steps());
    Ok(steps)
}

fn create_groups(
    site: &Site,
    namespace: &NetNs,
    lab: &Lab,
    journal: &Journal,
) -> Result<(), LabError> {
    for group in CgroupMounts::of_host().groups_for(namespace.name(), site)? {
        record_object(journal, &lab.name, &LabObject::Group(group.folder.clone()))?;
        group.create(&site.name)?;
    }
    Ok(())
}

fn record_groups(plan: &Plan<'_>, journal: &Journal, lab: &str) -> Result<(), LabError> {
    for group in plan.groups() {
        for folder in group::folders(group) {
            record_object(journal, lab, &LabObject::Group(folder))?;
        }
    }
    Ok(())
}

/// Starts each tunnel, then routes packets into it.
fn start_tunnels(lab: &mut Lab, plan: &Plan<'_>, options: &UpOptions) -> Result<(), LabError> {
    for end in plan.tunnels() {
        let namespace = NetNs::open(&plan.sites[end.site])?;
        lab.tunnels
            .push(RunningTunnel::start(end.config.clone(), &namespace)?);
        run_operations(&end.operations_after_start, &plan.folder, options)?;
    }
    Ok(())
}

/// Starts each service when the previous one is ready.
fn start_services(lab: &mut Lab, plan: &Plan<'_>, options: &UpOptions) -> Result<(), LabError> {
    for service in plan.services() {
        check_not_stopped(options)?;
        let site = &plan.topology.sites[service.site];
        let placement = lab.placement(&site.name)?;
        let running = RunningService::start(service, placement, site, &plan.folder, &options.stop)?;
        lab.services.push(running);
    }
    match lab.services.iter().find_map(RunningService::ended_early) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn start_traffic(lab: &mut Lab, topology: &Topology) -> Result<(), LabError> {
    for traffic in &topology.traffic {
        let [from, to] = [traffic.from, traffic.to].map(|site| &topology.sites[site]);
        let placements = [lab.placement(&from.name)?, lab.placement(&to.name)?];
        let address = SocketAddr::new(to.v4.address.into(), 0);
        let running_traffic =
            RunningTraffic::start(traffic, placements, address, lab.shared_cue())?;
        lab.traffic.push(running_traffic);
    }
    Ok(())
}

fn create_namespace(lab: &str, site: &str, journal: &Journal) -> Result<NetNs, LabError> {
    let name = namespace_name(lab, site);
    // A foreign one is not listed, or taking this lab down would remove it.
    if namespace_exists(&name) {
        return Err(LabError::NameTaken {
            name,
            state: "a namespace already",
        });
    }
    record_object(journal, lab, &LabObject::Namespace(name.clone()))?;
    NetNs::create(&name).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => LabError::NotPermitted {
            source: error.into(),
        },
        _ => error.into(),
    })
}

fn record_links(plan: &Plan<'_>, journal: &Journal, lab: &str) -> Result<(), LabError> {
    for (link_index, kind) in plan.kinds.iter().enumerate() {
        let link = &plan.topology.links[link_index];
        let ends = match kind.engine_ends(link_index) {
            Some(ends) => ends.map(|end| (&plan.wire, end)).to_vec(),
            None => vec![(&plan.sites[link.a], link.name.clone())],
        };
        for (namespace, interface) in ends {
            let namespace = namespace.clone();
            record_object(
                journal,
                lab,
                &LabObject::Link {
                    namespace,
                    interface,
                },
            )?;
        }
    }
    Ok(())
}

fn record_object(journal: &Journal, lab: &str, object: &LabObject) -> Result<(), LabError> {
    journal.record(object).map_err(|source| LabError::Journal {
        lab: lab.to_owned(),
        source,
    })
}

/// Runs operations; consecutive ones in the same namespace share a process.
fn run_operations(
    operations: &[Operation],
    folder: &Path,
    options: &UpOptions,
) -> Result<(), LabError> {
    let can_share_process = |a: &Operation, b: &Operation| {
        let is_batch_program = matches!(a.program, Program::Ip | Program::Bridge);
        a.namespace == b.namespace && a.program == b.program && is_batch_program
    };
    for batch in operations.chunk_by(can_share_process) {
        check_not_stopped(options)?;
        let first = &batch[0];
        let (namespace, line) = (&first.namespace, &first.line);
        let lines = || -> Vec<String> {
            batch
                .iter()
                .map(|operation| operation.line.clone())
                .collect()
        };
        match &first.program {
            Program::Ip => program::ip_batch(namespace, &lines()).map_err(add_remedy)?,
            Program::Bridge => program::bridge_batch(namespace, &lines())?,
            Program::Tc => program::tc(namespace, line).map_err(add_remedy)?,
            Program::OpenSsl => program::openssl(namespace, line)?,
            Program::Nft => {
                netns::with_namespace(&NetNs::open(namespace)?, || program::nft(namespace, line))??;
            }
            Program::Sysctl(setting) => {
                settings::apply(&NetNs::open(namespace)?, &[(setting, line)])?;
            }
            Program::Image(name) => {
                let (file, busybox) = (folder.join(name), program::find("busybox")?);
                guest::write_image(&file, line, &busybox)
                    .map_err(|source| LabError::File { file, source })?;
            }
            Program::File(name) => {
                let file = folder.join(name);
                fs::write(&file, line).map_err(|source| LabError::File { file, source })?;
            }
        }
    }
    Ok(())
}

fn switch_offloads_off(plan: &Plan<'_>) -> Result<(), LabError> {
    for (namespace, interfaces) in plan.offloads() {
        netns::with_namespace(&NetNs::open(namespace)?, || {
            let mut interfaces = interfaces.iter();
            interfaces.try_for_each(|interface| offload::switch_off(interface))
        })??;
    }
    Ok(())
}

fn start_truth_thread(recording: &Recording) -> Result<TruthThread, LabError> {
    TruthThread::start().map_err(|source| LabError::File {
        file: recording.folder.clone(),
        source,
    })
}
