//! The reply buffers of every protocol, and a connection's part of shared resources.

use std::collections::TryReserveError;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use neph_model::{Instant, Local, ReflectorCaps, Seq, Span};
use neph_wire::http::FlowToken;
use neph_wire::marks::PreviousTx;

use crate::discover::reported_identity;
use crate::outbox::Outbox;
use crate::reflect::budget::Budget;
use crate::reflect::bulk_turn::BulkGate;
use crate::reflect::caps::Division;
use crate::reflect::counters::{Counted, Counters};
use crate::reflect::room::{MemoryGuard, OWN, Room};
use crate::reflect::tx_timestamps::PendingTxTimestamps;
use crate::refused::Refusals;

/// Room that is always kept for the next reply. More is kept while memory is free.
const MAX_SPARE_CAPACITY: usize = OWN / 2;

/// A connection's part of shared resources.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Its peer's address.
    pub(crate) peer: IpAddr,
    /// Its peer's budget.
    pub(crate) budget: Arc<Budget>,
    /// The turn of a bulk transfer.
    pub(crate) bulk: Arc<BulkGate>,
    /// Memory for data of all peers.
    pub(crate) room: Arc<Room>,
    /// Send timestamps for flows that use several connections.
    pub(crate) tx_timestamps: Arc<PendingTxTimestamps>,
    /// Identity of the clock of its timestamps.
    pub(crate) clock: Arc<str>,
    /// Counters of the whole reflector.
    pub(crate) counters: Arc<Counters>,
}

impl Shares {
    /// For a connection that shares only its peer's budget.
    pub(crate) fn separate(caps: &ReflectorCaps, budget: Arc<Budget>) -> Self {
        Self {
            peer: Ipv4Addr::LOCALHOST.into(),
            budget,
            bulk: Arc::default(),
            room: Arc::new(caps.room_of_all()),
            tx_timestamps: Arc::default(),
            clock: reported_identity(),
            counters: Arc::default(),
        }
    }

    /// An empty account of this connection for one kind of memory.
    pub(super) fn memory_guard(&self) -> MemoryGuard {
        MemoryGuard::new(Arc::clone(&self.room), Arc::clone(self.budget.room()))
    }
}

/// The head of a reply.
const HEAD_BYTES: usize = 1 << 10;

/// Makes room for `bytes` more; exactly that if they are many.
fn reserve(buffer: &mut Vec<u8>, bytes: usize) -> Result<(), TryReserveError> {
    if bytes > MAX_SPARE_CAPACITY {
        buffer.try_reserve_exact(bytes)
    } else {
        buffer.try_reserve(bytes)
    }
}

#[derive(Debug)]
pub(super) struct ReplyContext {
    pub(super) caps: ReflectorCaps,
    pub(super) think: Span,
    pub(super) peer: IpAddr,
    pub(super) bulk: Arc<BulkGate>,
    budget: Arc<Budget>,
    tx_timestamps: Arc<PendingTxTimestamps>,
    counters: Arc<Counters>,
    /// Identity of the clock of its timestamps.
    pub(super) clock: Arc<str>,
    /// The flow of these requests, if the client uses several connections.
    pub(super) flow: Option<FlowToken>,
    /// When the bytes that are being read had arrived.
    pub(super) at: Instant<Local>,
    pub(super) outbox: Outbox,
    /// Replies wait here until the channel has encrypted them.
    pub(super) plain: Vec<u8>,
    /// The reply that `plain` ends with, if it ends with one.
    pub(super) reply: Option<Seq>,
    pub(super) replies: u64,
    /// Complete messages, including echoes for clients other than neph.
    pub(super) messages: u64,
    /// The send timestamp of the latest reply that has one.
    previous: Option<PreviousTx>,
    /// Memory for replies.
    memory: MemoryGuard,
    /// Replies are copied into the outbox because TLS encrypts them.
    pub(super) is_sealed: bool,
}

