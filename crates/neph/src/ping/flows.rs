//! From what was typed to the flows that run: the target's own, and ICMP echo beside it.

use std::net::SocketAddr;

use neph_model::{FlowIndex, FlowRole, ProbeKind, Span};
use neph_probe::{Asking, Discovery, FlowSpec, KINDS, Schedule, Target, TargetError, discover};

use super::Args;
use crate::exit::Failure;

/// Where a reflector listens unless told otherwise.
const REFLECTOR_PORT: u16 = 8080;
/// ICMP beside a fast flow goes no faster than this.
const ICMP_INTERVAL: Span = Span::from_millis(200);
/// How long to wait for somebody to say who they are.
const PATIENCE: Span = Span::from_secs(2);

/// One flow that will run.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) spec: FlowSpec,
    pub(super) discovery: Discovery,
}

impl Planned {
    /// Whether the target stands for this flow, and it is no mere companion.
    pub(super) fn is_asked_for(&self) -> bool {
        self.spec.role == FlowRole::Main || self.spec.target.kind() != ProbeKind::Icmp
    }
}

/// Everything that will run.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) flows: Vec<Planned>,
    /// What the person should know before it starts.
    pub(super) remarks: Vec<String>,
}

/// Finds who answers, and decides what runs.
pub(super) fn find(args: &Args) -> Result<Found, Failure> {
    let mut found = Found {
        flows: Vec::new(),
        remarks: Vec::new(),
    };
    if args.target.contains("://") {
        let target = Target::parse(&args.target).map_err(Failure::usage)?;
        let address = resolve(&target, args)?;
        let discovery = ask(&target, address, args)?;
        if let (Some(silence), false) = (&discovery.silence, target.kind() == ProbeKind::Udp) {
            found
                .remarks
                .push(format!("{target} did not say who it is: {silence}"));
        }
        found.add(args, target, address, discovery);
    } else {
        whatever_answers(args, &mut found)?;
    }
    add_icmp(args, &mut found);
    Ok(found)
}

fn resolve(target: &Target, args: &Args) -> Result<SocketAddr, Failure> {
    target.resolve(args.version()).map_err(|error| match error {
        TargetError::Unresolved { .. } => Failure::refused(error),
        other => Failure::usage(other),
    })
}

fn ask(target: &Target, address: SocketAddr, args: &Args) -> Result<Discovery, Failure> {
    let asking = Asking {
        tls_version: super::TlsChoice::version(args.tls_version),
        trust: args.trust(),
        patience: PATIENCE.min(args.timeout),
        site: args.site.clone(),
    };
    discover(target, address, &asking).map_err(Failure::refused)
}

impl Found {
    fn add(&mut self, args: &Args, target: Target, address: SocketAddr, discovery: Discovery) {
        let index = u32::try_from(self.flows.len()).unwrap_or(u32::MAX);
        let role = if index == 0 {
            FlowRole::Main
        } else {
            FlowRole::Companion
        };
        let fit = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        let spec = FlowSpec {
            index: FlowIndex(index),
            role,
            name: target.kind().name().to_owned(),
            address,
            schedule: Schedule {
                interval: args.interval,
                count: args.messages(),
            },
            request_size: fit(args.request_size.bytes()),
            response_size: fit(args.response_size.bytes()),
            source_port: args.source_port.filter(|_| role == FlowRole::Main),
            timeout: args.timeout,
            tls_version: super::TlsChoice::version(args.tls_version),
            trust: args.trust(),
            connection_use: args.connection_use(),
            congestion: args.congestion.clone(),
            key: args.stamp_key.clone(),
            spin: args.spin,
            priority: args.priority(),
            site: args.site.clone(),
            reflector: discovery.reflector,
            target,
        };
        self.flows.push(Planned { spec, discovery });
    }
}

/// A bare host: one flow for each way in which it answers, reflector first.
fn whatever_answers(args: &Args, found: &mut Found) -> Result<(), Failure> {
    let (host, port) = match args.target.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (args.target.as_str(), None),
    };
    let host = if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let port = match port {
        None => REFLECTOR_PORT,
        Some(digits) => digits.parse().map_err(|_| {
            Failure::Usage(format!("target '{}': '{digits}' is no port", args.target))
        })?,
    };
    let target = |scheme: &str| Target::parse(&format!("{scheme}://{host}:{port}"));
    let first = target("ws").map_err(Failure::usage)?;
    let address = resolve(&first, args)?;
    let discovery = ask(&first, address, args)?;
    if discovery.reflector {
        for scheme in ["ws", "tcp", "udp"] {
            let target = target(scheme).map_err(Failure::usage)?;
            found.add(args, target, address, discovery.clone());
        }
    } else if discovery.silence.is_none() {
        let target = target("tcp").map_err(Failure::usage)?;
        found.add(args, target, address, discovery);
    } else {
        let schemes: Vec<&str> = KINDS.iter().map(|scheme| scheme.name).collect();
        found.remarks.push(format!(
            "nobody answers at {address}; ICMP only (name a scheme and port to measure more: {})",
            schemes.join(", ")
        ));
        let target = Target::parse(&format!("icmp://{host}")).map_err(Failure::usage)?;
        found.add(args, target, address, Discovery::default());
    }
    Ok(())
}

fn add_icmp(args: &Args, found: &mut Found) {
    let Some(main) = found.flows.first() else {
        return;
    };
    if args.no_icmp || main.spec.target.kind() == ProbeKind::Icmp {
        return;
    }
    let address = SocketAddr::new(main.spec.address.ip(), 0);
    let host = main.spec.target.host().to_owned();
    let bracketed = if host.contains(':') {
        format!("[{host}]")
    } else {
        host
    };
    let Ok(target) = Target::parse(&format!("icmp://{bracketed}")) else {
        return;
    };
    found.add(args, target, address, Discovery::default());
    if let Some(icmp) = found.flows.last_mut() {
        let spec = &mut icmp.spec;
        spec.role = FlowRole::Companion;
        spec.request_size = 56;
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
