//! The flows to run, from the options: the target's flows, and ICMP echo in addition.

use std::net::SocketAddr;

use neph_documents::ping::{PlannedFlow, PlannedFlows};
use neph_model::{
    Authenticated, FlowIndex, FlowRole, Permit, ProbeKind, RequestSize, Scheme, Span, Target,
    reply_size, sent_size, why_raised,
};
use neph_probe::{
    Discovery, DiscoveryOptions, FlowSpec, Followed, Overdue, Placement, Resolving, Schedule,
    SynSchedule, can_build_syns, discover, follow, stamp_suspicion,
};

use super::answer::find_first_answer;
use super::{Args, target_options};
use crate::congestion::{self, Unusable};
use crate::exit::Failure;
use crate::resolving;

/// Shortest interval of the additional ICMP echo.
const ICMP_INTERVAL: Span = Span::from_millis(200);
/// How long to wait for the server's identification.
const DISCOVERY_TIMEOUT: Span = Span::from_secs(2);

/// Why a STAMP reflector may not reply although it accepts TCP connections.
pub(super) fn udp_silence_reason(planned: &PlannedFlow) -> Option<String> {
    let target = &planned.spec.target;
    let is_reflector = target.kind() == ProbeKind::Udp && planned.discovery.reflector;
    let secret = stamp_suspicion(planned.spec.key.is_some());
    is_reflector.then(|| {
        format!("{target}: neph reflect is there, but nothing comes back over UDP: a firewall drops it, or {secret}")
    })
}

/// Finds the server that answers, and selects the flows.
pub(super) fn plan_flows(args: &Args) -> Result<PlannedFlows, Failure> {
    let mut planned_flows = PlannedFlows {
        flows: Vec::new(),
        remarks: Vec::new(),
    };
    if let Some(name) = &args.congestion {
        check_congestion(name)?;
    }
    if args.target.contains("://") {
        let target = Target::parse(&args.target).map_err(Failure::usage)?;
        check_sizes(target.kind(), args)?;
        target_options::check(args, &target)?;
        planned_flows
            .remarks
            .extend(size_remark(target.kind(), args));
        planned_flows
            .remarks
            .extend(check_syns(target.kind(), args)?);
        let Followed {
            target,
            address,
            discovery,
            redirects,
        } = identify_server(target, args)?;
        planned_flows.remarks.extend(
            redirects
                .into_iter()
                .map(|redirect| format!("followed: {redirect}")),
        );
        if discovery.untrusted && args.is_endless() {
            let reason = discovery.silence.unwrap_or_default();
            return Err(Failure::Refused(format!("{target}: {reason}")));
        }
        planned_flows
            .remarks
            .extend(silence_remark(&target, &discovery));
        planned_flows
            .remarks
            .extend(status_remark(&target, &discovery));
        let peer = Peer {
            target,
            address,
            discovery,
        };
        peer.add_flow(args, &mut planned_flows);
    } else {
        add_answering_flows(args, &mut planned_flows)?;
    }
    add_icmp(args, &mut planned_flows);
    Ok(planned_flows)
}

/// Refuses sizes that are impossible for this kind. Replies of datagrams have the size of their
/// requests, for any requested size.
fn check_sizes(kind: ProbeKind, args: &Args) -> Result<(), Failure> {
    let max = kind.properties().most_payload;
    let is_datagram = kind.is_datagram();
    let sizes = [
        ("--request-size", args.request_size),
        ("--response-size", args.response_size),
    ];
    let checked_sizes = sizes.into_iter().take(if is_datagram { 1 } else { 2 });
    for (option, size) in checked_sizes {
        if size > max {
            return Err(Failure::Usage(format!(
                "{option} {}: {kind} carries at most {}",
                size.exact(),
                max.exact()
            )));
        }
    }
    Ok(())
}

/// The message that a requested size is not sent exactly; `None` for the default.
fn size_remark(kind: ProbeKind, args: &Args) -> Option<String> {
    let authenticated = Authenticated::by(args.stamp_key.as_ref());
    let requested_size =
        Some(args.request_size).filter(|size| *size != super::DEFAULT_REQUEST_SIZE)?;
    why_raised(
        kind,
        requested_size,
        sent_size(kind, requested_size, authenticated),
    )
}

