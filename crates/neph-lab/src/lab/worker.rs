//! Work on a thread of this process until it is stopped.

use std::io::{self, PipeReader, PipeWriter};
use std::thread::{self, JoinHandle};

/// A thread that works.
#[derive(Debug)]
pub(super) struct Worker<T> {
    /// Closing it stops the work.
    stop: PipeWriter,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts `work` on a thread called `name`; it ends when its pipe is closed.
    pub(super) fn start(
        name: &str,
        work: impl FnOnce(&PipeReader) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (stop_reader, stop) = io::pipe()?;
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&stop_reader))?;
        Ok(Self { stop, thread })
    }

    pub(super) fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Stops the work without waiting.
    pub(super) fn request_stop(self) -> StoppingWorker<T> {
        drop(self.stop);
        StoppingWorker(self.thread)
    }

    /// Stops the work and returns its result.
    pub(super) fn stop(self) -> T {
        self.request_stop().wait()
    }
}

/// Work that is stopping.
#[derive(Debug)]
pub(super) struct StoppingWorker<T>(JoinHandle<T>);

impl<T> StoppingWorker<T> {
    /// Waits until it has stopped and returns its result.
    pub(super) fn wait(self) -> T {
        let result = self.0.join();
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
