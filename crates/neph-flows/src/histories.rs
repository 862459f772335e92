//! Flows for tests, as they are after a measurement.

use neph_model::{Instant, Slot, Span};

use crate::flow_tally::FlowTally;
use crate::recent_outcomes::LastMessages;
use crate::view::{FlowHistory, Segment};

/// A flow with these segments: from when, until when, in multiples of `time`; and the base latency,
/// in multiples of `base`.
pub(crate) fn history(segments: &[(i64, i64, i64)], (time, base): (Span, Span)) -> FlowHistory {
    let at = |number: i64| Instant::from_nanos(0) + time.times(number);
    let segment = |&(from, until, level): &(i64, i64, i64)| Segment {
        from: at(from),
        until: at(until),
        base: base.times(level),
        class: None,
    };
    FlowHistory {
        slot: Slot(0),
        source_port: 1,
        segments: segments.iter().map(segment).collect(),
        tally: FlowTally::default(),
        last: LastMessages::default(),
    }
}
