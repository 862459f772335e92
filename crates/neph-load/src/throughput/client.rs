//! Carries out a throughput test as its client.

use std::net::SocketAddr;

use neph_model::{Instant, Own, Permit, Span, Stop, Wall};
use neph_sys::clock;
use neph_wire::throughput::{Ask, ClientMessage, ServerMessage};

use super::control::Control;
use super::engine::{Decision, End, Engine, Turn};
use super::error::ThroughputError;
use super::measured::Measured;
use super::opening::{open, unexpected};
use super::second::{Second, Seconds};
use crate::transfer::{connect, now};

/// How long the server may take for each step.
const PATIENCE: Span = Span::from_secs(10);
const GRANT: &str = "whether the test is granted";
const STARTED: &str = "the start";
const LAST: &str = "the end of the test";

/// A test that is asked of a server.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Where it listens.
    pub server: SocketAddr,
    /// What is measured.
    pub ask: &'a Ask,
    /// What this end may send and receive.
    pub permit: &'a Permit,
}

/// Measures towards a server until the duration is over or `stop` is set; `on_second` is given each
/// second of each direction once both ends have counted it.
///
/// # Errors
/// The server cannot be reached, refuses, or breaks off before anything was counted. What was counted
/// until a later fault is kept, with the fault ([`Measured::fault`]).
pub fn measure(
    asked: Asked<'_>,
    stop: &Stop,
    on_second: &mut dyn FnMut(&Second),
) -> Result<Measured, ThroughputError> {
    let Asked {
        server,
        ask,
        permit,
    } = asked;
    ask.check()?;
    let stream = connect(server, PATIENCE);
    let stream = stream.map_err(ThroughputError::socket("connect to", server))?;
    let mut control = Control::new(stream, server, &[])?;
    if let Some(name) = ask.congestion.as_deref().filter(|_| ask.direction.has_up()) {
        let refused = |reason| ThroughputError::Refused {
            peer: server,
            reason,
        };
        control.try_congestion(name).map_err(refused)?;
    }
    control.send(&ClientMessage::Ask(ask.clone()))?;
    let token = match control.await_message(GRANT, PATIENCE, stop)? {
        ServerMessage::Granted { token } => token,
        other => return Err(unexpected(server, other, GRANT)),
    };
    let carriers = open(&mut control, ask, token, stop)?;
    control.send(&ClientMessage::Start)?;
    match control.await_message(STARTED, PATIENCE, stop)? {
        ServerMessage::Started => {}
        other => return Err(unexpected(server, other, STARTED)),
    }
    let mut client = Client {
        control,
        stop,
        measured: Measured::begin(server, ask.clone(), Wall::from_unix_nanos(clock::wall().0)),
        seconds: Seconds::default(),
        on_second,
        is_done: false,
        ended: None,
    };
    let engine = Engine {
        end: End::Client,
        ask,
        token,
        read_pause: Span::ZERO,
        permit,
    };
    let fault = engine.run(carriers, &mut |turn| Ok(client.turn(turn)))?;
    Ok(client.finish(fault))
}

struct Client<'a> {
    control: Control,
    stop: &'a Stop,
    measured: Measured,
    seconds: Seconds,
    on_second: &'a mut dyn FnMut(&Second),
    is_done: bool,
    /// When the server was sent the end.
    ended: Option<Instant<Own>>,
}

impl Client<'_> {
    fn turn(&mut self, turn: Turn<'_>) -> Decision {
        self.measured.client.append(turn.board.take());
        if self.stop.is_set() {
            self.measured.is_stopped = true;
            turn.halt.set();
        }
        let is_lost = self.measured.fault.is_some();
        if is_lost {
            turn.halt.set();
        }
        if (turn.is_over || turn.halt.is_set()) && self.ended.is_none() && !self.is_done {
            self.ended = Some(now());
            let sent = self.control.send(&ClientMessage::End);
            self.keep(sent);
        }
        if !self.is_done && !is_lost {
            let heard = self.hear();
            self.keep(heard);
        } else if !turn.is_over {
            clock::nap(Stop::PATIENCE.to_duration());
        }
        for second in self.seconds.complete(&self.measured) {
            (self.on_second)(&second);
        }
        let is_late = self.ended.is_some_and(|ended| now() >= ended + PATIENCE);
        if is_late && !self.is_done && !is_lost {
            let peer = self.control.peer();
            let awaited = LAST;
            self.keep(Err(ThroughputError::Silent { peer, awaited }));
        }
        let is_over = turn.is_over && (self.is_done || self.measured.fault.is_some());
        if is_over {
            Decision::Leave
        } else {
            Decision::GoOn
        }
    }

    fn hear(&mut self) -> Result<(), ThroughputError> {
        match self.control.poll(LAST)? {
            None => {}
            Some(ServerMessage::Intervals(intervals)) => self.measured.server.append(intervals),
            Some(ServerMessage::Done) => self.is_done = true,
            Some(other) => return Err(unexpected(self.control.peer(), other, LAST)),
        }
        Ok(())
    }

    /// What was counted outlives a fault.
    fn keep(&mut self, outcome: Result<(), ThroughputError>) {
        if let Err(error) = outcome {
            self.measured.fault.get_or_insert_with(|| error.to_string());
        }
    }

    fn finish(mut self, fault: Option<String>) -> Measured {
        for second in self.seconds.rest(&self.measured) {
            (self.on_second)(&second);
        }
        let mut measured = self.measured;
        // A fault of ours makes the server's stream break; ours is the cause.
        measured.fault = fault.or(measured.fault);
        measured
    }
}
