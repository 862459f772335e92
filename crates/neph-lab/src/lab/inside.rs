//! Work that lives in a namespace: opened there, then run until it is told to stop.

use std::io::{self, PipeReader};
use std::sync::mpsc;

use neph_sys::netns::{self, NetNs};

use super::LabError;
use super::working::Working;

/// Work in a namespace; nothing comes of it if it could not be opened.
pub(super) type Inside<T> = Working<Option<T>>;

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

/// Opens the work called `name` inside `namespace` and runs it, on a thread of its own. It is not
/// ready yet.
pub(super) fn start<W, T: Send + 'static>(
    name: &str,
    namespace: &NetNs,
    open: impl FnOnce() -> Result<W, LabError> + Send + 'static,
    run: impl FnOnce(W, &PipeReader) -> T + Send + 'static,
) -> Result<(Inside<T>, Word), LabError> {
    let namespace = NetNs::open(namespace.name())?;
    let (tell, told) = mpsc::channel();
    let work = move |stop: &PipeReader| {
        let opened = netns::enter(&namespace)
            .map_err(LabError::from)
            .and_then(|()| open());
        // Nobody listens only if the starter is gone, and its pipe with it.
        match opened {
            Ok(opened) => {
                let _ = tell.send(Ok(()));
                Some(run(opened, stop))
            }
            Err(error) => {
                let _ = tell.send(Err(error));
                None
            }
        }
    };
    let inside = Working::start(name, work).map_err(|source| LabError::Thread {
        what: name.to_owned(),
        source,
    })?;
    let name = name.to_owned();
    Ok((inside, Word { name, told }))
}
