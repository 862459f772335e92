//! Transports of a fleet's requests: one per kind and per way to use sockets.

use std::io;
use std::time::Duration;

use neph_model::{Instant, Local, Slot, Span, Wall};
use neph_sys::ppoll::{self, Awaited};

use super::session::Event;
use super::spec::Sharing;
use crate::ProbeError;
use crate::stamp_clock::StampClock;

/// A request that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) slot: Slot,
    /// Its flow's port, as [`Transport::open`] returned it.
    pub(crate) port: u16,
    /// Its number within its flow.
    pub(crate) seq: u64,
    /// The current time, for requests that carry one.
    pub(crate) wall: Wall,
}

/// Carries requests and replies. Never blocks.
pub(crate) trait Transport: std::fmt::Debug {
    /// Opens a new flow for a slot and returns its port. The earlier flow still takes late replies for a
    /// while.
    fn open(&mut self, slot: Slot, now: Instant<Local>) -> Result<u16, ProbeError>;

    /// Sends a request, or begins to.
    ///
    /// # Errors
    /// When it did not leave.
    fn send(&mut self, request: &Request) -> io::Result<()>;

    /// Adds the events since the last call. `clock` was read just now.
    fn read(&mut self, clock: &StampClock, events: &mut Vec<Event>);

    /// Waits until something happens, for `timeout` at most. Returns whether something did.
    fn wait(&self, timeout: Duration) -> bool;

    /// Datagrams that the local kernel dropped so far because they were not read in time.
    fn dropped(&self) -> u64;

    /// Least time between opening two flows, where opening one needs the peer.
    fn opening_gap(&self) -> Span {
        Span::ZERO
    }

    /// How it uses files.
    fn sharing(&self) -> Sharing;
}

/// Waits for one of these for `timeout` at most. Returns whether one is ready.
pub(crate) fn wait_for(poll_fds: &mut [Awaited], timeout: Duration) -> bool {
    // It fails only for lack of memory. Then the sockets are checked sooner.
    let _ = ppoll::wait(poll_fds, Some(timeout));
    poll_fds.iter().any(Awaited::has_something)
}
