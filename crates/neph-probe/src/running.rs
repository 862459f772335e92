//! Work that runs on its own thread and reports through a channel.
//!
//! Owns the thread and the channel's end. Does not know the work: a single flow or a fleet.

use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};

use crate::ProbeError;

/// Work that runs until its schedule is over or it is stopped, with reports of type `R`.
#[derive(Debug)]
pub struct Running<R> {
    reports: Receiver<R>,
    thread: JoinHandle<Result<(), ProbeError>>,
}

impl<R> Running<R> {
    /// Starts `work`, whose reports arrive at `reports`, on a thread of this name.
    pub(crate) fn begin(
        name: String,
        reports: Receiver<R>,
        work: impl FnOnce() -> Result<(), ProbeError> + Send + 'static,
    ) -> Result<Self, ProbeError> {
        let thread = thread::Builder::new().name(name).spawn(work);
        let thread = thread.map_err(ProbeError::Thread)?;
        Ok(Self { reports, thread })
    }

    /// Its reports; they end with the last one, or if the thread could not begin.
    pub const fn reports(&self) -> &Receiver<R> {
        &self.reports
    }

    /// Waits for the thread.
    ///
    /// # Errors
    /// Why it could not begin.
    pub fn join(self) -> Result<(), ProbeError> {
        drop(self.reports);
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
