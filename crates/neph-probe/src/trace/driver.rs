//! A trace on sockets.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

use neph_model::{FlowRoute, FlowTrace, PathHash, TraceEnd, TraceKind, Wall};
use neph_sys::place::Place;

use super::carrier::Carrier;
use super::plain::Plain;
use super::raw::Raw;
use super::spec::{FlowSet, PortUse, Sockets, TraceSpec};
use super::tracer::{Apart, Tracer, Turn};
use crate::ProbeError;
use crate::stamp_clock::{StampClock, now};
use crate::stop::Stop;

/// The last identifier of ICMP echo that may be a checksum too.
const LAST_PORT: u16 = 0xfffe;

/// What was traced, and what was not.
#[derive(Debug)]
pub struct Traced {
    /// The routes.
    pub trace: FlowTrace,
    /// Why given flows were left out: somebody else has their ports.
    pub left_out: Vec<ProbeError>,
}

/// Traces the flows until all is known that can be, or `stop` is set; what is known then is told.
/// Given flows whose ports are taken are left out.
///
/// # Errors
/// No socket can be had, all given ports are taken, nothing can be sent (no route), the site cannot
/// be entered, or TCP SYN or shared ports are asked for without `CAP_NET_RAW`.
pub fn trace(spec: &TraceSpec, site: Option<&Place>, stop: &Stop) -> Result<Traced, ProbeError> {
    let here = || -> Result<Traced, ProbeError> {
        let (carrier, apart) = open(spec)?;
        let mut driver = Driver {
            tracer: Tracer::new(spec, apart, now()),
            ports: match &spec.flows {
                FlowSet::These(ports) => Ports::Given(ports.iter().copied().collect()),
                FlowSet::Count { first, .. } | FlowSet::Enough { first, .. } => {
                    Ports::From(Some(*first))
                }
            },
            left_out: Vec::new(),
            carrier,
            spec,
        };
        let started: Wall = StampClock::new().anchor().wall;
        driver.run(stop)?;
        let trace = FlowTrace {
            destination: spec.destination,
            kind: spec.kind,
            started,
            routes: driver.tracer.routes(),
            enough: driver.tracer.enough(),
        };
        let left_out = driver.left_out;
        Ok(Traced { trace, left_out })
    };
    match site {
        None => here(),
        Some(site) => site.run(here)?,
    }
}

/// A trace of one flow that runs beside whatever else the program does.
#[derive(Debug)]
pub struct Tracing {
    thread: JoinHandle<Result<FlowRoute, ProbeError>>,
    stop: Stop,
}

/// Starts at once to trace a flow that somebody of this host may be using at the same time; needs
/// `CAP_NET_RAW`. Each hop is asked once, and again where nobody answers. The far end is not asked
/// anything that it would count, so that the route often ends with the last router.
///
/// # Errors
/// No thread can be had. Everything else is told by [`Tracing::join`].
pub fn trace_flow(
    destination: SocketAddr,
    kind: TraceKind,
    source_port: u16,
    site: Option<&Place>,
) -> Result<Tracing, ProbeError> {
    let spec = TraceSpec {
        ports: PortUse::Shared,
        queries: 1,
        ..TraceSpec::new(destination, kind, FlowSet::These(vec![source_port]))
    };
    let (site, stop) = (site.cloned(), Stop::new());
    let ours = stop.clone();
    let work = move || {
        let trace = trace(&spec, site.as_ref(), &ours)?.trace;
        let unasked = || FlowRoute {
            source_port,
            hops: Vec::new(),
            hash: PathHash::of(&[]),
            end: TraceEnd::Stopped,
        };
        Ok(trace.routes.into_iter().next().unwrap_or_else(unasked))
    };
    let thread = thread::Builder::new()
        .name("trace".to_owned())
        .spawn(work)
        .map_err(ProbeError::Thread)?;
    Ok(Tracing { thread, stop })
}

