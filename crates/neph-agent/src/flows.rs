//! From an order to the flows that run: the main one, ICMP echo alongside it, and ping destinations.

mod echo_flows;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use neph_model::{
    Anchor, ExperimentOrder, Flow, FlowIndex, FlowRole, HostFacts, Instant, Known, Local,
    OrderFailed, Parameters, Permit, Progress, SYNS_A_SECOND_EACH, Span, Target, Traceroute,
    TracerouteOrder,
};
use neph_probe::{
    ConnectionUse, Discovery, DiscoveryOptions, FleetSpec, FlowSpec, Overdue, Placement, Priority,
    Resolve, Resolving, Schedule, Secret, SynSchedule, Trust, discover,
};

use echo_flows::add_echo_flows;
pub(crate) use echo_flows::echo_to;

use crate::experiments::start;
use crate::failure::{failed, not_found};
use crate::fleet::build_fleet_spec;
use crate::order_context::OrderContext;
use crate::provenance::host_facts_at_site;
use crate::redirects::follow_redirects;
use crate::reflector_refusals;
use crate::transfer::{TransferSpec, transfer_spec};

/// Least time to wait for the peer's identification. This is before the measurement, so a short
/// timeout of the plan does not apply. A lost SYN is retransmitted after 1 and 3 s.
const MIN_QUERY_TIME: Span = Span::from_secs(5);
/// However long a message may take.
const MAX_QUERY_TIME: Span = Span::from_secs(10);
/// Payload of an echo, as ping's.
pub(crate) const ECHO: usize = 56;

/// Everything that will run, and since when it counts.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The scenario's flow and those that run alongside. With a fleet, the first does not run.
    pub(crate) specs: Vec<FlowSpec>,
    /// The fleet that runs in the place of the main flow.
    pub(crate) fleet: Option<FleetSpec>,
    /// The transfer that runs in the place of the main flow.
    pub(crate) transfer: Option<TransferSpec>,
    /// What the order wants alongside the main flow and cannot have.
    pub(crate) missing: Vec<Missing>,
    /// What the fleet's reflector refused before.
    pub(crate) refusals: Option<reflector_refusals::EarlierRefusals>,
    /// The server that answers the main flow.
    pub(crate) discovery_result: Discovery,
    /// The redirects that led there, in words.
    pub(crate) redirects: Vec<String>,
    pub(crate) site: Option<Placement>,
    /// The host that it is sent from, read before the start, so that slow reading delays nothing.
    pub(crate) host: HostFacts,
    pub(crate) origin: Anchor<Local>,
}

/// An ICMP echo that does not go.
#[derive(Debug)]
pub(crate) struct Missing {
    /// To whom, by name.
    pub(crate) name: String,
    /// Why not.
    pub(crate) reason: String,
}

/// Resolves, identifies the server, and decides what runs.
pub(crate) fn ready(
    order: &ExperimentOrder,
    site: Option<Placement>,
    permit: &Permit,
) -> Result<Ready, OrderFailed> {
    if let Some(transfer) = transfer_spec(order, site.as_ref(), permit)? {
        return with_transfer(order, transfer, site, permit);
    }
    let mut main = main_flow(order, site.clone(), permit)?;
    let options = DiscoveryOptions {
        tls_version: main.tls_version,
        trust: main.trust.clone(),
        patience: start::max_query_time(
            order,
            MIN_QUERY_TIME.max(order.timeout.min(MAX_QUERY_TIME)),
        ),
        site: site.clone(),
    };
    let discovery = discover(&main.target, main.address, &options)
        .map_err(|error| failed("ask who answers", error))?;
    let (discovery, redirects) = follow_redirects(&mut main, discovery, &order.scenario, &options)?;
    main.reflector = discovery.reflector;
    let fleet = build_fleet_spec(order, &main);
    let mut specs = vec![main];
    let missing = add_echo_flows(order, &mut specs);
    let host = host_facts_at_site(site.as_ref());
    let host = host.map_err(|error| failed("inspect the host", error))?;
    Ok(Ready {
        specs,
        refusals: fleet
            .as_ref()
            .and_then(|fleet| reflector_refusals::EarlierRefusals::of(&discovery, fleet)),
        fleet,
        transfer: None,
        missing,
        discovery_result: discovery,
        redirects,
        site,
        host,
        origin: neph_probe::anchor(),
    })
}

