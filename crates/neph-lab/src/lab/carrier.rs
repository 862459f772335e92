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
pub(super) struct Carrier {
    number: usize,
    counters: Arc<LinkCounters>,
    engine: NamespaceWorker<EngineResult>,
}

impl Carrier {
    /// Starts the engine of the link with this index inside `wire`. It is not ready yet.
    pub(super) fn start(
        number: usize,
        config: EngineConfig,
        wire: &NetNs,
    ) -> Result<(Self, ReadyMessage), LabError> {
        let counters = Arc::new(LinkCounters::default());
        let engine_counters = Arc::clone(&counters);
        let name = config.link.clone();
        let open = move || Ok(Engine::open(config, engine_counters)?);
        let (engine, ready_message) = namespace_worker::start(&name, wire, open, Engine::run)?;
        let carrier = Self {
            number,
            counters,
            engine,
        };
        Ok((carrier, ready_message))
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn counters(&self) -> &Arc<LinkCounters> {
        &self.counters
    }

    pub(super) fn is_running(&self) -> bool {
        self.engine.is_running()
    }

    /// Stops the engine without waiting.
    pub(super) fn request_stop(self) -> StoppingCarrier {
        StoppingCarrier(self.engine.request_stop())
    }
}

/// An engine that is stopping.
#[derive(Debug)]
pub(super) struct StoppingCarrier(worker::StoppingWorker<Option<EngineResult>>);

impl StoppingCarrier {
    /// Waits until it has stopped and its records are written.
    pub(super) fn wait(self) -> Result<(), EngineError> {
        self.0.wait().transpose().map(|_| ())
    }
}
