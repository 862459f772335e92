//! State that the connections of a server share: its caps and its number of streams.

use std::sync::{Mutex, PoisonError};

use super::served::{MediaServed, ServerSpec};

/// State that the connections of a server share.
pub(super) struct Served<'a> {
    pub(super) spec: &'a ServerSpec,
    pub(super) event: &'a (dyn Fn(MediaServed) + Sync),
    /// Granted streams that are not over.
    places: Mutex<u16>,
}

impl<'a> Served<'a> {
    /// A server without streams.
    pub(super) fn new(spec: &'a ServerSpec, event: &'a (dyn Fn(MediaServed) + Sync)) -> Self {
        Self {
            spec,
            event,
            places: Mutex::new(0),
        }
    }

    /// Reserves a place for a stream.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn take_place(&self) -> Result<(), String> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        self.spec.caps.admit(*places, self.spec.trace.mean_rate())?;
        *places += 1;
        Ok(())
    }

    /// Releases a place.
    pub(super) fn free_place(&self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        *places = places.saturating_sub(1);
    }

    /// Number of reserved places.
    pub(super) fn streams(&self) -> u16 {
        *self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
