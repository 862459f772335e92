//! Runs a trace on sockets.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

use neph_model::{
    FlowRoute, FlowTrace, Instant, Local, PathHash, Span, Stop, TraceEnd, TraceKind, TracedFlow,
    Wall,
};
use neph_sys::files;
use neph_sys::place::Placement;

use super::carrier::Carrier;
use super::plain::Plain;
use super::raw::Raw;
use super::spec::{FlowSet, PortUse, Sockets, TraceSpec};
use super::spread::Spread;
use super::tracer::Tracer;
use super::tracer_io::{Action, ProbeMatching};
use crate::ProbeError;
use crate::stamp_clock::{StampClock, now};

/// The last identifier of ICMP echo that may be a checksum too.
const LAST_PORT: u16 = 0xfffe;

/// Bytes of a permit that a probe uses: the longest, a STAMP packet.
const PROBE_BYTES: u64 = 44;
/// Time after which a permit without room is asked a second time.
const BUDGET_REST: Span = Span::from_millis(5);

/// The traced flows, and those that were left out.
#[derive(Debug)]
pub struct Traced {
    /// The routes.
    pub trace: FlowTrace,
    /// Why flows were left out: their ports are in use, or there was no file for them.
    pub left_out: Vec<ProbeError>,
    /// When the first and the last answered probe left; `None`: none was answered.
    pub answered: Option<(Instant<Local>, Instant<Local>)>,
    /// It was stopped before everything possible was known.
    pub stopped: bool,
}

/// Traces the flows until everything possible is known, or `stop` is set. The result has what is known then.
/// Given flows whose ports are in use are left out. If the process may not open a file for each flow, it
/// traces as many at a time as possible.
///
/// # Errors
/// No socket can be opened, all given ports are in use, there is no route, or the site cannot be entered. TCP
/// SYN or shared ports are requested without `CAP_NET_RAW`.
pub fn trace(
    spec: &TraceSpec,
    site: Option<&Placement>,
    stop: &Stop,
) -> Result<Traced, ProbeError> {
    driven(spec, site, stop, |driven| Traced {
        trace: FlowTrace {
            destination: spec.destination,
            kind: spec.kind,
            started: driven.started,
            routes: driven.tracer.routes(),
            enough: driven.tracer.has_enough_flows(),
        },
        answered: driven.tracer.answered(),
        left_out: driven.left_out,
        stopped: driven.stopped,
    })
}

/// A trace that is over.
pub(super) struct Driven {
    pub(super) tracer: Tracer,
    pub(super) started: Wall,
    left_out: Vec<ProbeError>,
    stopped: bool,
}

/// Traces, and passes the result to `result`.
pub(super) fn driven<R: Send>(
    spec: &TraceSpec,
    site: Option<&Placement>,
    stop: &Stop,
    result: impl Fn(Driven) -> R + Sync,
) -> Result<R, ProbeError> {
    let here = || -> Result<R, ProbeError> {
        let (carrier, matching) = open(spec)?;
        let mut driver = Driver::new(spec, carrier, matching);
        let started = StampClock::new().anchor().wall;
        let stopped = driver.run(stop)?;
        Ok(result(Driven {
            tracer: driver.tracer,
            started,
            left_out: driver.left_out,
            stopped,
        }))
    };
    match site {
        None => here(),
        Some(site) => site.run(here)?,
    }
}

/// A trace of one flow that runs in the background.
#[derive(Debug)]
pub struct Tracing {
    thread: JoinHandle<Result<TracedFlow, ProbeError>>,
    stop: Stop,
}

