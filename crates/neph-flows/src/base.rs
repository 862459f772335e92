//! The base latency of each flow to one endpoint: the detector of `neph-stats` in the terms of this crate.

use neph_model::{Instant, Local, Span};
use neph_stats::{Finding, FleetBase, FleetDetectionSettings, StatsError};

use crate::flow::Shift;
use crate::pair::SharedDrift;
use crate::settings::Settings;

/// An event of the detector for a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetectorEvent {
    /// The flow, by the caller's number.
    pub(crate) flow: u32,
    /// Number of flows that had this number before.
    pub(crate) nth: u32,
    /// The kind of event.
    pub(crate) kind: EventKind,
}

/// The kind of event of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventKind {
    /// A change of the base latency, or the first one.
    Shift(Shift),
    /// A withdrawal of the last shift: the flow had this base latency all along.
    Correction {
        /// When the first message was sent that shows it.
        at: Instant<Local>,
        /// The base latency.
        base: Span,
    },
}

/// The base latencies of the flows to one endpoint.
#[derive(Debug)]
pub(crate) struct Bases(FleetBase);

impl Bases {
    /// # Errors
    /// When the three numbers of the rule are inconsistent.
    pub(crate) fn new(settings: &Settings) -> Result<Self, StatsError> {
        Ok(Self(FleetBase::new(FleetDetectionSettings {
            detection: settings.detection.rule()?,
            hold: settings.hold.nanos(),
            settle: settings.settle.nanos(),
        })))
    }

    /// Adds a reply: when its request departed, and its round trip.
    pub(crate) fn push(&mut self, flow: u32, sent: Instant<Local>, round_trip: Span) {
        self.0.push(flow, sent.nanos(), round_trip.nanos());
    }

    /// From `at` on, this number refers to a new flow.
    pub(crate) fn restart(&mut self, flow: u32, at: Instant<Local>) {
        self.0.restart(flow, at.nanos());
    }

    /// Ends the input.
    pub(crate) fn finish(&mut self) {
        self.0.finish();
    }

    /// The slow drift that all flows share, since the beginning.
    pub(crate) fn shared_drift(&self) -> Span {
        Span::from_nanos(self.0.drifted())
    }

    /// The range of the shared drift.
    pub(crate) fn drift(&self) -> SharedDrift {
        let (lowest, highest) = self.0.drift_range();
        SharedDrift {
            lowest: Span::from_nanos(lowest),
            highest: Span::from_nanos(highest),
        }
    }

    /// A flow's base latency without the shared drift, in full precision.
    pub(crate) fn base(&self, flow: u32) -> Option<Span> {
        self.0.base(flow).map(Span::from_nanos)
    }

    /// Number of flows that had this number before the flow that the detector is processing.
    pub(crate) fn nth(&self, flow: u32) -> u32 {
        self.0.nth(flow)
    }

    /// When all flows shared a queue, by time.
    pub(crate) fn queue_periods(
        &self,
    ) -> impl Iterator<Item = (Instant<Local>, Instant<Local>)> + '_ {
        let to_instants =
            |&(from, until): &(i64, i64)| (Instant::from_nanos(from), Instant::from_nanos(until));
        self.0.queued().iter().map(to_instants)
    }

    /// Whether some queues are merged because there were too many.
    pub(crate) const fn are_queues_merged(&self) -> bool {
        self.0.queues_are_joined()
    }

    /// The next event; the events of a flow are ordered by time.
    pub(crate) fn next_event(&mut self) -> Option<DetectorEvent> {
        let fleet_detection = self.0.next_detection()?;
        let detection = fleet_detection.detection;
        let (at, after) = (
            Instant::from_nanos(detection.at),
            Span::from_nanos(detection.after),
        );
        let kind = match detection.finding {
            Finding::Correction => EventKind::Correction { at, base: after },
            Finding::First | Finding::Change => EventKind::Shift(Shift {
                at,
                reported: Instant::from_nanos(detection.certain) + after,
                before: detection.before.map(Span::from_nanos),
                after,
            }),
        };
        Some(DetectorEvent {
            flow: fleet_detection.flow,
            nth: fleet_detection.nth,
            kind,
        })
    }
}
