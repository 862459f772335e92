//! Unwritten bytes of a connection, and the ends of messages in them.
//!
//! A message can be added ahead of its time and held until released. Offsets count every byte since
//! timestamps were enabled, modulo 2^32, as the kernel counts them (`OPT_ID_TCP`).

use std::collections::{TryReserveError, VecDeque};

use neph_model::Seq;
use neph_sys::stamp::Ending;

/// Room that is kept for the next messages. More is freed.
const MAX_SPARE_CAPACITY: usize = 1 << 20;
/// Messages that wait for timestamps: those of one second at more than 100,000 per second. If a kernel gives
/// none, the oldest is dropped.
const MAX_UNSTAMPED: usize = 1 << 17;
/// The same for a connection of a reflector, which has many connections.
const FEW_UNSTAMPED: usize = 1 << 10;

/// A message's place in the stream.
#[derive(Clone, Copy, Debug)]
struct MessageEnd {
    /// Offset of its first byte.
    start: u64,
    /// Offset just after its last byte.
    offset: u64,
    seq: Seq,
}

#[derive(Debug)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    /// How much of `bytes` is written.
    written: usize,
    /// How much of `bytes` may be written.
    released: usize,
    /// Offset of `bytes[0]`.
    base: u64,
    /// Ends of messages not yet fully written.
    unwritten: VecDeque<MessageEnd>,
    /// Ends of messages whose timestamps may still come.
    unstamped: VecDeque<MessageEnd>,
    /// The most that are kept of them.
    most_unstamped: usize,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            written: 0,
            released: 0,
            base: 0,
            unwritten: VecDeque::new(),
            unstamped: VecDeque::new(),
            most_unstamped: MAX_UNSTAMPED,
        }
    }
}

impl Outbox {
    /// For one of very many connections.
    pub(crate) fn small() -> Self {
        Self {
            most_unstamped: FEW_UNSTAMPED,
            ..Self::default()
        }
    }

    /// Appends bytes that belong to no message. They go at once, or after held messages.
    pub(crate) fn put<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let nothing_held = self.released == self.bytes.len();
        let written = write(&mut self.bytes);
        if nothing_held {
            self.release();
        }
        written
    }

    /// Appends a message and holds it until [`Self::release`].
    pub(crate) fn hold<E>(
        &mut self,
        seq: Seq,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.end();
        write(&mut self.bytes)?;
        let end = MessageEnd {
            start,
            offset: self.end(),
            seq,
        };
        self.unwritten.push_back(end);
        if self.unstamped.len() >= self.most_unstamped {
            self.unstamped.pop_front();
        }
        self.unstamped.push_back(end);
        Ok(())
    }

    /// Releases all held messages.
    pub(crate) fn release(&mut self) {
        self.released = self.bytes.len();
    }

    /// The next bytes to write, and whether they end a message.
    pub(crate) fn next(&self) -> Option<(&[u8], Ending)> {
        let ready = self
            .bytes
            .get(self.written..self.released)
            .filter(|bytes| !bytes.is_empty())?;
        let at = self.written();
        let Some(end) = self.unwritten.front() else {
            return Some((ready, Ending::Open));
        };
        let to_end = usize::try_from(end.offset - at).unwrap_or(usize::MAX);
        match ready.get(..to_end) {
            Some(message) => Some((message, Ending::Message)),
            None => Some((ready, Ending::Open)),
        }
    }

    /// The socket took `count` bytes of [`Self::next`].
    pub(crate) fn wrote(&mut self, count: usize) {
        self.written += count;
        let at = self.written();
        while self.unwritten.front().is_some_and(|end| end.offset <= at) {
            self.unwritten.pop_front();
        }
        if self.written == self.bytes.len() {
            self.base = at;
            self.bytes.clear();
            self.written = 0;
            self.released = 0;
            self.bytes.shrink_to(MAX_SPARE_CAPACITY);
        } else if self.written > MAX_SPARE_CAPACITY && self.written > self.bytes.len() / 2 {
            self.forget_written();
        }
    }

    /// Written bytes are dropped even if the outbox never becomes empty.
    fn forget_written(&mut self) {
        self.bytes.drain(..self.written);
        self.base += self.written as u64;
        self.released -= self.written;
        self.written = 0;
    }

    /// Offset of the next byte to write.
    pub(crate) const fn written(&self) -> u64 {
        self.base + self.written as u64
    }

    /// Offset just after the last byte in the outbox.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Unwritten bytes, including held ones.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Drops unwritten bytes. Timestamps of written ones may still come.
    pub(crate) fn give_up(&mut self) {
        self.bytes = Vec::new();
        (self.written, self.released) = (0, 0);
        self.unwritten.clear();
    }

    /// Makes room for `capacity` unwritten bytes.
    pub(crate) fn reserve(&mut self, capacity: usize) -> Result<(), TryReserveError> {
        let more = capacity.saturating_sub(self.len());
        if self.bytes.len() + more <= self.bytes.capacity() {
            return Ok(());
        }
        self.forget_written();
        self.bytes.try_reserve_exact(more)
    }

    /// Allocated bytes, in use or not.
    pub(crate) const fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Keeps at most `bytes` of unused room.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        self.bytes.shrink_to(bytes);
    }

    /// Whether something may be written.
    pub(crate) fn is_ready(&self) -> bool {
        self.released > self.written
    }

    /// The message whose last byte has this timestamp identity.
    pub(crate) fn message_at(&self, id: u32) -> Option<Seq> {
        self.position(id).map(|at| self.unstamped[at].seq)
    }

    /// Offsets ascend, so this is a binary search: a long path has thousands in flight.
    fn position(&self, id: u32) -> Option<usize> {
        let first = self.unstamped.front()?;
        let ahead = id.wrapping_sub(stamp_id(first));
        let offset = first.offset + u64::from(ahead);
        self.unstamped
            .binary_search_by_key(&offset, |end| end.offset)
            .ok()
    }

    /// No more timestamps come up to this identity: it was acknowledged.
    pub(crate) fn acknowledged(&mut self, id: u32) {
        if let Some(at) = self.position(id) {
            self.unstamped.drain(..=at);
        }
    }

    /// Messages of which no byte is written.
    pub(crate) fn untouched(&self) -> impl Iterator<Item = Seq> + '_ {
        let at = self.written();
        let ends = self.unwritten.iter();
        ends.filter(move |end| end.start >= at).map(|end| end.seq)
    }
}