/// Starts at once to trace a flow that a program on this host may be using. Needs `CAP_NET_RAW`. Each hop is
/// asked once, and again without an answer. The far end gets no probe that it would count, so the route often
/// ends with the last router.
///
/// # Errors
/// No thread can be started. [`Tracing::join`] returns all other errors.
pub fn trace_flow(
    destination: SocketAddr,
    kind: TraceKind,
    source_port: u16,
    site: Option<&Placement>,
) -> Result<Tracing, ProbeError> {
    let spec = TraceSpec {
        ports: PortUse::Shared,
        queries: 1,
        ..TraceSpec::new(destination, kind, FlowSet::These(vec![source_port]))
    };
    let (site, stop) = (site.cloned(), Stop::new());
    let thread_stop = stop.clone();
    let work = move || {
        let Traced {
            trace, answered, ..
        } = trace(&spec, site.as_ref(), &thread_stop)?;
        let unasked = || FlowRoute {
            source_port,
            hops: Vec::new(),
            hash: PathHash::of(&[]),
            end: TraceEnd::Stopped,
        };
        let route = trace.routes.into_iter().next().unwrap_or_else(unasked);
        Ok(TracedFlow { route, answered })
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
    /// As [`trace`]. A panic of its thread continues in the caller.
    pub fn join(self) -> Result<TracedFlow, ProbeError> {
        let result = self.thread.join();
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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

/// Raw sockets where they are permitted, else sockets without privilege.
fn open(spec: &TraceSpec) -> Result<(Box<dyn Carrier>, ProbeMatching), ProbeError> {
    if spec.sockets == Sockets::BestPermitted {
        match Raw::open(spec.destination, spec.kind, spec.ports) {
            Ok(raw) => return Ok((Box::new(raw), ProbeMatching::ByNumber)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(fault(spec)(error)),
        }
    }
    if spec.flows == FlowSet::EachProbe {
        let spread = Spread::open(spec.destination).map_err(fault(spec))?;
        return Ok((Box::new(spread), ProbeMatching::ByNumber));
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
            Ok((Box::new(plain), ProbeMatching::OneAtATime))
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

/// The source of the next flow's port.
#[derive(Debug)]
enum Ports {
    /// Only these.
    Given(VecDeque<u16>),
    /// The next free one from here on; `None` after the last one.
    From(Option<u16>),
}

impl Ports {
    /// Returns a port to its source.
    fn give_back(&mut self, port: u16) {
        match self {
            Self::Given(ports) => ports.push_front(port),
            Self::From(next) => *next = Some(port),
        }
    }

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

impl<'a> Driver<'a> {
    fn new(spec: &'a TraceSpec, carrier: Box<dyn Carrier>, matching: ProbeMatching) -> Self {
        Self {
            tracer: Tracer::new(spec, matching, now()),
            ports: match &spec.flows {
                FlowSet::These(ports) => Ports::Given(ports.iter().copied().collect()),
                FlowSet::Count { first, .. } | FlowSet::Enough { first, .. } => {
                    Ports::From(Some(*first))
                }
                // The kernel chooses.
                FlowSet::EachProbe => Ports::Given([0].into()),
            },
            left_out: Vec::new(),
            carrier,
            spec,
        }
    }

    /// Returns whether it was stopped.
    fn run(&mut self, stop: &Stop) -> Result<bool, ProbeError> {
        let fault = fault(self.spec);
        while !stop.is_set() {
            let now = now();
            match self.tracer.poll(now) {
                Action::Send(probe) => {
                    self.await_budget(stop).map_err(&fault)?;
                    self.carrier.send(&probe).map_err(&fault)?;
                    self.carrier
                        .take_in(now, &mut self.tracer)
                        .map_err(&fault)?;
                }
                Action::Wait(until) => {
                    let until = until.min(now + Stop::POLL_INTERVAL);
                    self.carrier
                        .take_in(until, &mut self.tracer)
                        .map_err(&fault)?;
                }
                Action::AddFlows(count) => {
                    let ports = self.ports(count)?;
                    self.tracer.add(&ports);
                }
                Action::Done => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Waits until the permit has room for a probe, and reads answers meanwhile.
    fn await_budget(&mut self, stop: &Stop) -> io::Result<()> {
        while !self.spec.permit.message(PROBE_BYTES, now().nanos()) && !stop.is_set() {
            self.carrier
                .take_in(now() + BUDGET_REST, &mut self.tracer)?;
        }
        Ok(())
    }

    /// Gives back the ports of the flows so far, which are traced. Returns whether there were any.
    fn release(&mut self) -> bool {
        self.tracer.retire();
        self.carrier.release()
    }

    /// As many ports as possible, up to `count`. If not all can be held, those of traced flows are given
    /// back, and the tracer requests the rest when it has finished these.
    fn ports(&mut self, count: usize) -> Result<Vec<u16>, ProbeError> {
        let mut room = self.carrier.room();
        if room < count {
            self.release();
            room = self.carrier.room();
        }
        // If there is no room at all, holding the port reports it.
        let count = count.min(room.max(1));
        let mut ports = Vec::new();
        while ports.len() < count
            && let Some(port) = self.ports.next()
        {
            let held_port = self.carrier.hold(port);
            match held_port.map_err(|source| refusal(self.spec, port, source)) {
                Ok(()) => ports.push(port),
                Err(error) if is_taken(&error) => {
                    if matches!(self.ports, Ports::Given(_)) {
                        self.left_out.push(error);
                    }
                }
                Err(ProbeError::NoFile { .. }) if !ports.is_empty() => {
                    self.ports.give_back(port);
                    break;
                }
                Err(ProbeError::NoFile { .. }) if self.release() => self.ports.give_back(port),
                Err(error @ ProbeError::NoFile { .. }) => {
                    self.left_out.push(error);
                    // The next port would fail too, and there are thousands.
                    if matches!(self.ports, Ports::From(_)) {
                        break;
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

/// Why a flow cannot have its port, with the remedy.
fn refusal(spec: &TraceSpec, port: u16, source: io::Error) -> ProbeError {
    match (spec.kind, source.kind()) {
        (TraceKind::Icmp, io::ErrorKind::PermissionDenied) => ProbeError::IcmpForbidden,
        _ if files::is_limit(&source) => ProbeError::NoFile { port, source },
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
mod tests;
