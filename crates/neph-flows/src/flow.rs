//! What is kept of one flow: levels of base latency, order, witnesses. Its size does not grow with
//! its messages.

use neph_model::{FleetMessage, Instant, Lane, Own, Span};

use crate::lately::Lately;
use crate::order::Order;
use crate::settings::Settings;
use crate::view::{Direction, FlowHistory, FlowTally, PathChange, Segment};
use crate::witness::{Claim, Drift, Looking, Witness};

/// A base latency that began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// When the first of its messages was sent.
    pub(crate) from: Instant<Own>,
    /// The base latency.
    pub(crate) base: Span,
    /// Which way the change to it happened, where that is known.
    pub(crate) direction: Option<Direction>,
}

/// A flow that is over, or a look at one that goes on.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    pub(crate) lane: Lane,
    pub(crate) source_port: u16,
    pub(crate) until: Instant<Own>,
    pub(crate) levels: Box<[Level]>,
    pub(crate) tally: FlowTally,
    pub(crate) lately: Lately,
}

impl Past {
    /// The same for whoever reads it; the classes are not known yet.
    pub(crate) fn history(&self) -> FlowHistory {
        let ends = self.levels.iter().skip(1).map(|level| level.from);
        let segments = self
            .levels
            .iter()
            .zip(ends.chain([self.until]))
            .map(|(level, until)| Segment {
                from: level.from,
                until: until.max(level.from),
                base: level.base,
                class: None,
            });
        FlowHistory {
            lane: self.lane,
            source_port: self.source_port,
            segments: segments.collect(),
            tally: self.tally,
            last: self.lately.told(),
        }
    }
}

/// A new base latency of a flow, as the detector tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    /// When the first message of the new latency was sent.
    pub(crate) at: Instant<Own>,
    /// When it was certain.
    pub(crate) told: Instant<Own>,
    /// The latency before, as exactly as it was known at its end.
    pub(crate) before: Option<Span>,
    /// The new latency.
    pub(crate) after: Span,
}

/// A flow that goes on.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    lane: Lane,
    source_port: u16,
    first: Instant<Own>,
    last: Instant<Own>,
    order: Order,
    witness: Witness,
    levels: Vec<Level>,
}

impl Flow {
    /// The flow of a message, which is its first.
    pub(crate) fn begun_by(message: &FleetMessage) -> Self {
        Self {
            lane: message.lane,
            source_port: message.source_port,
            first: message.sent,
            last: message.sent,
            order: Order::default(),
            witness: Witness::default(),
            levels: Vec::new(),
        }
    }

    /// Whether a message is one of this flow, and not of the next one on its lane.
    pub(crate) const fn owns(&self, message: &FleetMessage) -> bool {
        self.source_port == message.source_port
    }

    /// When its first message was sent.
    pub(crate) const fn first(&self) -> Instant<Own> {
        self.first
    }

    /// How its messages fared.
    pub(crate) const fn tally(&self) -> &FlowTally {
        self.order.tally()
    }

    /// The next message.
    pub(crate) fn push(&mut self, message: &FleetMessage, settings: &Settings, drift: &mut Drift) {
        self.order.push(message);
        if let Some(reply) = message.reply() {
            self.last = self.last.max(message.sent);
            let looking = Looking {
                base: self.base(),
                tolerance: settings.detection.tolerance,
            };
            self.witness.push((message, reply), looking, drift);
        }
    }

    /// Another base latency, which makes a path change; of the first it makes none.
    pub(crate) fn shift(
        &mut self,
        shift: Shift,
        settings: &Settings,
        (interval, drift): (Span, Drift),
    ) -> Option<PathChange> {
        let Shift {
            at, told, after, ..
        } = shift;
        let tolerance = settings.detection.tolerance;
        let Some(before) = self.close_level(shift.before) else {
            self.witness.settle();
            self.levels.push(Level {
                from: at,
                base: after,
                direction: None,
            });
            return None;
        };
        let evidence = self.witness.testify(&Claim {
            at,
            before,
            after,
            tolerance,
            interval,
            overtaking: self.order.overtaking(),
            drift,
        });
        self.levels.push(Level {
            from: at,
            base: after,
            direction: evidence.direction,
        });
        Some(PathChange {
            lane: self.lane,
            source_port: self.source_port,
            at,
            told,
            before,
            after,
            evidence,
        })
    }

    /// The latest level was none: it has been this latency all along. Where that is what it was
    /// before too, the change to the level never was, and its moment is told.
    pub(crate) fn correct(&mut self, after: Span, settings: &Settings) -> Correction {
        let tolerance = settings.detection.tolerance;
        self.witness.settle();
        let Some(last) = self.levels.last_mut() else {
            return Correction::Silent;
        };
        last.base = after;
        let at = last.from;
        let [.., before, _] = self.levels.as_slice() else {
            return Correction::Silent;
        };
        if (before.base - after).abs() > tolerance {
            return Correction::Amended(at);
        }
        self.levels.pop();
        Correction::Withdrawn(at)
    }

    /// A look at it as if it ended now; `base` is its base latency as exactly as it is known.
    pub(crate) fn past(&self, base: Option<Span>) -> Past {
        let mut levels = self.levels.clone().into_boxed_slice();
        if let (Some(last), Some(base)) = (levels.last_mut(), base) {
            last.base = base;
        }
        Past {
            lane: self.lane,
            source_port: self.source_port,
            until: self.last,
            levels,
            tally: *self.order.tally(),
            lately: self.order.lately(),
        }
    }

    /// The base latency, if it is known.
    fn base(&self) -> Option<Span> {
        self.levels.last().map(|level| level.base)
    }

    /// The latest level's base latency, as exactly as it was known at its end.
    fn close_level(&mut self, exactly: Option<Span>) -> Option<Span> {
        let last = self.levels.last_mut()?;
        last.base = exactly.unwrap_or(last.base);
        Some(last.base)
    }
}

/// What a correction means for the change that led to the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Correction {
    /// There was no change: the level was the flow's first.
    Silent,
    /// The change at this moment led to another level than was told.
    Amended(Instant<Own>),
    /// The change at this moment was none.
    Withdrawn(Instant<Own>),
}
