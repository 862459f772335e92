//! Memory and time of the request that is not whole yet.
//!
//! Owns what is charged for the inbox and for fragments, and whether the peer gets on with what it began.
//! Replies are charged in [`super::line`].

use neph_model::{Instant, Local};

use super::{Answerer, CloseReason, Counted, Times};
use crate::reflect::progress::{Progress, WINDOW};
use crate::reflect::room::{OWN, grown};

/// A record of TLS that was begun before.
const MAX_TLS_RECORD_BYTES: usize = 17 << 10;

/// There is no room for more, or the system has no memory.
pub(super) struct OutOfMemory;

/// A request of which some is here.
#[derive(Debug)]
pub(super) struct Unfinished {
    /// Which one: how many became whole before.
    message: u64,
    /// Its bytes so far.
    bytes: u64,
    progress: Progress,
}

impl Answerer {
    /// Makes room in the inbox for what `incoming_len` bytes bring.
    pub(super) fn make_room(&mut self, incoming_len: usize) -> Result<(), OutOfMemory> {
        let of_tls = if self.context.is_sealed {
            MAX_TLS_RECORD_BYTES
        } else {
            0
        };
        let needed = self.inbox.len() + incoming_len + of_tls;
        if needed <= self.inbox.capacity() {
            return Ok(());
        }
        let wanted = usize::try_from(grown(needed as u64)).map_err(|_| OutOfMemory)?;
        let wanted = if needed <= OWN - MAX_TLS_RECORD_BYTES {
            OWN
        } else {
            wanted
        };
        if !self.memory.hold((self.protocol.capacity() + wanted) as u64) {
            return Err(OutOfMemory);
        }
        let more = wanted - self.inbox.len();
        self.inbox.try_reserve_exact(more).map_err(|_| OutOfMemory)
    }

    /// Memory of requests.
    pub(super) const fn capacity(&self) -> u64 {
        (self.protocol.capacity() + self.inbox.capacity()) as u64
    }

    /// Whether it holds more than a connection's own.
    pub(crate) fn holds_much(&self) -> bool {
        self.capacity() > OWN as u64 || self.context.outbox.capacity() > OWN
    }

    pub(super) fn refuse_memory(&mut self) -> CloseReason {
        self.protocol
            .refuse(Counted::RefusedMemory, &mut self.context);
        CloseReason::Refused(Counted::RefusedMemory)
    }

    /// Charges and times what is not whole yet.
    pub(super) fn settle(&mut self, times: &mut dyn Times) -> Result<(), CloseReason> {
        if self.backlogged {
            return Ok(());
        }
        self.protocol.shrink();
        let is_idle = self.inbox.is_empty() && self.protocol.progress().is_none();
        let has_room = if is_idle {
            self.memory.keep(self.capacity())
        } else {
            self.memory.hold(self.capacity())
        };
        if !has_room {
            self.inbox.shrink_to(OWN / 2);
            if !self.memory.hold(self.capacity()) {
                return Err(self.refuse_memory());
            }
        }
        self.time(times);
        Ok(())
    }

    fn time(&mut self, times: &mut dyn Times) {
        let progress = self.protocol.progress();
        if self.inbox.is_empty() && progress.is_none() {
            self.unfinished = None;
            return;
        }
        let message = self.context.messages;
        let bytes = progress.unwrap_or(0) + self.inbox.len() as u64;
        let known = self.unfinished.as_mut();
        if let Some(unfinished) = known.filter(|unfinished| unfinished.message == message) {
            unfinished.bytes = bytes;
            return;
        }
        let window = self.context.caps.idle.min(WINDOW);
        self.unfinished = Some(Unfinished {
            message,
            bytes,
            progress: Progress::new(window, bytes, times.now()),
        });
    }

    /// Whether a request that was begun does not get on.
    pub(crate) fn is_stalled(&mut self, now: Instant<Local>) -> bool {
        let unfinished = self.unfinished.as_mut();
        unfinished.is_some_and(|unfinished| unfinished.progress.is_too_slow(unfinished.bytes, now))
    }
}