/// Applies the rate limit of SYNs. Returns a message about the replacement if SYNs cannot be built.
fn check_syns(kind: ProbeKind, args: &Args) -> Result<Option<String>, Failure> {
    if !kind.properties().may_look_like_attack {
        return match args.rate_cap {
            Some(_) => Err(Failure::usage("--rate-cap: only syn:// has a cap")),
            None => Ok(None),
        };
    }
    let schedule = SynSchedule {
        flows: 1,
        targets: 1,
        interval: args.interval,
    };
    schedule.check(args.rate_cap).map_err(Failure::usage)?;
    let fallback_remark = "no permission to build TCP segments (CAP_NET_RAW): plain connects are timed by \
                    the program instead, and broken off at once";
    Ok((!can_build_syns()).then(|| fallback_remark.to_owned()))
}

/// Why the server is not identified. TCP cannot detect a STAMP reflector.
fn silence_remark(target: &Target, discovery: &Discovery) -> Option<String> {
    let reason = discovery.silence.as_ref()?;
    (!target.kind().is_datagram()).then(|| {
        if discovery.accepted {
            format!("{target} did not identify itself: {reason}")
        } else {
            format!("no answer from {target}: {reason}")
        }
    })
}

/// Replies with an error status are usually not the intended measurement.
fn status_remark(target: &Target, discovery: &Discovery) -> Option<String> {
    let status = discovery.http.filter(|status| *status >= 400)?;
    target.kind().properties().has_status.then(|| {
        format!("{target} answers HEAD with status {status}; what it answers to GET is measured")
    })
}

fn check_congestion(name: &str) -> Result<(), Failure> {
    congestion::check(name).map_err(|Unusable { reason, loaded }| {
        Failure::Usage(format!(
            "--congestion {name}: {reason}; loaded here: {loaded}"
        ))
    })
}

/// Finds the address and identifies its server; with --follow at the target that redirects lead to.
fn identify_server(target: Target, args: &Args) -> Result<Followed, Failure> {
    if args.follow && !target.kind().properties().has_status {
        return Err(Failure::usage(
            "--follow: only http:// and https:// redirect",
        ));
    }
    let address = resolving::find(&target, args.ip.version(), args.placement())?.address;
    let options = args.discovery_options();
    let discovery = discover(&target, address, &options)?;
    if !args.follow {
        return Ok(Followed::unredirected(target, address, discovery));
    }
    let resolving = Resolving {
        site: args.placement(),
        ..Resolving::here(args.ip.version())
    };
    follow(target, address, discovery, &resolving, &options).map_err(Failure::refused)
}

impl Args {
    /// The site; `None` for this host.
    pub(super) fn placement(&self) -> Option<Placement> {
        self.site.as_ref().map(Placement::with_name)
    }

    fn discovery_options(&self) -> DiscoveryOptions {
        DiscoveryOptions {
            tls_version: super::TlsChoice::version(self.tls_version),
            trust: self.trust(),
            patience: DISCOVERY_TIMEOUT.min(self.timeout),
            site: self.placement(),
        }
    }
}

/// The peer of a flow.
struct Peer {
    target: Target,
    address: SocketAddr,
    discovery: Discovery,
}

impl Peer {
    /// A peer without further information.
    fn without_discovery(target: Target, address: SocketAddr) -> Self {
        let discovery = Discovery::default();
        Self {
            target,
            address,
            discovery,
        }
    }

