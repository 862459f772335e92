//! Flows of an imported campaign. The files have no source port and no kernel timestamps. Each file is a
//! connection of its own, and its capture has the acknowledgements.

use neph_model::Span;

use crate::diagnosis::{Run, SortedValues};
use crate::text::to_f64;

/// Minimum share of replies with an acknowledgement, so that these count as the flow's round trips.
const MIN_ACKNOWLEDGED_SHARE: f64 = 0.5;

/// The round trips of the messages: those of TCP if a capture has them, else those of the application.
pub(crate) fn round_trips(run: &Run<'_>) -> SortedValues {
    let exchanges = &run.flow.exchanges;
    let times_of = |time: fn(&crate::Exchange) -> Option<Span>| -> Vec<f64> {
        exchanges
            .iter()
            .filter_map(time)
            .map(Span::millis_f64)
            .collect()
    };
    let (ack_times, service_times) = (
        times_of(|exchange| exchange.ack),
        times_of(|exchange| exchange.service),
    );
    let has_acknowledgements =
        to_f64(ack_times.len()) >= MIN_ACKNOWLEDGED_SHARE * to_f64(service_times.len());
    let times = if has_acknowledgements {
        ack_times
    } else {
        service_times
    };
    times.into_iter().collect()
}
