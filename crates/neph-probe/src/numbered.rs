//! Whose a datagram's send stamp is: the kernel numbers a socket's datagrams from 0.
//!
//! Owns the count on our side. Does not read stamps.

use std::collections::VecDeque;

/// Datagrams that wait for their stamps, oldest first, and what each of them was.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    next: u32,
    waiting: VecDeque<(u32, T)>,
    room: usize,
}

impl<T> Numbered<T> {
    /// Remembers the latest `room`: stamps come within microseconds, an older one will not.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            next: 0,
            waiting: VecDeque::with_capacity(room + 1),
            room,
        }
    }

    /// The next datagram goes.
    pub(crate) fn count(&mut self, what: T) {
        if self.waiting.len() == self.room {
            self.waiting.pop_front();
        }
        self.waiting.push_back((self.next, what));
        self.next = self.next.wrapping_add(1);
    }

    /// The datagram of this number.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let mut waiting = self.waiting.iter();
        waiting.find(|(id, _)| *id == number).map(|(_, what)| what)
    }

    /// The datagram of this number, of which no more is to come.
    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        let at = self.waiting.iter().position(|(id, _)| *id == number)?;
        self.waiting.remove(at).map(|(_, what)| what)
    }

    /// The kernel counts from 0 again. The stamps of what left just before are not known any more:
    /// better none than another datagram's.
    pub(crate) fn restart(&mut self) {
        self.waiting.clear();
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_known_by_the_numbers_that_the_kernel_gives_them() {
        let mut numbered = Numbered::new(2);
        for what in ["a", "b", "c"] {
            numbered.count(what);
        }
        assert_eq!((numbered.get(0), numbered.get(1)), (None, Some(&"b")));
        assert_eq!((numbered.take(2), numbered.take(2)), (Some("c"), None));
        numbered.restart();
        assert_eq!(numbered.get(1), None);
        numbered.count("d");
        assert_eq!(numbered.get(0), Some(&"d"));
    }

    #[test]
    fn numbers_wrap_as_the_kernels_do() {
        let mut numbered = Numbered::new(4);
        numbered.next = u32::MAX;
        numbered.count("last");
        numbered.count("first");
        assert_eq!(numbered.get(u32::MAX), Some(&"last"));
        assert_eq!(numbered.get(0), Some(&"first"));
    }
}
