//! Flows of an imported campaign. The files have no source port and no kernel timestamps. Each file is a
//! connection of its own, and its capture has the acknowledgements.

use neph_model::Span;

use crate::diagnosis::{Ordered, Run};
use crate::text::real;

/// Minimum share of replies with an acknowledgement, so that these count as the flow's round trips.
const ACKNOWLEDGED: f64 = 0.5;

/// The round trips of the messages: those of TCP if a capture has them, else those of the application.
pub(crate) fn round_trips(run: &Run<'_>) -> Ordered {
    let exchanges = &run.flow.exchanges;
    let times_of = |time: fn(&crate::Exchange) -> Option<Span>| -> Vec<f64> {
        exchanges
            .iter()
            .filter_map(time)
            .map(Span::millis_f64)
            .collect()
    };
    let (acknowledged, served) = (
        times_of(|exchange| exchange.ack),
        times_of(|exchange| exchange.service),
    );
    let has_acknowledgements = real(acknowledged.len()) >= ACKNOWLEDGED * real(served.len());
    let times = if has_acknowledgements {
        acknowledged
    } else {
        served
    };
    times.into_iter().collect()
}
