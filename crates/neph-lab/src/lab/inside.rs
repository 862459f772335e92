//! Work on a thread of this process that lives in a namespace: opened there, run until it is told to
//! stop.

use std::io::{self, PipeReader, PipeWriter};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use neph_sys::netns::{self, NetNs};

use super::LabError;

/// A thread that works in a namespace.
#[derive(Debug)]
pub(super) struct Inside<T> {
    /// Closing it tells the work to stop.
    stop: PipeWriter,
    /// What came of the work; none if it could not be opened.
    thread: JoinHandle<Option<T>>,
}

/// The word that work is ready, which it gives once.
#[derive(Debug)]
pub(super) struct Word {
    name: String,
    told: mpsc::Receiver<Result<(), LabError>>,
}

impl Word {
    /// Waits for it.
    pub(super) fn wait(self) -> Result<(), LabError> {
        let Self { name, told } = self;
        told.recv().map_err(|_| LabError::Thread {
            what: name,
            source: io::Error::other("it ended before it was ready"),
        })?
    }
}

impl<T: Send + 'static> Inside<T> {
    /// Opens the work called `name` inside `namespace` and runs it, on a thread of its own. It is
    /// not ready yet.
    pub(super) fn start<W>(
        name: &str,
        namespace: &NetNs,
        open: impl FnOnce() -> Result<W, LabError> + Send + 'static,
        run: impl FnOnce(W, &PipeReader) -> T + Send + 'static,
    ) -> Result<(Self, Word), LabError> {
        let failed = |source| LabError::Thread {
            what: name.to_owned(),
            source,
        };
        let (stopped, stop) = io::pipe().map_err(failed)?;
        let namespace = NetNs::open(namespace.name())?;
        let (tell, told) = mpsc::channel();
        let work = move || {
            let opened = netns::enter(&namespace)
                .map_err(LabError::from)
                .and_then(|()| open());
            // Nobody listens only if the starter is gone, and its pipe with it.
            match opened {
                Ok(opened) => {
                    let _ = tell.send(Ok(()));
                    Some(run(opened, &stopped))
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                    None
                }
            }
        };
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .map_err(failed)?;
        let name = name.to_owned();
        Ok((Self { stop, thread }, Word { name, told }))
    }

    pub(super) fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Tells the work to stop, without waiting.
    pub(super) fn tell_to_stop(self) -> Stopping<T> {
        drop(self.stop);
        Stopping(self.thread)
    }
}

/// Work that was told to stop.
#[derive(Debug)]
pub(super) struct Stopping<T>(JoinHandle<Option<T>>);

impl<T> Stopping<T> {
    /// Waits until it has; what came of it, if it was ever opened.
    pub(super) fn wait(self) -> Option<T> {
        let ended = self.0.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
