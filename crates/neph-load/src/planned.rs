//! Runs a transfer of a plan, whichever engine it needs.
//!
//! Owns the choice of the engine for a measure. Does not own the engines.

use std::net::SocketAddr;

use neph_model::{Measure, Permit, Quantities, Quantity, Span, Stop};
use neph_sys::clock;
use neph_wire::throughput::TestRequest;

use crate::media::{self, MediaError, MediaRequest};
use crate::throughput::rr::{self, RrRequest, RrSpec};
use crate::throughput::{self, ThroughputError, ThroughputRequest};

/// A transfer of a plan.
#[derive(Clone, Debug)]
pub struct PlannedTransfer {
    engine: Engine,
    /// The server.
    pub server: SocketAddr,
    /// Limit of sent and received data.
    pub permit: Permit,
}

#[derive(Clone, Debug)]
enum Engine {
    Throughput(TestRequest),
    Transactions(RrSpec),
    Media(MediaRequest),
}

/// Play-out buffer of a player; a later frame counts as late.
const PLAY_OUT_BUFFER: Span = Span::from_millis(200);

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum TransferRefused {
    /// A throughput test or transactions.
    #[error(transparent)]
    Throughput(#[from] ThroughputError),
    /// Media streams.
    #[error(transparent)]
    Media(#[from] MediaError),
}

/// Parameters of a transfer other than its measure.
#[derive(Clone, Debug)]
pub struct TransferTerms {
    /// Duration.
    pub duration: Span,
    /// TCP congestion control; absent: the system's default.
    pub congestion: Option<String>,
    /// Timeout after which a transaction is lost.
    pub timeout: Span,
}

/// Result of a transfer.
#[derive(Clone, Debug)]
pub struct Transferred {
    /// The measured quantities.
    pub quantities: Quantities,
    /// Why it broke off, if it did.
    pub fault: Option<String>,
}

impl PlannedTransfer {
    /// The transfer of a measure; `None` for messages.
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
                Engine::Throughput(throughput::build_test_request(
                    test,
                    terms.duration,
                    congestion,
                ))
            }
            Measure::Media(test) => Engine::Media(MediaRequest {
                url: format!("rtsp://{server}/"),
                streams: test.clients,
                duration: terms.duration,
                buffer: PLAY_OUT_BUFFER,
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

    /// Runs it until its time is over or `stop` is set; `on_second` gets the quantities of each
    /// second.
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
            Engine::Throughput(test_request) => {
                let request = ThroughputRequest {
                    server,
                    test_request,
                    permit,
                };
                let mut report_second =
                    |second: &throughput::Second| on_second(second.quantities());
                let measured = throughput::measure(request, stop, &mut report_second)?;
                Ok(Transferred {
                    quantities: measured.quantities(),
                    fault: measured.fault,
                })
            }
            Engine::Media(media_request) => {
                let mut report_second = |second: &media::MediaSecond| {
                    let bytes = usize::try_from(second.sum(|stream_second| stream_second.bytes));
                    permit.spend(bytes.unwrap_or(usize::MAX), clock::raw().0);
                    on_second(second.quantities());
                };
                let measured = media::measure(server, media_request, stop, &mut report_second)?;
                Ok(Transferred {
                    quantities: measured.quantities(),
                    fault: measured.fault(),
                })
            }
            Engine::Transactions(spec) => {
                let request = RrRequest {
                    server,
                    spec,
                    permit,
                };
                let mut report_second = |second: &rr::RrSecond| on_second(second.quantities());
                let measured = rr::measure(request, stop, &mut report_second)?;
                Ok(Transferred {
                    quantities: measured.quantities(),
                    fault: measured.fault,
                })
            }
        }
    }
}
