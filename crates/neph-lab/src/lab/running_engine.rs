//! An engine on a thread of this process, and the means to stop it.

use std::sync::Arc;

use neph_sys::netns::NetNs;

use super::LabError;
use super::namespace_worker::{self, NamespaceWorker, ReadyMessage};
use super::worker;
use crate::counters::LinkCounters;
use crate::engine::{EndReason, Engine, EngineConfig, EngineError};

/// The result of an engine.
type EngineResult = Result<EndReason, EngineError>;

/// A running engine.
#[derive(Debug)]
pub(super) struct RunningEngine {
    link_index: usize,
    counters: Arc<LinkCounters>,
    worker: NamespaceWorker<EngineResult>,
}

impl RunningEngine {
    /// Starts the engine of the link with this index inside `wire`. It is not ready yet.
    pub(super) fn start(
        link_index: usize,
        config: EngineConfig,
        wire: &NetNs,
    ) -> Result<(Self, ReadyMessage), LabError> {
        let counters = Arc::new(LinkCounters::default());
        let worker_counters = Arc::clone(&counters);
        let name = config.link.clone();
        let open = move || Ok(Engine::open(config, worker_counters)?);
        let (worker, ready_message) = namespace_worker::start(&name, wire, open, Engine::run)?;
        let engine = Self {
            link_index,
            counters,
            worker,
        };
        Ok((engine, ready_message))
    }

    pub(super) fn link_index(&self) -> usize {
        self.link_index
    }

    pub(super) fn counters(&self) -> &Arc<LinkCounters> {
        &self.counters
    }

    pub(super) fn is_running(&self) -> bool {
        self.worker.is_running()
    }

    /// Stops the engine without waiting.
    pub(super) fn request_stop(self) -> StoppingEngine {
        StoppingEngine(self.worker.request_stop())
    }
}

/// An engine that is stopping.
#[derive(Debug)]
pub(super) struct StoppingEngine(worker::StoppingWorker<Option<EngineResult>>);

impl StoppingEngine {
    /// Waits until it has stopped and its records are written.
    pub(super) fn wait(self) -> Result<(), EngineError> {
        self.0.wait().transpose().map(|_| ())
    }
}
