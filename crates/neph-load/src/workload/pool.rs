//! The connections of a thread: by number, with those that are idle.
//!
//! Owns the numbers, the limit, and what the kernel reports about which of them. A number is used again
//! after its connection is closed; its generation distinguishes old reports from new ones.

use std::io;

use neph_sys::epoll::{Epoll, Interest, ReadyList};

use super::connection::{Connection, Phase};

/// Names a connection, also after it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionId {
    slot: u32,
    generation: u32,
}

impl ConnectionId {
    fn token(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    /// From the token of a report.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    pub(super) const fn from_token(token: u64) -> Self {
        Self {
            slot: token as u32,
            generation: (token >> 32) as u32,
        }
    }
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    connection: Option<Connection>,
}

#[derive(Debug)]
pub(super) struct Pool {
    epoll: Epoll,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The connection that became idle last is used first. Closed ones are skipped when they are taken.
    idle: Vec<ConnectionId>,
    open: usize,
    max: usize,
}

impl Pool {
    /// For at most `max` connections at the same time.
    pub(super) fn new(max: usize) -> io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new()?,
            slots: Vec::new(),
            free: Vec::new(),
            idle: Vec::new(),
            open: 0,
            max,
        })
    }

    pub(super) const fn is_full(&self) -> bool {
        self.open >= self.max
    }

    /// Adds a connection and begins to watch it.
    pub(super) fn add(&mut self, connection: Connection) -> io::Result<ConnectionId> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let entry = &mut self.slots[slot as usize];
        let id = ConnectionId {
            slot,
            generation: entry.generation,
        };
        let interest = match connection.phase {
            Phase::Opening => Interest::ReadWrite,
            _ => Interest::Read,
        };
        let watched = self.epoll.add(connection.fd(), id.token(), interest);
        if let Err(error) = watched {
            self.free.push(slot);
            return Err(error);
        }
        entry.connection = Some(connection);
        self.open += 1;
        Ok(id)
    }

    /// Watches for room to write, or no longer.
    pub(super) fn watch(&self, id: ConnectionId, interest: Interest) -> io::Result<()> {
        match self.slots[id.slot as usize].connection.as_ref() {
            Some(connection) => self.epoll.change(connection.fd(), id.token(), interest),
            None => Ok(()),
        }
    }

    /// The connection, unless it is closed.
    pub(super) fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        if slot.generation != id.generation {
            return None;
        }
        slot.connection.as_mut()
    }

    /// Closes it; returns it.
    pub(super) fn close(&mut self, id: ConnectionId) -> Option<Connection> {
        self.get(id)?;
        let slot = &mut self.slots[id.slot as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        self.open -= 1;
        slot.connection.take()
    }

    /// Keeps an idle connection for the next request.
    pub(super) fn put_idle(&mut self, id: ConnectionId) {
        self.idle.push(id);
    }

    /// An idle connection.
    pub(super) fn take_idle(&mut self) -> Option<ConnectionId> {
        while let Some(id) = self.idle.pop() {
            if self
                .get(id)
                .is_some_and(|connection| connection.phase == Phase::Idle)
            {
                return Some(id);
            }
        }
        None
    }

    /// All connections with a request that was sent or intended before a limit, as `is_overdue` decides.
    pub(super) fn overdue(&self, is_overdue: impl Fn(&Connection) -> bool) -> Vec<ConnectionId> {
        let slots = (0..).zip(&self.slots);
        let overdue = slots.filter(|(_, slot)| slot.connection.as_ref().is_some_and(&is_overdue));
        overdue
            .map(|(slot, entry)| ConnectionId {
                slot,
                generation: entry.generation,
            })
            .collect()
    }

    /// Waits for reports.
    pub(super) fn wait(
        &self,
        found: &mut ReadyList,
        timeout: std::time::Duration,
    ) -> io::Result<bool> {
        self.epoll.wait(found, timeout)
    }
}