/// A transfer, and what runs alongside. Its server identifies itself when the transfer begins.
fn with_transfer(
    order: &ExperimentOrder,
    transfer: TransferSpec,
    site: Option<Placement>,
    permit: &Permit,
) -> Result<Ready, OrderFailed> {
    let target = Target::icmp(&transfer.transfer.server.ip().to_string());
    let target = target.map_err(|error| failed("find the transfer's target", error))?;
    let mut specs = vec![flow_to(
        target,
        transfer.transfer.server,
        order,
        site.clone(),
        permit,
    )?];
    let missing = add_echo_flows(order, &mut specs);
    let host = host_facts_at_site(site.as_ref());
    let host = host.map_err(|error| failed("inspect the host", error))?;
    Ok(Ready {
        specs,
        fleet: None,
        transfer: Some(transfer),
        missing,
        refusals: None,
        discovery_result: Discovery::default(),
        redirects: Vec::new(),
        site,
        host,
        origin: neph_probe::anchor(),
    })
}

/// A plan's SYNs are held to what is sent without being asked to.
fn check_syn_rate(interval: Span) -> Result<(), OrderFailed> {
    let schedule = SynSchedule {
        flows: 1,
        targets: 1,
        interval,
    };
    let min = Span::from_nanos(1_000_000_000 / i64::from(SYNS_A_SECOND_EACH));
    schedule.check(None).map(drop).map_err(|_| {
        let reason = format!("the shortest interval of syn:// is {min}");
        failed(format!("send a SYN every {interval}"), reason)
    })
}

/// The flow that the scenario asks for.
pub(crate) fn main_flow(
    order: &ExperimentOrder,
    site: Option<Placement>,
    permit: &Permit,
) -> Result<FlowSpec, OrderFailed> {
    let (target, address) = flow_context(order, site.as_ref(), permit)?;
    flow_to(target, address, order, site, permit)
}

/// The flow of the scenario to where its target is.
fn flow_to(
    target: Target,
    address: SocketAddr,
    order: &ExperimentOrder,
    site: Option<Placement>,
    permit: &Permit,
) -> Result<FlowSpec, OrderFailed> {
    let scenario = &order.scenario;
    let parameters = &scenario.parameters;
    // A fleet's rate is the plan's to allow.
    if target.kind().properties().may_look_like_attack && scenario.flows().is_none() {
        check_syn_rate(order.scenario.interval)?;
    }
    let messages = i64::try_from(scenario.messages).unwrap_or(i64::MAX);
    Ok(FlowSpec {
        index: FlowIndex(0),
        role: FlowRole::Main,
        name: scenario.endpoint.clone(),
        address,
        target,
        schedule: Schedule {
            interval: scenario.interval,
            count: Some(scenario.messages),
            duration: Some(scenario.interval.times(messages)),
        },
        request_size: to_usize(scenario.request_size.bytes()),
        response_size: to_usize(scenario.response_size.bytes()),
        source_port: parameters.source_port().map(|port| port.get()),
        timeout: order.timeout,
        tls_version: parameters.tls().and_then(Known::value).copied(),
        trust: trust(parameters),
        connection_use: match parameters.new_connection() {
            Some(true) => ConnectionUse::PerMessage,
            Some(false) | None => ConnectionUse::Lasting,
        },
        congestion: parameters.congestion().cloned(),
        key: parameters
            .key_file()
            .map(|path| read_key(path))
            .transpose()?,
        spin: parameters.spin().copied().unwrap_or(FlowSpec::SPIN),
        priority: Priority::Auto,
        expected_status: parameters.expect_status().copied().unwrap_or_default(),
        rate_cap: None,
        permit: permit.clone(),
        overdue: Overdue::Skip,
        tcp_stats: parameters.tcp_stats().copied(),
        site,
        reflector: false,
    })
}

