//! An engine on a thread of this process, and the means to stop it.

use std::sync::Arc;

use neph_sys::netns::NetNs;

use super::LabError;
use super::inside::{self, Inside, ReadyMessage};
use super::working;
use crate::counters::LinkCounters;
use crate::engine::{Ending, Engine, EngineConfig, EngineError};

/// The result of an engine.
type Ended = Result<Ending, EngineError>;

/// A running engine.
#[derive(Debug)]
pub(super) struct Carrier {
    number: usize,
    counters: Arc<LinkCounters>,
    engine: Inside<Ended>,
}

impl Carrier {
    /// Starts the engine of the link with this index inside `wire`. It is not ready yet.
    pub(super) fn start(
        number: usize,
        config: EngineConfig,
        wire: &NetNs,
    ) -> Result<(Self, ReadyMessage), LabError> {
        let counters = Arc::new(LinkCounters::default());
        let for_engine = Arc::clone(&counters);
        let name = config.link.clone();
        let open = move || Ok(Engine::open(config, for_engine)?);
        let (engine, word) = inside::start(&name, wire, open, Engine::run)?;
        let carrier = Self {
            number,
            counters,
            engine,
        };
        Ok((carrier, word))
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
    pub(super) fn order_stop(self) -> Stopping {
        Stopping(self.engine.order_stop())
    }
}

/// An engine that is stopping.
#[derive(Debug)]
pub(super) struct Stopping(working::Stopping<Option<Ended>>);

impl Stopping {
    /// Waits until it has stopped and its records are written.
    pub(super) fn wait(self) -> Result<(), EngineError> {
        self.0.wait().transpose().map(|_| ())
    }
}
