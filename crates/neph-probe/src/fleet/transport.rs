//! What carries a fleet's requests: one of these per kind and per way to use sockets.

use std::io;
use std::os::fd::BorrowedFd;

use neph_model::{Instant, Lane, Own, Span, Wall};

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

    /// Readable when something happened.
    fn awaited(&self) -> BorrowedFd<'_>;

    /// How many datagrams our kernel dropped so far because they were not read in time.
    fn dropped(&self) -> u64;

    /// From one flow's opening to the next at least, where opening one asks something of the peer.
    fn opening_gap(&self) -> Span {
        Span::ZERO
    }

    /// How it uses files.
    fn sharing(&self) -> Sharing;
}
