//! One test at the server, from the client's first message to the last one.

use std::collections::BTreeMap;

use neph_model::{Span, Stop};
use neph_sys::random;
use neph_wire::throughput::{ClientMessage, ServerMessage, Token};

use super::carrier::Carrier;
use super::control::Control;
use super::engine::{Decision, Engine, TestEnd, Turn};
use super::error::ThroughputError;
use super::job::Job;
use super::listening::Listening;
use super::rr::{Answering, answer};
use super::served::{ServedEvent, ServerSpec};
use super::slot::{Active, Slot};
use crate::transfer::now;

/// Timeout of each step at the client.
const PATIENCE: Span = Span::from_secs(10);
/// Time beyond a test's duration: opening streams, data in flight, last messages.
const ALLOWANCE: Span = Span::from_secs(30);
const FIRST: &str = "what is asked for";
const LATER: &str = "the end of the test";

/// Serves the request of a connection.
pub(super) struct Session<'a> {
    pub(super) control: Control,
    pub(super) spec: &'a ServerSpec,
    pub(super) slot: &'a Slot,
    pub(super) listening: &'a Listening,
    pub(super) stop: &'a Stop,
    pub(super) event: &'a (dyn Fn(ServedEvent) + Sync),
}

impl Session<'_> {
    /// Serves it until its end.
    pub(super) fn serve(mut self) -> Result<(), ThroughputError> {
        let first = self.control.await_message(FIRST, PATIENCE, self.stop)?;
        let job = match first {
            ClientMessage::Ask(ask) => Job::Throughput(ask),
            ClientMessage::AskRr(ask) => Job::Rr(ask),
            ClientMessage::Start | ClientMessage::End => return Err(self.unexpected(FIRST)),
        };
        let token = match self.admit(&job) {
            Ok(token) => token,
            Err(reason) => return self.refuse(reason),
        };
        let _released = Released {
            slot: self.slot,
            token,
        };
        let peer = self.control.peer();
        (self.event)(ServedEvent::Began {
            peer,
            job: job.clone(),
        });
        let ended = self.carry_out(&job, token);
        let fault = match &ended {
            Ok(fault) => fault.clone(),
            Err(error) => Some(error.to_string()),
        };
        (self.event)(ServedEvent::Ended { peer, fault });
        ended.map(drop)
    }

    /// Reserves the single test slot, if the test is allowed.
    fn admit(&self, job: &Job) -> Result<Token, String> {
        let checked = match job {
            Job::Throughput(ask) => ask.check(),
            Job::Rr(ask) => ask.check(),
        };
        checked.map_err(|error| error.to_string())?;
        self.spec.caps.admit(job)?;
        if let Job::Throughput(ask) = job
            && ask.direction.has_down()
            && let Some(name) = ask.congestion.as_deref()
        {
            self.control.try_congestion(name)?;
        }
        let local = self.control.local().map_err(|error| error.to_string())?;
        let token = Token(random::token().map_err(|error| error.to_string())?);
        let mut slot = self.slot.lock();
        if let Some(active) = slot.as_ref() {
            let left = (active.until - now()).max(Span::ZERO).nanos() / 1_000_000_000;
            let other = active.peer.ip().to_canonical();
            return Err(format!(
                "busy with a test of {other} for up to {left} s more; retry then"
            ));
        }
        *slot = Some(Active {
            token,
            job: job.clone(),
            peer: self.control.peer(),
            local,
            until: now() + job.duration() + ALLOWANCE,
            carriers: BTreeMap::new(),
            is_started: false,
        });
        Ok(token)
    }

    fn refuse(mut self, reason: String) -> Result<(), ThroughputError> {
        let peer = self.control.peer();
        (self.event)(ServedEvent::Refused {
            peer,
            reason: reason.clone(),
        });
        self.control.send(&ServerMessage::Refused { reason })?;
        self.await_close();
        Ok(())
    }

    /// Returns the first fault of a stream.
    fn carry_out(&mut self, job: &Job, token: Token) -> Result<Option<String>, ThroughputError> {
        self.control.send(&ServerMessage::Granted { token })?;
        let carriers = self.gather(job)?;
        self.control.send(&ServerMessage::Ready)?;
        let start = "the start";
        match self.control.await_message(start, PATIENCE, self.stop)? {
            ClientMessage::Start => {}
            _ => return Err(self.unexpected(start)),
        }
        let mut is_ended = false;
        let fault = match job {
            Job::Throughput(ask) => {
                self.control.send(&ServerMessage::Started)?;
                let engine = Engine {
                    end: TestEnd::Server,
                    ask,
                    token,
                    read_pause: self.spec.read_pause,
                    permit: &self.spec.permit,
                };
                engine.run(carriers, &mut |turn| self.turn(turn, &mut is_ended))?
            }
            Job::Rr(ask) => {
                let answering = Answering {
                    ask,
                    token,
                    client: self.control.peer().ip(),
                    listening: self.listening,
                    spec: self.spec,
                };
                let lent = answering.prepare();
                self.control.send(&ServerMessage::Started)?;
                let turn = &mut |turn: Turn<'_>| self.turn(turn, &mut is_ended);
                answer(&answering, carriers, lent, turn)?
            }
        };
        let last = match &fault {
            Some(reason) => ServerMessage::Failed {
                reason: reason.clone(),
            },
            None => ServerMessage::Done,
        };
        self.control.send(&last)?;
        // The next client need not wait for this client's last messages.
        self.slot.free(token);
        self.await_close();
        Ok(fault)
    }

    /// Waits until all streams are connected.
    fn gather(&mut self, job: &Job) -> Result<BTreeMap<u16, Carrier>, ThroughputError> {
        let latest = now() + PATIENCE;
        loop {
            if let Some(active) = self.slot.lock().as_mut()
                && active.carriers.len() == usize::from(job.carriers())
            {
                active.is_started = true;
                return Ok(std::mem::take(&mut active.carriers));
            }
            if self.stop.is_set() {
                return Err(ThroughputError::Stopped);
            }
            let awaited = "a stream";
            if self.control.poll::<ClientMessage>(awaited)?.is_some() {
                return Err(self.unexpected(awaited));
            }
            if now() >= latest {
                let peer = self.control.peer();
                return Err(ThroughputError::Silent { peer, awaited });
            }
        }
    }

    /// Sends counts, and checks whether the client has ended the test.
    fn turn(&mut self, turn: Turn<'_>, is_ended: &mut bool) -> Result<Decision, ThroughputError> {
        let intervals = turn.board.take();
        if !intervals.is_empty() {
            self.control.send(&ServerMessage::Intervals(intervals))?;
        } else if turn.is_over {
            return Ok(Decision::Leave);
        }
        if self.stop.is_set() {
            turn.halt.set();
        }
        match self.control.poll(LATER)? {
            Some(ClientMessage::End) if !*is_ended => {
                *is_ended = true;
                turn.halt.set();
            }
            Some(_) => return Err(self.unexpected(LATER)),
            None => {}
        }
        Ok(Decision::GoOn)
    }

    /// Waits for the client to close. Closing with unread data would reset the connection, and the
    /// last messages would be lost.
    fn await_close(&mut self) {
        let latest = now() + PATIENCE;
        while now() < latest && !self.stop.is_set() {
            if self.control.poll::<ClientMessage>(LATER).is_err() {
                return;
            }
        }
    }

    const fn unexpected(&self, awaited: &'static str) -> ThroughputError {
        ThroughputError::Unexpected {
            peer: self.control.peer(),
            awaited,
        }
    }
}

/// Releases the slot when the session ends.
struct Released<'a> {
    slot: &'a Slot,
    token: Token,
}

impl Drop for Released<'_> {
    fn drop(&mut self) {
        self.slot.free(self.token);
    }
}
