//! Sockets in one epoll set, each identified by its place.
//!
//! Owns the sockets, their places and the walk over their events. Does not know their protocol.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use neph_sys::epoll::{Epoll, Interest, ReadyEvent, ReadyList};

/// Most reads of the set in a row, so that a flood of replies does not delay a request.
const LOOKS: usize = 4;

#[derive(Debug)]
pub(crate) struct Watched<T> {
    set: Epoll,
    found: ReadyList,
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T: AsFd> Watched<T> {
    /// An empty set.
    ///
    /// # Errors
    /// As [`Epoll::new`].
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            set: Epoll::new()?,
            found: ReadyList::default(),
            places: Vec::new(),
            free: Vec::new(),
        })
    }

    /// Adds a socket. Its place stays the same until it is removed.
    ///
    /// # Errors
    /// As [`Epoll::add`]; then the socket is closed.
    pub(crate) fn add(&mut self, item: T, interest: Interest) -> io::Result<usize> {
        let index = self.free.last().copied().unwrap_or(self.places.len());
        self.set.add(item.as_fd(), index as u64, interest)?;
        if self.free.pop().is_none() {
            self.places.push(None);
        }
        self.places[index] = Some(item);
        Ok(index)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.places.get(index)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.places.get_mut(index)?.as_mut()
    }

    /// Removes a socket; dropping it closes it.
    pub(crate) fn take(&mut self, index: usize) -> Option<T> {
        let item = self.places.get_mut(index)?.take()?;
        self.free.push(index);
        Some(item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    /// Watches only for readability from now on.
    pub(crate) fn only_read(&self, index: usize) {
        if let Some(item) = self.get(index) {
            // It fails only for a descriptor that is not watched, and this one is.
            let _ = self.set.change(item.as_fd(), index as u64, Interest::Read);
        }
    }

    /// Walks over the events, without waiting.
    pub(crate) fn walk(&mut self, mut step: impl FnMut(&mut Self, usize, ReadyEvent)) {
        let mut ready_events = std::mem::take(&mut self.found);
        for _ in 0..LOOKS {
            let Ok(more) = self.set.look(&mut ready_events) else {
                break;
            };
            for ready_event in ready_events.iter() {
                let index = usize::try_from(ready_event.token).unwrap_or(usize::MAX);
                step(self, index, ready_event);
            }
            if !more {
                break;
            }
        }
        self.found = ready_events;
    }
}

impl<T> AsFd for Watched<T> {
    /// Readable when something happened.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn events_are_found_by_index_and_freed_indices_are_reused() {
        let mut watched = Watched::new().expect("a descriptor");
        let pairs = [(), ()].map(|()| UnixStream::pair().expect("a pair"));
        let [(quiet, _keeps), (busy, mut writer)] = pairs;
        let first = watched.add(quiet, Interest::Read).expect("watched");
        let second = watched.add(busy, Interest::Read).expect("watched");
        writer.write_all(b"x").expect("it fits");
        let mut events = Vec::new();
        watched.walk(|_, index, ready_event| events.push((index, ready_event.is_readable)));
        assert_eq!(events, [(second, true)]);
        drop(watched.take(second));
        watched.walk(|_, index, _| panic!("nothing is at {index}"));
        assert_eq!(watched.iter().count(), 1);
        let (new_stream, _keeps) = UnixStream::pair().expect("a pair");
        assert_eq!(watched.add(new_stream, Interest::Read).ok(), Some(second));
        assert!(watched.get(first).is_some());
    }

    #[test]
    fn a_descriptor_that_cannot_be_watched_leaves_no_entry() {
        let mut watched = Watched::new().expect("a descriptor");
        // epoll(7) cannot watch files.
        let file = || File::open("/proc/self/exe").expect("our own program");
        assert!(watched.add(file(), Interest::Read).is_err());
        assert!(watched.add(file(), Interest::Read).is_err());
        assert_eq!((watched.places.len(), watched.free.len()), (0, 0));
    }
}
