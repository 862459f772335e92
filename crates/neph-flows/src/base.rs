//! The base latency of each flow to one endpoint: the detector of `neph-stats`, in our vocabulary.

use neph_model::{Instant, Own, Span};
use neph_stats::{Finding, FleetBase, Guard, StatsError};

use crate::flow::Shift;
use crate::pair::SharedDrift;
use crate::settings::Settings;

/// What the detector says about a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    /// The flow, as the caller counts.
    pub(crate) flow: u32,
    /// How many flows had this number before it.
    pub(crate) nth: u32,
    /// What is new.
    pub(crate) what: What,
}

/// What is new about a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// It has another base latency, or its first.
    Shift(Shift),
    /// What was told last was wrong: it has been this all along.
    Correction {
        /// When the first message was sent that shows it.
        at: Instant<Own>,
        /// The base latency.
        base: Span,
    },
}

/// The base latencies of the flows to one endpoint.
#[derive(Debug)]
pub(crate) struct Bases(FleetBase);

impl Bases {
    /// # Errors
    /// Where the three numbers of the rule do not fit together.
    pub(crate) fn new(settings: &Settings) -> Result<Self, StatsError> {
        Ok(Self(FleetBase::new(Guard {
            detection: settings.detection.rule()?,
            hold: settings.hold.nanos(),
            settle: settings.settle.nanos(),
        })))
    }

    /// A reply: when its request left, and the round trip.
    pub(crate) fn push(&mut self, flow: u32, sent: Instant<Own>, round_trip: Span) {
        self.0.push(flow, sent.nanos(), round_trip.nanos());
    }

    /// From `at` on, this number stands for another flow.
    pub(crate) fn restart(&mut self, flow: u32, at: Instant<Own>) {
        self.0.restart(flow, at.nanos());
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) {
        self.0.finish();
    }

    /// By how much all flows have drifted slowly since the beginning.
    pub(crate) fn drifted(&self) -> Span {
        Span::from_nanos(self.0.drifted())
    }

    /// The least and the most that was.
    pub(crate) fn drift(&self) -> SharedDrift {
        let (lowest, highest) = self.0.drift_range();
        SharedDrift {
            lowest: Span::from_nanos(lowest),
            highest: Span::from_nanos(highest),
        }
    }

    /// A flow's base latency as exactly as it is known, without that.
    pub(crate) fn base(&self, flow: u32) -> Option<Span> {
        self.0.base(flow).map(Span::from_nanos)
    }

    /// How many flows had this number before the one that the detector is at.
    pub(crate) fn nth(&self, flow: u32) -> u32 {
        self.0.nth(flow)
    }

    /// When a queue stood that all flows shared, in the order of time.
    pub(crate) fn queued(&self) -> impl Iterator<Item = (Instant<Own>, Instant<Own>)> + '_ {
        let moments =
            |&(from, until): &(i64, i64)| (Instant::from_nanos(from), Instant::from_nanos(until));
        self.0.queued().iter().map(moments)
    }

    /// Whether there were so many that some are told as one.
    pub(crate) const fn queues_are_joined(&self) -> bool {
        self.0.queues_are_joined()
    }

    /// What was not told yet; of one flow in the order of time.
    pub(crate) fn news(&mut self) -> Option<News> {
        let found = self.0.next_told()?;
        let told = found.told;
        let (at, after) = (Instant::from_nanos(told.at), Span::from_nanos(told.after));
        let what = match told.finding {
            Finding::Correction => What::Correction { at, base: after },
            Finding::First | Finding::Change => What::Shift(Shift {
                at,
                told: Instant::from_nanos(told.certain) + after,
                before: told.before.map(Span::from_nanos),
                after,
            }),
        };
        Some(News {
            flow: found.flow,
            nth: found.nth,
            what,
        })
    }
}
