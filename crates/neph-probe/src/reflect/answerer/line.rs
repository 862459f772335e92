//! What every protocol needs to write a reply, and a connection's part of what all share.

use std::collections::TryReserveError;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use neph_model::{Instant, Own, ReflectorCaps, Seq, Span};
use neph_wire::http::FlowToken;
use neph_wire::marks::PreviousTx;

use crate::discover::told_identity;
use crate::outbox::Outbox;
use crate::reflect::budget::Budget;
use crate::reflect::bulk_turn::BulkGate;
use crate::reflect::caps::Division;
use crate::reflect::counters::{Counted, Counters};
use crate::reflect::departures::Departures;
use crate::reflect::room::{Held, OWN, Room};
use crate::refused::Refusals;

/// Room that is always kept for the next reply; beyond, it is kept while nobody needs it.
const KEPT: usize = OWN / 2;

/// A connection's part of what all connections share.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Its peer's address.
    pub(crate) peer: IpAddr,
    /// Its peer's budget.
    pub(crate) budget: Arc<Budget>,
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
    pub(crate) fn alone(caps: &ReflectorCaps, budget: Arc<Budget>) -> Self {
        Self {
            peer: Ipv4Addr::LOCALHOST.into(),
            budget,
            bulk: Arc::default(),
            room: Arc::new(caps.room_of_all()),
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

/// The head of a reply.
const HEAD: usize = 1 << 10;

/// Makes room for `bytes` more: no more than that where they are many.
fn reserve(buffer: &mut Vec<u8>, bytes: usize) -> Result<(), TryReserveError> {
    if bytes > KEPT {
        buffer.try_reserve_exact(bytes)
    } else {
        buffer.try_reserve(bytes)
    }
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) caps: ReflectorCaps,
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
    /// Replies are copied on their way into the outbox: TLS seals them.
    pub(super) is_sealed: bool,
}

impl Line {
    pub(super) fn new(caps: ReflectorCaps, think: Span, shares: Shares) -> Self {
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
            outbox: Outbox::small(),
            plain: Vec::new(),
            reply: None,
            replies: 0,
            whole: 0,
            previous: None,
            held,
            is_sealed: false,
        }
    }

    /// Whether the peer may have a reply of `bytes`: its rate, and memory until it has been read. Makes room
    /// for it.
    pub(super) fn grant(&mut self, bytes: usize) -> Result<(), Counted> {
        if !self.budget.spend(bytes as u64, self.at) {
            return Err(Counted::RefusedRate);
        }
        if !self.hold(bytes) {
            // What an earlier reply needed may be more than this one does.
            self.plain.shrink_to(0);
            self.outbox.shrink_to(0);
            if !self.hold(bytes) {
                return Err(Counted::RefusedMemory);
            }
        }
        let sealed = self.sealed_size(bytes);
        reserve(&mut self.plain, bytes + HEAD)
            .and_then(|()| self.outbox.reserve(sealed))
            .map_err(|_| Counted::RefusedMemory)
    }

    /// Charges what `plain` and the outbox take with a reply of `bytes` more; whether there is room.
    fn hold(&mut self, bytes: usize) -> bool {
        let plain = self.plain_size(bytes).max(self.plain.capacity());
        let sealed = self.sealed_size(bytes).max(self.outbox.capacity());
        self.held.hold((plain + sealed) as u64)
    }

    /// Bytes in `plain` with a reply of `bytes` more.
    fn plain_size(&self, bytes: usize) -> usize {
        self.plain.len() + bytes + HEAD
    }

    /// Bytes in the outbox with it; none where it is moved there.
    fn sealed_size(&self, bytes: usize) -> usize {
        if self.is_moved() {
            return 0;
        }
        let plain = self.plain_size(bytes);
        // A record of TLS has 16 KiB at most, and 22 bytes around them.
        self.outbox.len() + plain + plain / 128
    }

    /// Whether a reply becomes what is written without a copy.
    fn is_moved(&self) -> bool {
        !self.is_sealed && self.outbox.len() == 0
    }

    /// Replies are in the outbox.
    pub(super) fn sealed(&mut self) {
        self.plain.clear();
        self.plain.shrink_to(KEPT);
        let held = self.plain.capacity() + self.outbox.capacity();
        // It was granted with no less.
        self.held.hold(held as u64);
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
            Some(flow) => self.departures.put(self.peer, flow, departed),
            None => self.previous = Some(departed),
        }
    }

    pub(super) fn take_departed(&mut self) -> Option<PreviousTx> {
        match self.flow {
            Some(flow) => self.departures.take(self.peer, flow),
            None => self.previous.take(),
        }
    }
}