impl ReplyContext {
    pub(super) fn new(caps: ReflectorCaps, think: Span, shares: Shares) -> Self {
        let memory = shares.memory_guard();
        Self {
            caps,
            think,
            peer: shares.peer,
            bulk: shares.bulk,
            budget: shares.budget,
            tx_timestamps: shares.tx_timestamps,
            counters: shares.counters,
            clock: shares.clock,
            flow: None,
            at: Instant::from_nanos(0),
            outbox: Outbox::small(),
            plain: Vec::new(),
            reply: None,
            replies: 0,
            messages: 0,
            previous: None,
            memory,
            is_sealed: false,
        }
    }

    /// Whether the peer may have a reply of `bytes`: by its rate, and by memory until it was read. Makes room
    /// for it.
    pub(super) fn reserve_reply(&mut self, bytes: usize) -> Result<(), Counted> {
        if !self.budget.spend(bytes as u64, self.at) {
            return Err(Counted::RefusedRate);
        }
        if !self.hold(bytes) {
            // An earlier reply may have needed more than this one.
            self.plain.shrink_to(0);
            self.outbox.shrink_to(0);
            if !self.hold(bytes) {
                return Err(Counted::RefusedMemory);
            }
        }
        let sealed = self.sealed_size(bytes);
        reserve(&mut self.plain, bytes + HEAD_BYTES)
            .and_then(|()| self.outbox.reserve(sealed))
            .map_err(|_| Counted::RefusedMemory)
    }

    /// Charges `plain` and the outbox with a reply of `bytes` more. Returns whether there is room.
    fn hold(&mut self, bytes: usize) -> bool {
        let plain = self.plain_size(bytes).max(self.plain.capacity());
        let sealed = self.sealed_size(bytes).max(self.outbox.capacity());
        self.memory.hold((plain + sealed) as u64)
    }

    /// Bytes in `plain` with a reply of `bytes` more.
    fn plain_size(&self, bytes: usize) -> usize {
        self.plain.len() + bytes + HEAD_BYTES
    }

    /// Bytes in the outbox with it; 0 where it is moved there.
    fn sealed_size(&self, bytes: usize) -> usize {
        if self.is_moved() {
            return 0;
        }
        let plain = self.plain_size(bytes);
        // A record of TLS has at most 16 KiB, and 22 bytes of overhead.
        self.outbox.len() + plain + plain / 128
    }

    /// Whether a reply is written without a copy.
    fn is_moved(&self) -> bool {
        !self.is_sealed && self.outbox.len() == 0
    }

    /// Replies are in the outbox.
    pub(super) fn sealed(&mut self) {
        self.plain.clear();
        self.plain.shrink_to(MAX_SPARE_CAPACITY);
        let capacity = self.plain.capacity() + self.outbox.capacity();
        // At least this much was granted.
        self.memory.hold(capacity as u64);
    }

    /// What was refused to the peer so far, and what the kernel dropped of all peers.
    pub(super) fn refused(&self) -> Refusals {
        Refusals {
            dropped: self.counters.of(Counted::DroppedByKernel),
            ..self.budget.refused()
        }
    }

    /// Everything in the outbox was written.
    pub(super) fn release_spare_capacity(&mut self) {
        let spare = self.plain.capacity() + self.outbox.capacity();
        if !self.memory.keep(spare as u64) {
            self.plain.shrink_to(MAX_SPARE_CAPACITY);
            self.outbox.shrink_to(MAX_SPARE_CAPACITY);
        }
    }

    /// Nothing more is written.
    pub(super) fn release_memory(&mut self) {
        self.plain = Vec::new();
        self.outbox.give_up();
        self.memory.give_back();
    }

    /// A reply left; a later one reports its timestamp.
    pub(super) fn keep_tx_timestamp(&mut self, timestamp: PreviousTx) {
        match self.flow {
            Some(flow) => self.tx_timestamps.put(self.peer, flow, timestamp),
            None => self.previous = Some(timestamp),
        }
    }

    pub(super) fn take_tx_timestamp(&mut self) -> Option<PreviousTx> {
        match self.flow {
            Some(flow) => self.tx_timestamps.take(self.peer, flow),
            None => self.previous.take(),
        }
    }
}
