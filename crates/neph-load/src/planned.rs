//! Transfers that plans measure in the place of messages: one way to carry out whichever it is.
//!
//! Owns which engine a measure asks for. What each does is the engine's.

use std::net::SocketAddr;

use neph_model::{Measure, Permit, Quantities, Quantity, Span, Stop};
use neph_sys::clock;
use neph_wire::throughput::Ask;

use crate::media::{self, MediaAsk, MediaError};
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
    Media(MediaAsk),
}

/// How long a player waits before it shows the first frame: what is late for that counts as late.
const PLAY_OUT: Span = Span::from_millis(200);

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum TransferRefused {
    /// Of throughput and of requests and replies.
    #[error(transparent)]
    Throughput(#[from] ThroughputError),
    /// Of media streams.
    #[error(transparent)]
    Media(#[from] MediaError),
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
            Measure::Media(test) => Engine::Media(MediaAsk {
                url: format!("rtsp://{server}/"),
                streams: test.clients,
                duration: terms.duration,
                buffer: PLAY_OUT,
                start: None,
            }),
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
    ) -> Result<Transferred, TransferRefused> {
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
            Engine::Media(ask) => {
                let mut each = |second: &media::MediaSecond| {
                    let bytes = usize::try_from(second.sum(|one| one.bytes));
                    permit.spend(bytes.unwrap_or(usize::MAX), clock::raw().0);
                    on_second(second.quantities());
                };
                let measured = media::measure(server, ask, stop, &mut each)?;
                Ok(Transferred {
                    quantities: measured.quantities(),
                    fault: measured.fault(),
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
