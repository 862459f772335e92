//! One test at the server, from the client's first message to the last one.

use std::collections::BTreeMap;

use neph_model::{Span, Stop};
use neph_sys::random;
use neph_wire::throughput::{ClientMessage, ServerMessage, Token};

use super::carrier::Carrier;
use super::control::Control;
use super::engine::{Decision, Engine, TestEnd, TestState};
use super::error::ThroughputError;
use super::job::Job;
use super::listening::Listening;
use super::rr::{RrServer, serve};
use super::served::{ServedEvent, ServerSpec};
use super::slot::{Active, Slot};
use crate::transfer::now;

/// Timeout of each step at the client.
const MESSAGE_TIMEOUT: Span = Span::from_secs(10);
/// Time beyond a test's duration: opening streams, data in flight, last messages.
const END_MARGIN: Span = Span::from_secs(30);
const AWAITED_REQUEST: &str = "the request";
const AWAITED_END: &str = "the end of the test";

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
        let request_message =
            self.control
                .await_message(AWAITED_REQUEST, MESSAGE_TIMEOUT, self.stop)?;
        let job = match request_message {
            ClientMessage::Ask(test_request) => Job::Throughput(test_request),
            ClientMessage::AskRr(test_request) => Job::Rr(test_request),
            ClientMessage::Start | ClientMessage::End => {
                return Err(self.unexpected(AWAITED_REQUEST));
            }
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
        let result = self.carry_out(&job, token);
        let fault = match &result {
            Ok(fault) => fault.clone(),
            Err(error) => Some(error.to_string()),
        };
        (self.event)(ServedEvent::Ended { peer, fault });
        result.map(drop)
    }

    /// Reserves the single test slot, if the test is allowed.
    fn admit(&self, job: &Job) -> Result<Token, String> {
        let checked = match job {
            Job::Throughput(test_request) => test_request.check(),
            Job::Rr(test_request) => test_request.check(),
        };
        checked.map_err(|error| error.to_string())?;
        self.spec.caps.admit(job)?;
        if let (Job::Rr(_), Some(key)) = (job, self.spec.permit.rate_budget()) {
            // The budget would slow the server down, and the result would be the budget.
            return Err(format!(
                "transactions come as fast as replies, which {key} in the policy file of the \
                 server's agent does not allow; remove this key there, and restart that agent"
            ));
        }
        if let Job::Throughput(test_request) = job
            && test_request.direction.has_down()
            && let Some(name) = test_request.congestion.as_deref()
        {
            self.control.try_congestion(name)?;
        }
        let local = self.control.local().map_err(|error| error.to_string())?;
        let token = Token(random::token().map_err(|error| error.to_string())?);
        let mut slot = self.slot.lock();
        if let Some(active) = slot.as_ref() {
            let remaining_seconds = (active.until - now()).max(Span::ZERO).nanos() / 1_000_000_000;
            let other = active.peer.ip().to_canonical();
            return Err(format!(
                "busy with a test of {other} for up to {remaining_seconds} s more; retry then"
            ));
        }
        *slot = Some(Active {
            token,
            job: job.clone(),
            peer: self.control.peer(),
            local,
            until: now() + job.duration() + END_MARGIN,
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
        match self
            .control
            .await_message(start, MESSAGE_TIMEOUT, self.stop)?
        {
            ClientMessage::Start => {}
            _ => return Err(self.unexpected(start)),
        }
        let mut is_ended = false;
        let fault = match job {
            Job::Throughput(test_request) => {
                self.control.send(&ServerMessage::Started)?;
                let engine = Engine {
                    end: TestEnd::Server,
                    test_request,
                    token,
                    read_pause: self.spec.read_pause,
                    permit: &self.spec.permit,
                };
                engine.run(carriers, &mut |state| self.poll(state, &mut is_ended))?
            }
            Job::Rr(test_request) => {
                let rr_server = RrServer {
                    test_request,
                    token,
                    client: self.control.peer().ip(),
                    listening: self.listening,
                    spec: self.spec,
                };
                let lent = rr_server.prepare();
                self.control.send(&ServerMessage::Started)?;
                let poll = &mut |state: TestState<'_>| self.poll(state, &mut is_ended);
                serve(&rr_server, carriers, lent, poll)?
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
        let deadline = now() + MESSAGE_TIMEOUT;
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
            if now() >= deadline {
                let peer = self.control.peer();
                return Err(ThroughputError::Silent { peer, awaited });
            }
        }
    }

    /// Sends counts, and checks whether the client has ended the test.
    fn poll(
        &mut self,
        state: TestState<'_>,
        is_ended: &mut bool,
    ) -> Result<Decision, ThroughputError> {
        let intervals = state.board.take();
        if !intervals.is_empty() {
            self.control.send(&ServerMessage::Intervals(intervals))?;
        } else if state.is_over {
            return Ok(Decision::Leave);
        }
        if self.stop.is_set() {
            state.halt.set();
        }
        match self.control.poll(AWAITED_END)? {
            Some(ClientMessage::End) if !*is_ended => {
                *is_ended = true;
                state.halt.set();
            }
            Some(_) => return Err(self.unexpected(AWAITED_END)),
            None => {}
        }
        Ok(Decision::GoOn)
    }

    /// Waits for the client to close. Closing with unread data would reset the connection, and the
    /// last messages would be lost.
    fn await_close(&mut self) {
        let deadline = now() + MESSAGE_TIMEOUT;
        while now() < deadline && !self.stop.is_set() {
            if self.control.poll::<ClientMessage>(AWAITED_END).is_err() {
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
