//! Flows of an imported campaign: its files name no source port and have no kernel stamps, but each file
//! is a connection of its own, and a capture beside it has the acknowledgements.

use neph_model::Span;

use crate::diagnosis::{Ordered, Run};
use crate::words::real;

/// So many of the replies must have an acknowledgement for these to be the flow's round trips.
const ACKNOWLEDGED: f64 = 0.5;

/// Its messages' round trips: those of TCP where a capture has them, else those of the application.
pub(crate) fn round_trips(run: &Run<'_>) -> Ordered {
    let exchanges = &run.flow.exchanges;
    let of = |time: fn(&crate::Exchange) -> Option<Span>| -> Vec<f64> {
        exchanges
            .iter()
            .filter_map(time)
            .map(Span::millis_f64)
            .collect()
    };
    let (acknowledged, served) = (of(|one| one.ack), of(|one| one.service));
    let has_acknowledgements = real(acknowledged.len()) >= ACKNOWLEDGED * real(served.len());
    let times = if has_acknowledgements {
        acknowledged
    } else {
        served
    };
    times.into_iter().collect()
}
