//! What carries a fleet's requests: one of these per kind and per way to use sockets.

use std::io;
use std::time::Duration;

use neph_model::{Instant, Lane, Own, Span, Wall};
use neph_sys::ppoll::{self, Awaited};

use super::session::Event;
use super::spec::Sharing;
use crate::ProbeError;
use crate::stamp_clock::StampClock;

/// A request that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) lane: Lane,
    /// Its flow's port, as [`Transport::open`] told it.
    pub(crate) port: u16,
    /// Its number within its flow.
    pub(crate) seq: u64,
    /// Now, for requests that carry a time.
    pub(crate) wall: Wall,
}

/// Carries requests and replies. Never blocks.
pub(crate) trait Transport: std::fmt::Debug {
    /// Makes a new flow for a lane; the earlier one still takes late replies for a while. Returns
    /// its port.
    fn open(&mut self, lane: Lane, now: Instant<Own>) -> Result<u16, ProbeError>;

    /// Sends a request, or begins to.
    ///
    /// # Errors
    /// When it did not leave.
    fn send(&mut self, request: &Request) -> io::Result<()>;

    /// Adds what happened since the last call. `clock` was read just now.
    fn read(&mut self, clock: &StampClock, events: &mut Vec<Event>);

    /// Waits until something happened, for `patience` at most; whether something did.
    fn wait(&self, patience: Duration) -> bool;

    /// How many datagrams our kernel dropped so far because they were not read in time.
    fn dropped(&self) -> u64;

    /// From one flow's opening to the next at least, where opening one asks something of the peer.
    fn opening_gap(&self) -> Span {
        Span::ZERO
    }

    /// How it uses files.
    fn sharing(&self) -> Sharing;
}

/// Waits for one of these for `patience` at most; whether there is something.
pub(crate) fn wait_for(awaited: &mut [Awaited], patience: Duration) -> bool {
    // It fails for lack of memory only; then the next look at the sockets comes sooner.
    let _ = ppoll::wait(awaited, Some(patience));
    awaited.iter().any(Awaited::has_something)
}
