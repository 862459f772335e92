//! Transfers that plans measure in the place of messages: one way to carry out whichever it is.
//!
//! Owns which engine a measure asks for. What each does is the engine's.

use std::net::SocketAddr;

use neph_model::{Measure, Permit, Quantities, Quantity, Span, Stop};
use neph_wire::throughput::Ask;

use crate::throughput::rr::{self, RrAsked, RrSpec};
use crate::throughput::{self, Asked, ThroughputError};

/// A transfer that can be carried out.
#[derive(Clone, Debug)]
pub struct PlannedTransfer {
    engine: Engine,
    /// Where it is served.
    pub server: SocketAddr,
    /// What may be sent and received.
    pub permit: Permit,
}

#[derive(Clone, Debug)]
enum Engine {
    Throughput(Ask),
    Transactions(RrSpec),
}

/// How a transfer is to be carried out, besides what it measures.
#[derive(Clone, Debug)]
pub struct TransferTerms {
    /// How long it takes.
    pub duration: Span,
    /// TCP's congestion control; the system's if absent.
    pub congestion: Option<String>,
    /// After how long a transaction is lost.
    pub timeout: Span,
}

/// A transfer that was carried out.
#[derive(Clone, Debug)]
pub struct Transferred {
    /// What it came to.
    pub quantities: Quantities,
    /// Why it broke off, if it did.
    pub fault: Option<String>,
}

impl PlannedTransfer {
    /// The transfer of a measure; `None` of messages.
    pub fn of(
        measure: &Measure,
        terms: &TransferTerms,
        server: SocketAddr,
        permit: Permit,
    ) -> Option<Self> {
        let engine = match measure {
            Measure::Messages => return None,
            Measure::Throughput(test) => {
                let congestion = terms.congestion.clone();
                Engine::Throughput(throughput::ask(test, terms.duration, congestion))
            }
            Measure::Transactions(test) => {
                Engine::Transactions(rr::rr_spec(test, terms.duration, terms.timeout))
            }
        };
        Some(Self {
            engine,
            server,
            permit,
        })
    }

    /// Carries it out until its time is over or `stop` is set; `on_second` is given what each second came
    /// to.
    ///
    /// # Errors
    /// The server cannot be reached, refuses, or breaks off before anything was counted.
    pub fn run(
        &self,
        stop: &Stop,
        on_second: &mut dyn FnMut(Vec<(Quantity, f64)>),
    ) -> Result<Transferred, ThroughputError> {
        let (server, permit) = (self.server, &self.permit);
        match &self.engine {
            Engine::Throughput(ask) => {
                let asked = Asked {
                    server,
                    ask,
                    permit,
                };
                let mut each = |second: &throughput::Second| on_second(second.quantities());
                let measured = throughput::measure(asked, stop, &mut each)?;
                Ok(Transferred {
                    quantities: measured.quantities(),
                    fault: measured.fault,
                })
            }
            Engine::Transactions(spec) => {
                let asked = RrAsked {
                    server,
                    spec,
                    permit,
                };
                let mut each = |second: &rr::RrSecond| on_second(second.quantities());
                let measured = rr::measure(asked, stop, &mut each)?;
                Ok(Transferred {
                    quantities: measured.quantities(),
                    fault: measured.fault,
                })
            }
        }
    }
}
