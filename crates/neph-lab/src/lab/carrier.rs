//! An engine on a thread of this process, and the means to stop it.

use std::io::{self, PipeWriter};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use neph_sys::netns::{self, NetNs};

use super::LabError;
use crate::counters::LinkCounters;
use crate::engine::{Ending, Engine, EngineConfig, EngineError};

/// A running engine.
#[derive(Debug)]
pub(super) struct Carrier {
    number: usize,
    counters: Arc<LinkCounters>,
    /// Closing it stops the engine.
    stop: PipeWriter,
    thread: JoinHandle<Result<Ending, EngineError>>,
}

/// The word that an engine is ready, which it gives once.
#[derive(Debug)]
pub(super) struct Word {
    link: String,
    told: mpsc::Receiver<Result<(), LabError>>,
}

impl Word {
    /// Waits for it.
    pub(super) fn wait(self) -> Result<(), LabError> {
        let Self { link, told } = self;
        told.recv().map_err(|_| LabError::Thread {
            link,
            source: io::Error::other("it ended before it was ready"),
        })?
    }
}

impl Carrier {
    /// Starts the engine of the link with this index inside `wire`. It is not ready yet.
    pub(super) fn start(
        number: usize,
        config: EngineConfig,
        wire: &NetNs,
    ) -> Result<(Self, Word), LabError> {
        let link = config.link.clone();
        let failed = |source| LabError::Thread {
            link: link.clone(),
            source,
        };
        let (stopped, stop) = io::pipe().map_err(failed)?;
        let counters = Arc::new(LinkCounters::default());
        let wire = NetNs::open(wire.name())?;
        let (tell, told) = mpsc::channel::<Result<(), LabError>>();
        let for_engine = Arc::clone(&counters);
        let work = move || {
            let opened = netns::enter(&wire)
                .map_err(LabError::from)
                .and_then(|()| Ok(Engine::open(config, for_engine)?));
            match opened {
                Ok(engine) => {
                    // Nobody listens only if the starter is gone, and its pipe with it.
                    let _ = tell.send(Ok(()));
                    engine.run(&stopped)
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                    Ok(Ending::Stopped)
                }
            }
        };
        let thread = thread::Builder::new()
            .name(format!("link-{link}"))
            .spawn(work)
            .map_err(failed)?;
        let carrier = Self {
            number,
            counters,
            stop,
            thread,
        };
        Ok((carrier, Word { link, told }))
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn counters(&self) -> &Arc<LinkCounters> {
        &self.counters
    }

    pub(super) fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Tells the engine to stop, without waiting.
    pub(super) fn tell_to_stop(self) -> Stopping {
        drop(self.stop);
        Stopping(self.thread)
    }
}

/// An engine that was told to stop.
#[derive(Debug)]
pub(super) struct Stopping(JoinHandle<Result<Ending, EngineError>>);

impl Stopping {
    /// Waits until it has, and its records are written.
    pub(super) fn wait(self) -> Result<(), EngineError> {
        let ended = self
            .0
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.map(|_| ())
    }
}
