//! The status of an agent, for programs on the same host: metrics.
//!
//! Owns the copy that they read. The agent writes it between two messages of its controller, and never
//! waits for a reader.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use neph_model::Span;
use neph_sys::clock::{self, RawNanos};

use super::message::AgentClockOffset;

/// The status of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentStatus {
    /// Whether a controller is connected.
    pub is_connected: bool,
    /// Connections to controllers since its start.
    pub connections: u64,
    /// Orders that it is carrying out.
    pub running: u32,
    /// Bytes that it has sent today (UTC), by its policy's count.
    pub spent_today: u64,
    /// The most that its policy allows a day; `None` is no limit.
    pub day_bytes: Option<u64>,
    /// How often it has refused something since its start, by the reason.
    pub refusals: BTreeMap<String, u64>,
    /// How far its clock is from the controller's, once that is known, and when that was measured.
    pub clock: Option<(AgentClockOffset, RawNanos)>,
}

impl AgentStatus {
    /// How far its clock is from the controller's by now, once that is known: the bound grows while no
    /// controller answers.
    pub fn clock(&self) -> Option<AgentClockOffset> {
        let (clock, measured_at) = self.clock?;
        let age = Span::from_nanos(clock::raw().0.saturating_sub(measured_at.0));
        Some(clock.after(age))
    }
}

/// The copy of an agent's status; clones are the same copy.
#[derive(Clone, Debug, Default)]
pub struct StatusBoard(Arc<Mutex<AgentStatus>>);

impl StatusBoard {
    /// The last that was written.
    pub fn read(&self) -> AgentStatus {
        let status = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        status.clone()
    }

    /// Writes it, unless it is being read at this moment; whether it was written.
    pub(super) fn write(&self, status: AgentStatus) -> bool {
        let mut current = match self.0.try_lock() {
            Ok(status) => status,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        *current = status;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_of_the_status_board_does_not_block_its_writer() {
        let board = StatusBoard::default();
        let status = AgentStatus {
            running: 3,
            ..AgentStatus::default()
        };
        let reading = board.0.lock().expect("no panic");
        assert!(!board.write(status.clone()));
        drop(reading);
        assert!(board.write(status.clone()));
        assert_eq!(board.read(), status);
    }

    #[test]
    fn the_error_bound_of_a_clock_grows_with_its_age() {
        let clock = AgentClockOffset {
            offset: Span::from_millis(3),
            bound: Span::from_millis(1),
        };
        let second_ago = RawNanos(clock::raw().0 - 1_000_000_000);
        let status = AgentStatus {
            clock: Some((clock, second_ago)),
            ..AgentStatus::default()
        };
        let now = status.clock().expect("known");
        assert_eq!(now.offset, clock.offset);
        assert!(now.bound >= Span::from_micros(1100), "{now:?}");
    }
}
