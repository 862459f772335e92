//! Messages between a client and its server from the start of a test until both have ended.

use neph_model::{Instant, Local, Span, Stop};
use neph_sys::clock;
use neph_wire::throughput::{ClientMessage, Intervals, ServerMessage};

use super::control::Control;
use super::engine::{Decision, Turn};
use super::error::ThroughputError;
use super::opening::unexpected;
use crate::transfer::now;

/// Timeout for the server's last messages.
const PATIENCE: Span = Span::from_secs(10);
const LAST: &str = "the end of the test";

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
    ended: Option<Instant<Local>>,
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
            ended: None,
            is_stopped: false,
            fault: None,
        }
    }

    /// Collects the counts of both ends, and ends the test when it is over.
    pub(super) fn turn(&mut self, turn: Turn<'_>) -> Decision {
        self.client.append(turn.board.take());
        if self.stop.is_set() {
            self.is_stopped = true;
            turn.halt.set();
        }
        let is_lost = self.fault.is_some();
        if is_lost {
            turn.halt.set();
        }
        if (turn.is_over || turn.halt.is_set()) && self.ended.is_none() && !self.is_done {
            self.ended = Some(now());
            let sent = self.control.send(&ClientMessage::End);
            self.keep(sent);
        }
        if !self.is_done && !is_lost {
            let received = self.hear();
            self.keep(received);
        } else if !turn.is_over {
            clock::nap(Stop::POLL_INTERVAL.to_duration());
        }
        let is_late = self.ended.is_some_and(|ended| now() >= ended + PATIENCE);
        if is_late && !self.is_done && !is_lost {
            let peer = self.control.peer();
            let awaited = LAST;
            self.keep(Err(ThroughputError::Silent { peer, awaited }));
        }
        let is_over = turn.is_over && (self.is_done || self.fault.is_some());
        if is_over {
            Decision::Leave
        } else {
            Decision::GoOn
        }
    }

    fn hear(&mut self) -> Result<(), ThroughputError> {
        match self.control.poll(LAST)? {
            None => {}
            Some(ServerMessage::Intervals(intervals)) => self.server.append(intervals),
            Some(ServerMessage::Done) => self.is_done = true,
            Some(other) => return Err(unexpected(self.control.peer(), other, LAST)),
        }
        Ok(())
    }

    /// Stores a fault; the counts stay.
    fn keep(&mut self, outcome: Result<(), ThroughputError>) {
        if let Err(error) = outcome {
            self.fault.get_or_insert_with(|| error.to_string());
        }
    }
}
