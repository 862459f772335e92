//! Work on a thread of this process that goes on until it is told to stop.

use std::io::{self, PipeReader, PipeWriter};
use std::thread::{self, JoinHandle};

/// A thread that works.
#[derive(Debug)]
pub(super) struct Working<T> {
    /// Closing it tells the work to stop.
    stop: PipeWriter,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Working<T> {
    /// Starts `work` on a thread called `name`; it ends when what it was given is gone.
    pub(super) fn start(
        name: &str,
        work: impl FnOnce(&PipeReader) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&stopped))?;
        Ok(Self { stop, thread })
    }

    pub(super) fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Tells the work to stop, without waiting.
    pub(super) fn tell_to_stop(self) -> Stopping<T> {
        drop(self.stop);
        Stopping(self.thread)
    }

    /// Has it stop; what came of it.
    pub(super) fn stop(self) -> T {
        self.tell_to_stop().wait()
    }
}

/// Work that was told to stop.
#[derive(Debug)]
pub(super) struct Stopping<T>(JoinHandle<T>);

impl<T> Stopping<T> {
    /// Waits until it has; what came of it.
    pub(super) fn wait(self) -> T {
        let ended = self.0.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
