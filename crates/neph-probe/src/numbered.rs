//! Assignment of send timestamps to datagrams: the kernel numbers a socket's datagrams from 0.
//!
//! Owns the local count. Does not read timestamps.

use std::collections::VecDeque;

/// Datagrams that wait for their timestamps, oldest first, with their data.
#[derive(Debug)]
pub(crate) struct AwaitedTimestamps<T> {
    /// The number of the oldest.
    first: u32,
    /// A taken entry leaves its place empty until all before it are gone, so numbers need no search.
    waiting: VecDeque<Option<T>>,
    room: usize,
}

impl<T> AwaitedTimestamps<T> {
    /// Remembers the latest `room`: timestamps come within microseconds, an older one will not.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            first: 0,
            waiting: VecDeque::with_capacity(room + 1),
            room,
        }
    }

    /// The next datagram is sent.
    pub(crate) fn count(&mut self, item: T) {
        if self.waiting.len() == self.room {
            self.forget_first();
        }
        self.waiting.push_back(Some(item));
    }

    /// The datagram of this number.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.waiting.get(self.index_of(number))?.as_ref()
    }

    /// Removes the datagram of this number.
    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        let index = self.index_of(number);
        let item = self.waiting.get_mut(index)?.take();
        while let Some(None) = self.waiting.front() {
            self.forget_first();
        }
        item
    }

    /// The kernel counts from 0 again. The timestamps of datagrams that just left are dropped, as they could
    /// be assigned to others.
    pub(crate) fn restart(&mut self) {
        self.waiting.clear();
        self.first = 0;
    }

    fn forget_first(&mut self) {
        self.waiting.pop_front();
        self.first = self.first.wrapping_add(1);
    }

    const fn index_of(&self, number: u32) -> usize {
        number.wrapping_sub(self.first) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_messages_are_found_by_their_timestamp_ids() {
        let mut numbered = AwaitedTimestamps::new(2);
        for message in ["a", "b", "c"] {
            numbered.count(message);
        }
        assert_eq!((numbered.get(0), numbered.get(1)), (None, Some(&"b")));
        assert_eq!((numbered.take(2), numbered.take(2)), (Some("c"), None));
        numbered.restart();
        assert_eq!(numbered.get(1), None);
        numbered.count("d");
        assert_eq!(numbered.get(0), Some(&"d"));
    }

    #[test]
    fn timestamp_ids_wrap_like_those_of_the_kernel() {
        let mut numbered = AwaitedTimestamps::new(4);
        numbered.first = u32::MAX;
        numbered.count("last");
        numbered.count("first");
        assert_eq!(numbered.get(u32::MAX), Some(&"last"));
        assert_eq!(numbered.get(0), Some(&"first"));
    }
}
