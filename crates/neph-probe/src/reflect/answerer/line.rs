//! What every protocol needs to write a reply, and a connection's part of what all share.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use neph_model::{Instant, Own, Seq, Span};
use neph_wire::http::FlowToken;
use neph_wire::marks::PreviousTx;

use crate::discover::told_identity;
use crate::outbox::Outbox;
use crate::reflect::budget::Budget;
use crate::reflect::bulk_turn::BulkGate;
use crate::reflect::caps::Caps;
use crate::reflect::counters::{Counted, Counters};
use crate::reflect::departures::Departures;
use crate::reflect::room::{Held, OWN, Room};
use crate::refusals::Refusals;

/// Room that is always kept for the next reply; beyond, it is kept while nobody needs it.
const KEPT: usize = OWN / 2;

/// A connection's part of what all connections share.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Its peer address's budget.
    pub(crate) budget: Arc<Budget>,
    /// Its peer.
    pub(crate) peer: IpAddr,
    /// The turn of a bulk transfer.
    pub(crate) bulk: Arc<BulkGate>,
    /// Room for what all peers make us hold.
    pub(crate) room: Arc<Room>,
    /// Send stamps for flows that take several connections.
    pub(crate) departures: Arc<Departures>,
    /// Which clock its marks are read from.
    pub(crate) clock: Arc<str>,
    /// What the whole reflector counts.
    pub(crate) counters: Arc<Counters>,
}

impl Shares {
    /// Those of a connection that shares nothing but its peer's budget.
    pub(crate) fn alone(caps: &Caps, budget: Arc<Budget>) -> Self {
        Self {
            budget,
            peer: Ipv4Addr::LOCALHOST.into(),
            bulk: Arc::default(),
            room: Arc::new(Room::of_all(caps)),
            departures: Arc::default(),
            clock: told_identity(),
            counters: Arc::default(),
        }
    }

    /// What this connection holds of one kind: nothing yet.
    pub(super) fn held(&self) -> Held {
        Held::new(Arc::clone(&self.room), Arc::clone(self.budget.room()))
    }
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) caps: Caps,
    pub(super) think: Span,
    pub(super) peer: IpAddr,
    pub(super) bulk: Arc<BulkGate>,
    budget: Arc<Budget>,
    departures: Arc<Departures>,
    counters: Arc<Counters>,
    /// Which clock its marks are read from.
    pub(super) clock: Arc<str>,
    /// Whose requests these are, where the client says that it takes several connections.
    pub(super) flow: Option<FlowToken>,
    /// When the bytes that are being read had come.
    pub(super) at: Instant<Own>,
    pub(super) outbox: Outbox,
    /// Replies wait here until the channel has sealed them.
    pub(super) plain: Vec<u8>,
    /// The reply that `plain` ends with, if it ends with one.
    pub(super) reply: Option<Seq>,
    pub(super) replies: u64,
    /// Messages that became whole, echoes of somebody else's included.
    pub(super) whole: u64,
    /// The send stamp of the latest reply that has one.
    previous: Option<PreviousTx>,
    /// Memory for replies.
    held: Held,
    /// Reply bytes that were granted and not yet written.
    unwritten: u64,
}

impl Line {
    pub(super) fn new(caps: Caps, think: Span, shares: Shares) -> Self {
        let held = shares.held();
        Self {
            caps,
            think,
            peer: shares.peer,
            bulk: shares.bulk,
            budget: shares.budget,
            departures: shares.departures,
            counters: shares.counters,
            clock: shares.clock,
            flow: None,
            at: Instant::from_nanos(0),
            outbox: Outbox::default(),
            plain: Vec::new(),
            reply: None,
            replies: 0,
            whole: 0,
            previous: None,
            held,
            unwritten: 0,
        }
    }

    /// Whether the peer may have a reply of `bytes`: its rate, and room until it has been read.
    pub(super) fn grant(&mut self, bytes: usize) -> Result<(), Counted> {
        let bytes = bytes as u64;
        if !self.budget.spend(bytes, self.at) {
            return Err(Counted::RefusedRate);
        }
        let unwritten = self.unwritten.saturating_add(bytes);
        if !self.held.hold(unwritten.max(self.held.bytes())) {
            return Err(Counted::RefusedMemory);
        }
        self.unwritten = unwritten;
        Ok(())
    }

    /// What was refused to the peer so far, and what the kernel dropped of all peers.
    pub(super) fn refused(&self) -> Refusals {
        Refusals {
            dropped: self.counters.of(Counted::DroppedByKernel),
            ..self.budget.refused()
        }
    }

    /// Everything in the outbox was written.
    pub(super) fn written(&mut self) {
        self.unwritten = 0;
        let spare = self.plain.capacity() + self.outbox.capacity();
        if !self.held.keep(spare as u64) {
            self.plain.shrink_to(KEPT);
            self.outbox.shrink_to(KEPT);
        }
    }

    /// Nothing more is written.
    pub(super) fn let_go(&mut self) {
        self.plain = Vec::new();
        self.outbox.give_up();
        self.held.give_back();
    }

    /// A reply left; a later one will tell.
    pub(super) fn departed(&mut self, departed: PreviousTx) {
        match self.flow {
            Some(flow) => self.departures.put(flow, departed),
            None => self.previous = Some(departed),
        }
    }

    pub(super) fn take_departed(&mut self) -> Option<PreviousTx> {
        match self.flow {
            Some(flow) => self.departures.take(flow),
            None => self.previous.take(),
        }
    }
}
