//! Work in a namespace: opened there, then run until it is stopped.

use std::io::{self, PipeReader};
use std::sync::mpsc;

use neph_sys::netns::{self, NetNs};

use super::LabError;
use super::worker::Worker;

/// Work in a namespace; its result is `None` if it could not be opened.
pub(super) type NamespaceWorker<T> = Worker<Option<T>>;

/// The message that work is ready, which is sent once.
#[derive(Debug)]
pub(super) struct ReadyMessage {
    name: String,
    receiver: mpsc::Receiver<Result<(), LabError>>,
}

impl ReadyMessage {
    /// Waits for it.
    pub(super) fn wait(self) -> Result<(), LabError> {
        let Self { name, receiver } = self;
        receiver.recv().map_err(|_| LabError::Thread {
            task: name,
            source: io::Error::other("it ended before it was ready"),
        })?
    }
}

/// Opens the work called `name` inside `namespace` and runs it on a thread of its own. It is not ready yet.
pub(super) fn start<W, T: Send + 'static>(
    name: &str,
    namespace: &NetNs,
    open: impl FnOnce() -> Result<W, LabError> + Send + 'static,
    run: impl FnOnce(W, &PipeReader) -> T + Send + 'static,
) -> Result<(NamespaceWorker<T>, ReadyMessage), LabError> {
    let namespace = NetNs::open(namespace.name())?;
    let (report, receiver) = mpsc::channel();
    let work = move |stop: &PipeReader| {
        let resource = netns::enter(&namespace)
            .map_err(LabError::from)
            .and_then(|()| open());
        // There is no receiver only if the starter has ended, and its pipe with it.
        match resource {
            Ok(resource) => {
                let _ = report.send(Ok(()));
                Some(run(resource, stop))
            }
            Err(error) => {
                let _ = report.send(Err(error));
                None
            }
        }
    };
    let worker = Worker::start(name, work).map_err(|source| LabError::Thread {
        task: name.to_owned(),
        source,
    })?;
    let name = name.to_owned();
    Ok((worker, ReadyMessage { name, receiver }))
}