    /// Adds a flow to this peer.
    fn add_flow(self, args: &Args, planned_flows: &mut PlannedFlows) {
        let Self {
            target,
            address,
            discovery,
        } = self;
        let index = u32::try_from(planned_flows.flows.len()).unwrap_or(u32::MAX);
        let role = if index == 0 {
            FlowRole::Main
        } else {
            FlowRole::Companion
        };
        let to_usize = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        let mut spec = FlowSpec {
            index: FlowIndex(index),
            role,
            name: target.kind().name().to_owned(),
            address,
            schedule: Schedule {
                interval: args.interval,
                count: args.count,
                duration: args.duration,
            },
            request_size: to_usize(args.request_size.bytes()),
            response_size: to_usize(reply_size(target.kind(), args.response_size).bytes()),
            source_port: args.source_port.filter(|_| role == FlowRole::Main),
            timeout: args.timeout,
            tls_version: super::TlsChoice::version(args.tls_version),
            trust: args.trust(),
            connection_use: args.connection_use(),
            congestion: args.congestion.clone(),
            key: args.stamp_key.clone(),
            spin: args.spin,
            priority: args.priority(),
            site: args.placement(),
            expected_status: args.expect_status,
            rate_cap: args.rate_cap,
            permit: Permit::ANYTHING,
            tcp_stats: None,
            overdue: if args.catch_up {
                Overdue::Send
            } else {
                Overdue::Skip
            },
            reflector: discovery.reflector,
            target,
        };
        match spec.target.kind().properties().request_size {
            RequestSize::AtLeast(_) => {}
            RequestSize::Stamp => {
                spec.request_size = spec.stamp_bytes();
                spec.response_size = spec.request_size;
            }
            RequestSize::Fixed(_) => (spec.request_size, spec.response_size) = (0, 0),
        }
        planned_flows.flows.push(PlannedFlow { spec, discovery });
    }
}

/// For a target without a scheme: the first usual protocol that answers, otherwise ICMP. Options
/// that only streams support are reported, and datagrams are measured without them.
fn add_answering_flows(args: &Args, planned_flows: &mut PlannedFlows) -> Result<(), Failure> {
    check_sizes(ProbeKind::Tcp, args)?;
    let answers = find_first_answer(args, &args.discovery_options())?;
    let Some(best) = answers.best else {
        if args.needs_certificate() {
            // ICMP echo has no certificate: the reply may come from another server than the
            // intended one.
            return Err(Failure::Refused(answers.sentence));
        }
        planned_flows.remarks.push(format!(
            "{}; ICMP only (name a scheme and port to measure more: {})",
            answers.sentence,
            Scheme::list()
        ));
        let host_target = Target::under("http", &args.target).map_err(Failure::usage)?;
        let target = Target::icmp(host_target.host()).map_err(Failure::usage)?;
        check_sizes(target.kind(), args)?;
        let address = resolving::find(&target, args.ip.version(), args.placement())?.address;
        Peer::without_discovery(target, address).add_flow(args, planned_flows);
        return Ok(());
    };
    planned_flows.remarks.push(answers.sentence);
    for target in best.targets {
        if let (ProbeKind::Udp, Err(Failure::Usage(reason))) =
            (target.kind(), check_sizes(target.kind(), args))
        {
            planned_flows
                .remarks
                .push(format!("{target} is left out: {reason}"));
            continue;
        }
        planned_flows
            .remarks
            .extend(status_remark(&target, &best.discovery));
        let peer = Peer {
            target,
            address: best.address,
            discovery: best.discovery.clone(),
        };
        peer.add_flow(args, planned_flows);
    }
    Ok(())
}

fn add_icmp(args: &Args, planned_flows: &mut PlannedFlows) {
    let Some(main) = planned_flows.flows.first() else {
        return;
    };
    if args.no_icmp || main.spec.target.kind().is_echo() {
        return;
    }
    let mut address = main.spec.address;
    address.set_port(0);
    let Ok(target) = Target::icmp(main.spec.target.host()) else {
        return;
    };
    Peer::without_discovery(target, address).add_flow(args, planned_flows);
    if let Some(icmp) = planned_flows.flows.last_mut() {
        let spec = &mut icmp.spec;
        spec.role = FlowRole::Companion;
        spec.request_size = 56;
        spec.rate_cap = None;
        let schedule = &mut spec.schedule;
        if schedule.interval < ICMP_INTERVAL {
            let ratio = ICMP_INTERVAL.nanos() / schedule.interval.nanos();
            schedule.count = schedule
                .count
                .map(|count| (count / u64::try_from(ratio).unwrap_or(1).max(1)).max(1));
            schedule.interval = ICMP_INTERVAL;
        }
    }
}
