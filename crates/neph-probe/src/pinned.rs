//! Small transfers on chosen source ports: the completion time that an application sees on each of
//! several flows, one transfer after the other.
//!
//! Each transfer has a connection of its own, closed by a RST so that its port is free at once. Over
//! HTTP it takes two round trips (connect, then request and reply); our own framing greets first and
//! takes three.

use std::io::{self, ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use neph_model::{Instant, Own, PinnedOutcome, PinnedTransfer, ProbeKind, Span, Stop, Target};
use neph_sys::place::Place;
use socket2::{SockAddr, Socket};

use crate::ProbeError;
use crate::channel::StreamEnd;
use crate::codec::{self, Arrival, Codec, Opening, Step, Under};
use crate::discover::{Asking, discover};
use crate::kinds;
use crate::pace::Pace;
use crate::spec::{ConnectionUse, FlowSpec, Trust};
use crate::stamp_clock::now;
use crate::stream::socket_for;

/// The source's size: "moving 1K of data".
pub const TRANSFER_SIZE: usize = 1024;

/// Which transfers to make.
#[derive(Clone, Debug)]
pub struct TransferSpec {
    /// A reflector of ours, by `http://` or `tcp://`; or any server by `http://`, which then sends
    /// what its path holds.
    pub target: Target,
    /// Where that is.
    pub address: std::net::SocketAddr,
    /// Our ports, in the order in which they take turns.
    pub source_ports: Vec<u16>,
    /// Bytes of reply to ask a reflector for.
    pub size: usize,
    /// How many transfers each port makes: the ports take turns, so that what changes with time
    /// befalls them alike.
    pub repetitions: u32,
    /// Between the beginnings of two transfers, at least.
    pub interval: Span,
    /// A transfer that takes longer has failed.
    pub timeout: Span,
    /// The place (a lab's site) to connect from; `None` is where we are.
    pub site: Option<Place>,
}

/// Makes the transfers; ends early when `stop` is set, with those that were made.
///
/// # Errors
/// When the site cannot be entered, or nobody at the target can make such a transfer. What becomes
/// of a single transfer is its outcome.
pub fn transfers(spec: &TransferSpec, stop: &Stop) -> Result<Vec<PinnedTransfer>, ProbeError> {
    let mut made = Vec::with_capacity(spec.source_ports.len() * spec.repetitions as usize);
    each_transfer(spec, stop, |one| {
        made.push(one);
        ControlFlow::Continue(())
    })?;
    Ok(made)
}

/// Makes the transfers and tells each as it ends, before the next begins; ends early when `stop` is
/// set, or when whoever is told breaks off.
///
/// # Errors
/// As [`transfers`].
pub fn each_transfer(
    spec: &TransferSpec,
    stop: &Stop,
    mut tell: impl FnMut(PinnedTransfer) -> ControlFlow<()> + Send,
) -> Result<(), ProbeError> {
    let flow = flow_of(spec)?;
    let mut every = || all(&flow, (spec, stop), &mut tell);
    match &spec.site {
        None => every(),
        Some(site) => site.run(every)?,
    }
    Ok(())
}

/// What the codecs and the socket have to know.
fn flow_of(spec: &TransferSpec) -> Result<FlowSpec, ProbeError> {
    let cannot = |reason: String, closed| ProbeError::Transfer {
        target: spec.target.to_string(),
        reason,
        closed,
    };
    if spec.target.is_secure() || !matches!(spec.target.kind(), ProbeKind::Http | ProbeKind::Tcp) {
        let reason = "only http:// and tcp:// make transfers".to_owned();
        return Err(cannot(reason, false));
    }
    let asking = Asking {
        tls_version: None,
        trust: Trust::Public,
        patience: spec.timeout,
        site: spec.site.clone(),
    };
    let found = discover(&spec.target, spec.address, &asking)?;
    if let Some(silence) = found.silence {
        return Err(cannot(silence, found.closed));
    }
    if spec.target.kind() == ProbeKind::Tcp && !found.reflector {
        let reason = "no neph reflector answers there; name an http:// server instead".to_owned();
        return Err(cannot(reason, false));
    }
    Ok(FlowSpec {
        response_size: spec.size,
        timeout: spec.timeout,
        connection_use: ConnectionUse::PerMessage,
        reflector: found.reflector,
        ..FlowSpec::plain(spec.target.clone(), spec.address)
    })
}

fn all(
    flow: &FlowSpec,
    (spec, stop): (&TransferSpec, &Stop),
    tell: &mut dyn FnMut(PinnedTransfer) -> ControlFlow<()>,
) {
    let mut flow = flow.clone();
    let mut buffer = vec![0; 64 << 10];
    let pace = Pace::new(Span::ZERO, spec.interval);
    let mut due = now();
    for pass in 0..spec.repetitions {
        for port in &spec.source_ports {
            while now() < due && !stop.is_set() {
                pace.reach(due.min(now() + Stop::PATIENCE));
            }
            if stop.is_set() {
                return;
            }
            flow.source_port = Some(*port);
            let begun = now();
            due = begun + spec.interval;
            let outcome = match transfer(&flow, begun, &mut buffer) {
                Ok((connect, whole)) => PinnedOutcome::Done { connect, whole },
                Err(why) => PinnedOutcome::Failed(why),
            };
            let told = tell(PinnedTransfer {
                source_port: *port,
                pass,
                begun,
                outcome,
            });
            if told.is_break() {
                return;
            }
        }
    }
}

/// One transfer: how long connecting took, and all of it.
fn transfer(
    flow: &FlowSpec,
    begun: Instant<Own>,
    buffer: &mut [u8],
) -> Result<(Span, Span), String> {
    let token = codec::new_token();
    let mut codec = kinds::stream_codec(flow, token, 0).ok_or("nothing can be asked for")?;
    let deadline = begun + flow.timeout;
    let socket = socket_for(flow).map_err(|error| format!("take source port: {error}"))?;
    let peer = SockAddr::from(flow.address);
    socket
        .connect_timeout(&peer, left(deadline)?)
        .map_err(|error| format!("connect to {}: {error}", flow.address))?;
    let connect = now() - begun;
    socket
        .set_nonblocking(false)
        .map_err(|error| format!("wait on the socket: {error}"))?;
    let exchange = Exchange {
        socket,
        codec: &mut *codec,
        deadline,
    };
    let end = exchange.run(buffer)?;
    Ok((connect, end - begun))
}

/// What is left until then.
fn left(deadline: Instant<Own>) -> Result<Duration, String> {
    let left = deadline - now();
    if left <= Span::ZERO {
        return Err("no reply in time".to_owned());
    }
    Ok(left.to_duration())
}

struct Exchange<'a> {
    socket: Socket,
    codec: &'a mut dyn Codec,
    deadline: Instant<Own>,
}