/// The scenario's target and where it is: at the address that was measured before, if it still is one
/// of the host's and answers.
fn flow_context(
    order: &ExperimentOrder,
    site: Option<&Placement>,
    permit: &Permit,
) -> Result<(Target, SocketAddr), OrderFailed> {
    let scenario = &order.scenario;
    let target = scenario.target.first().cloned().ok_or_else(|| {
        let operation = format!("find endpoint '{}'", scenario.endpoint);
        failed(operation, "its target is not known")
    })?;
    let resolving = Resolving {
        site: site.cloned(),
        keep: order.last_address,
        permit: permit.clone(),
        ..Resolving::here(scenario.parameters.ip_version().copied())
    };
    let operation = || format!("find endpoint '{}'", scenario.endpoint);
    let resolved = target
        .find(&resolving)
        .map_err(|error| not_found(operation(), &error))?;
    if resolved.answered == Some(false) {
        let no_answer = resolved.remark(&target).unwrap_or_default();
        return Err(failed(operation(), no_answer));
    }
    Ok((target, resolved.address))
}

fn to_usize(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// Which certificates of the endpoint are accepted. A pin replaces everything else.
fn trust(parameters: &Parameters) -> Trust {
    if let Some(pins) = parameters.pin() {
        return Trust::Pinned(pins.fingerprints().to_vec());
    }
    match (parameters.insecure(), parameters.ca_file()) {
        (Some(true), _) => Trust::AnyCertificate,
        (_, Some(file)) => Trust::CaFile(file.into()),
        (_, None) => Trust::Public,
    }
}

fn read_key(path: &str) -> Result<Secret, OrderFailed> {
    Secret::in_file(Path::new(path)).map_err(|error| failed(format!("use key file {path}"), error))
}

impl Ready {
    /// The flows as the store keeps them.
    pub(crate) fn flows(&self) -> Vec<Flow> {
        let flow = |spec: &FlowSpec| Flow {
            index: spec.index,
            role: spec.role,
            probe: spec.target.kind(),
            name: spec.name.clone(),
            source: spec.source_port.map(|port| {
                let unspecified = if spec.address.is_ipv4() {
                    [0, 0, 0, 0].into()
                } else {
                    [0_u16; 8].into()
                };
                SocketAddr::new(unspecified, port)
            }),
            target: spec.address,
            reflector: spec.reflector,
            same_clock: self.discovery_result.same_clock && spec.role == FlowRole::Main,
        };
        let not_run = usize::from(self.fleet.is_some() || self.transfer.is_some());
        self.specs.iter().skip(not_run).map(flow).collect()
    }

    /// How far the main flow is.
    pub(crate) fn progress(&self, now: Instant<Local>) -> Progress {
        let elapsed = now - self.origin.at;
        let schedule = &self.specs[0].schedule;
        let due = u64::try_from(elapsed.nanos() / schedule.interval.nanos().max(1)).unwrap_or(0);
        Progress {
            elapsed,
            due: schedule.count.map_or(due, |count| due.min(count)),
        }
    }
}

/// Carries out a traceroute; a failure is part of the result.
pub(crate) fn trace(
    order: &TracerouteOrder,
    site: Result<Option<Placement>, OrderFailed>,
    context: &OrderContext,
) -> Traceroute {
    let started = neph_probe::anchor().wall;
    let failure = |destination: IpAddr, reason: String| Traceroute {
        block: order.block,
        endpoint: order.endpoint.clone(),
        site: None,
        destination,
        started,
        hops: Vec::new(),
        reached: false,
        failure: Some(reason),
    };
    let unspecified = IpAddr::from([0, 0, 0, 0]);
    let site = match site {
        Ok(site) => site,
        Err(error) => return failure(unspecified, error.to_string()),
    };
    let destination = match echo_to(&order.host, None, site.as_ref(), context.permit()) {
        Ok((_, address)) => address.ip(),
        Err(error) => return failure(unspecified, error.to_string()),
    };
    let permit = context.permit();
    let traced = neph_probe::traceroute(
        destination,
        order.limits,
        permit,
        site.as_ref(),
        context.stop(),
    );
    match traced {
        Ok(route) => route.into_traceroute(order.block, &order.endpoint, destination),
        Err(error) => failure(destination, error.to_string()),
    }
}