/// The kernel reports the offset of the last byte, modulo 2^32.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the kernel counts modulo 2^32"
)]
const fn stamp_id(end: &MessageEnd) -> u32 {
    (end.offset - 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(outbox: &mut Outbox, seq: u64, len: usize) {
        let written: Result<(), ()> = outbox.hold(Seq(seq), |out| {
            out.resize(out.len() + len, 7);
            Ok(())
        });
        written.expect("nothing fails");
    }

    #[test]
    fn a_permanent_backlog_uses_bounded_memory() {
        let mut outbox = Outbox::default();
        message(&mut outbox, 0, 100_000);
        for seq in 1..200 {
            message(&mut outbox, seq, 100_000);
            outbox.release();
            outbox.wrote(100_000);
            assert_eq!(outbox.len(), 100_000);
            assert!(
                outbox.bytes.len() <= 3 * MAX_SPARE_CAPACITY,
                "{}",
                outbox.bytes.len()
            );
        }
        assert_eq!(outbox.message_at(19_999_999), Some(Seq(199)));
        assert_eq!(outbox.untouched().collect::<Vec<_>>(), [Seq(199)]);
        outbox.wrote(1);
        assert_eq!(outbox.untouched().count(), 0, "a byte of it is out");
    }

    #[test]
    fn messages_without_timestamps_do_not_accumulate() {
        let mut outbox = Outbox::default();
        for seq in 0..MAX_UNSTAMPED as u64 + 100 {
            message(&mut outbox, seq, 1);
            outbox.release();
            outbox.wrote(1);
        }
        assert_eq!(outbox.unstamped.len(), MAX_UNSTAMPED);
        assert_eq!(outbox.message_at(99), None);
        assert_eq!(outbox.message_at(100), Some(Seq(100)));
    }

    #[test]
    fn timestamp_ids_wrap_with_the_byte_counter_of_the_kernel() {
        let mut outbox = Outbox {
            base: (1 << 32) - 5,
            ..Outbox::default()
        };
        message(&mut outbox, 0, 4);
        message(&mut outbox, 1, 4);
        assert_eq!(outbox.message_at(u32::MAX - 1), Some(Seq(0)));
        assert_eq!(outbox.message_at(2), Some(Seq(1)));
        assert_eq!(outbox.message_at(3), None);
    }

    #[test]
    fn a_held_message_is_sent_after_release_and_keeps_its_end() {
        let mut outbox = Outbox::default();
        let written: Result<(), ()> = outbox.put(|out| {
            out.extend_from_slice(b"hello");
            Ok(())
        });
        written.expect("nothing fails");
        message(&mut outbox, 0, 10);
        assert_eq!(outbox.next(), Some((&b"hello"[..], Ending::Open)));
        outbox.wrote(5);
        assert_eq!(outbox.next(), None);
        message(&mut outbox, 1, 3);
        outbox.release();
        assert_eq!(
            outbox.next().expect("released"),
            (&[7; 10][..], Ending::Message)
        );
        outbox.wrote(4);
        assert_eq!(
            outbox.next().expect("the rest"),
            (&[7; 6][..], Ending::Message)
        );
        outbox.wrote(6);
        assert_eq!(
            outbox.next().expect("the second"),
            (&[7; 3][..], Ending::Message)
        );
        outbox.wrote(3);
        assert_eq!((outbox.next(), outbox.len()), (None, 0));
        assert_eq!(
            (outbox.message_at(14), outbox.message_at(17)),
            (Some(Seq(0)), Some(Seq(1)))
        );
        outbox.acknowledged(14);
        assert_eq!(
            (outbox.message_at(14), outbox.message_at(17)),
            (None, Some(Seq(1)))
        );
    }
}
