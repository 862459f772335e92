//! Messages between a client and its server from the start of a test until both have ended.

use neph_model::{Instant, Local, Span, Stop};
use neph_sys::clock;
use neph_wire::throughput::{ClientMessage, Intervals, ServerMessage};

use super::control::Control;
use super::engine::{Decision, TestState};
use super::error::ThroughputError;
use super::opening::unexpected;
use crate::transfer::now;

/// Timeout for the server's last messages.
const END_TIMEOUT: Span = Span::from_secs(10);
const AWAITED_END: &str = "the end of the test";

/// The client's side.
#[derive(Debug)]
pub(super) struct Dialogue<'a> {
    control: Control,
    stop: &'a Stop,
    /// Counts of this end that were not taken yet.
    pub(super) client: Intervals,
    /// Counts of the server that were not taken yet.
    pub(super) server: Intervals,
    is_done: bool,
    /// When the end was sent to the server.
    end_sent_at: Option<Instant<Local>>,
    /// Whether it was stopped before its time was over.
    pub(super) is_stopped: bool,
    /// Why it broke off, if it did.
    pub(super) fault: Option<String>,
}

impl<'a> Dialogue<'a> {
    /// Call after the server has started the test.
    pub(super) fn begin(control: Control, stop: &'a Stop) -> Self {
        Self {
            control,
            stop,
            client: Intervals::default(),
            server: Intervals::default(),
            is_done: false,
            end_sent_at: None,
            is_stopped: false,
            fault: None,
        }
    }

    /// Collects the counts of both ends, and ends the test when it is over.
    pub(super) fn poll(&mut self, state: TestState<'_>) -> Decision {
        self.client.append(state.board.take());
        if self.stop.is_set() {
            self.is_stopped = true;
            state.halt.set();
        }
        let is_lost = self.fault.is_some();
        if is_lost {
            state.halt.set();
        }
        if (state.is_over || state.halt.is_set()) && self.end_sent_at.is_none() && !self.is_done {
            self.end_sent_at = Some(now());
            let sent = self.control.send(&ClientMessage::End);
            self.record_fault(sent);
        }
        if !self.is_done && !is_lost {
            let received = self.receive_messages();
            self.record_fault(received);
        } else if !state.is_over {
            clock::nap(Stop::POLL_INTERVAL.to_duration());
        }
        let is_late = self
            .end_sent_at
            .is_some_and(|end_sent_at| now() >= end_sent_at + END_TIMEOUT);
        if is_late && !self.is_done && !is_lost {
            let peer = self.control.peer();
            let awaited = AWAITED_END;
            self.record_fault(Err(ThroughputError::Silent { peer, awaited }));
        }
        let is_over = state.is_over && (self.is_done || self.fault.is_some());
        if is_over {
            Decision::Leave
        } else {
            Decision::GoOn
        }
    }

    fn receive_messages(&mut self) -> Result<(), ThroughputError> {
        match self.control.poll(AWAITED_END)? {
            None => {}
            Some(ServerMessage::Intervals(intervals)) => self.server.append(intervals),
            Some(ServerMessage::Done) => self.is_done = true,
            Some(other) => return Err(unexpected(self.control.peer(), other, AWAITED_END)),
        }
        Ok(())
    }

    /// Stores a fault; the counts stay.
    fn record_fault(&mut self, outcome: Result<(), ThroughputError>) {
        if let Err(error) = outcome {
            self.fault.get_or_insert_with(|| error.to_string());
        }
    }
}
