//! What a client and its server say to each other while a test runs, until both have ended.

use neph_model::{Instant, Own, Span, Stop};
use neph_sys::clock;
use neph_wire::throughput::{ClientMessage, Intervals, ServerMessage};

use super::control::Control;
use super::engine::{Decision, Turn};
use super::error::ThroughputError;
use super::opening::unexpected;
use crate::transfer::now;

/// How long the server may take for its last messages.
const PATIENCE: Span = Span::from_secs(10);
const LAST: &str = "the end of the test";

/// The client's side of it.
#[derive(Debug)]
pub(super) struct Dialogue<'a> {
    control: Control,
    stop: &'a Stop,
    /// What this end counted and nobody took yet.
    pub(super) client: Intervals,
    /// What the server counted and nobody took yet.
    pub(super) server: Intervals,
    is_done: bool,
    /// When the server was sent the end.
    ended: Option<Instant<Own>>,
    /// It was stopped before its time was over.
    pub(super) is_stopped: bool,
    /// Why it broke off, if it did.
    pub(super) fault: Option<String>,
}

impl<'a> Dialogue<'a> {
    /// The server has started the test.
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

    /// Takes in what both ends counted, and ends the test where it is to end.
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
            clock::nap(Stop::PATIENCE.to_duration());
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

    /// What was counted outlives a fault.
    fn keep(&mut self, outcome: Result<(), ThroughputError>) {
        if let Err(error) = outcome {
            self.fault.get_or_insert_with(|| error.to_string());
        }
    }
}