impl Tracing {
    /// Whether [`Self::join`] would not wait.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it early: what is known by then is its result.
    pub fn stop(&self) {
        self.stop.set();
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// As [`trace`]. A panic of its thread goes on in the caller.
    pub fn join(self) -> Result<FlowRoute, ProbeError> {
        let ended = self.thread.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn fault(spec: &TraceSpec) -> impl Fn(io::Error) -> ProbeError {
    let address = spec.destination;
    move |source| ProbeError::Socket {
        operation: "trace the route to",
        address,
        source,
    }
}

/// Raw sockets where they are permitted, else what works without.
fn open(spec: &TraceSpec) -> Result<(Box<dyn Carrier>, Apart), ProbeError> {
    // A file for each flow. Refused, it is the flow without a file that says so.
    let _ = neph_sys::files::raise_limit();
    if spec.sockets == Sockets::BestPermitted {
        match Raw::open(spec.destination, spec.kind, spec.ports) {
            Ok(raw) => return Ok((Box::new(raw), Apart::ByNumber)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(fault(spec)(error)),
        }
    }
    match (spec.ports, spec.kind) {
        (PortUse::Shared, _) => Err(ProbeError::RawForbidden {
            what: "tracing a flow that is in use",
            instead: "",
        }),
        (PortUse::Ours, TraceKind::Syn) => Err(ProbeError::RawForbidden {
            what: "tracing with TCP SYN",
            instead: ", or trace with udp://",
        }),
        (PortUse::Ours, TraceKind::Udp | TraceKind::Icmp) => {
            let plain = Plain::open(spec.destination, spec.kind).map_err(fault(spec))?;
            Ok((Box::new(plain), Apart::OneAtATime))
        }
    }
}

struct Driver<'a> {
    spec: &'a TraceSpec,
    tracer: Tracer,
    carrier: Box<dyn Carrier>,
    ports: Ports,
    /// Why given flows are not traced.
    left_out: Vec<ProbeError>,
}

/// Where the next flow's port comes from.
#[derive(Debug)]
enum Ports {
    /// These, and no other ones.
    Given(VecDeque<u16>),
    /// The next one from here on that is free; `None` behind the last one.
    From(Option<u16>),
}

impl Ports {
    fn next(&mut self) -> Option<u16> {
        match self {
            Self::Given(ports) => ports.pop_front(),
            Self::From(next) => {
                let port = (*next)?;
                *next = port.checked_add(1).filter(|next| *next <= LAST_PORT);
                Some(port)
            }
        }
    }
}

impl Driver<'_> {
    fn run(&mut self, stop: &Stop) -> Result<(), ProbeError> {
        let fault = fault(self.spec);
        while !stop.is_set() {
            let now = now();
            match self.tracer.poll(now) {
                Turn::Ask(ask) => {
                    self.carrier.send(&ask).map_err(&fault)?;
                    self.carrier
                        .take_in(now, &mut self.tracer)
                        .map_err(&fault)?;
                }
                Turn::Wait(until) => {
                    let until = until.min(now + Stop::PATIENCE);
                    self.carrier
                        .take_in(until, &mut self.tracer)
                        .map_err(&fault)?;
                }
                Turn::MoreFlows(count) => {
                    let ports = self.ports(count)?;
                    self.tracer.add(&ports);
                }
                Turn::Over => return Ok(()),
            }
        }
        Ok(())
    }

    /// As many ports as there are, up to `count`.
    fn ports(&mut self, count: usize) -> Result<Vec<u16>, ProbeError> {
        let mut ports = Vec::new();
        while ports.len() < count
            && let Some(port) = self.ports.next()
        {
            let held = self.carrier.hold(port);
            match held.map_err(|source| refusal(self.spec, port, source)) {
                Ok(()) => ports.push(port),
                Err(error) if is_taken(&error) => {
                    if matches!(self.ports, Ports::Given(_)) {
                        self.left_out.push(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if self.tracer.is_without_flows() && ports.is_empty() && !self.left_out.is_empty() {
            return Err(self.left_out.swap_remove(0));
        }
        Ok(ports)
    }
}

/// The process's and the system's limit of open files.
const NO_FILE: [i32; 2] = [24, 23];

/// Why a flow cannot have its port, with the remedy.
fn refusal(spec: &TraceSpec, port: u16, source: io::Error) -> ProbeError {
    let is_limit = |code| NO_FILE.contains(&code);
    match (spec.kind, source.kind()) {
        (TraceKind::Icmp, io::ErrorKind::PermissionDenied) => ProbeError::IcmpForbidden,
        _ if source.raw_os_error().is_some_and(is_limit) => ProbeError::NoFile { port, source },
        _ => ProbeError::SourcePort {
            port,
            address: spec.destination,
            source,
        },
    }
}

fn is_taken(error: &ProbeError) -> bool {
    matches!(error, ProbeError::SourcePort { source, .. }
        if source.kind() == io::ErrorKind::AddrInUse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Blocks;

    #[test]
    fn a_port_of_a_block_that_a_fleet_has_is_not_traced() {
        let mut fleet = Blocks::new("udp");
        let port = (40_960..=u16::MAX)
            .step_by(1_024)
            .find(|port| fleet.take(*port).is_ok())
            .expect("a block is nobody's");
        let mut spec = TraceSpec::new(
            ([127, 0, 0, 1], 9).into(),
            TraceKind::Udp,
            FlowSet::These(vec![port]),
        );
        for sockets in [Sockets::Plain, Sockets::BestPermitted] {
            spec.sockets = sockets;
            let refused = trace(&spec, None, &Stop::new()).expect_err("it is the fleet's");
            assert!(is_taken(&refused), "{refused}");
        }
    }

    #[test]
    fn a_limit_of_files_is_no_port_of_somebody_elses() {
        let nobody = ([127, 0, 0, 1], 9).into();
        let spec = TraceSpec::new(nobody, TraceKind::Udp, FlowSet::These(vec![7]));
        let told = |code| refusal(&spec, 7, io::Error::from_raw_os_error(code));
        let (limit, taken) = (told(24), told(98));
        assert!(limit.to_string().contains("ulimit -n") && !is_taken(&limit));
        assert!(taken.to_string().contains("choose another one") && is_taken(&taken));
    }
}