impl Exchange<'_> {
    /// Asks and reads until the reply is whole; when that was.
    fn run(mut self, buffer: &mut [u8]) -> Result<Instant<Own>, String> {
        let (mut out, mut inbox) = (Vec::new(), Vec::new());
        if self.codec.open(&mut out) == Opening::Ready {
            self.codec.request(0, &mut out);
        }
        loop {
            self.say(&mut out)?;
            let count = self.hear(buffer)?;
            let at = now();
            if count == 0 {
                return match self.codec.end(StreamEnd::Closed) {
                    Under::Whole(_) => Ok(at),
                    _ => Err("the peer closed before its reply was whole".to_owned()),
                };
            }
            inbox.extend_from_slice(&buffer[..count]);
            if self.take_in(&mut inbox, &mut out)? {
                return Ok(at);
            }
        }
    }

    /// Reads what has come; whether the reply is whole.
    fn take_in(&mut self, inbox: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<bool, String> {
        loop {
            let (taken, arrival) = match self.codec.step(inbox)? {
                Step::More => {
                    self.codec.pay(out);
                    return Ok(false);
                }
                Step::Took(taken, arrival) => (taken, arrival),
            };
            inbox.drain(..taken);
            match arrival {
                Arrival::Reply(_) => return Ok(true),
                Arrival::Opened => self.codec.request(0, out),
                Arrival::Nothing => {}
                Arrival::Closed(parting) | Arrival::Refused(parting) => return Err(parting.why),
            }
        }
    }

    fn say(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        let within = Some(left(self.deadline)?);
        let done = self.socket.set_write_timeout(within);
        done.and_then(|()| self.socket.write_all(out))
            .map_err(|error| told("ask", &error))?;
        out.clear();
        Ok(())
    }

    fn hear(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let within = Some(left(self.deadline)?);
        let done = self.socket.set_read_timeout(within);
        done.and_then(|()| self.socket.read(buffer))
            .map_err(|error| told("read the reply", &error))
    }
}

fn told(what: &str, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "no reply in time".to_owned(),
        _ => format!("{what}: {error}"),
    }
}
