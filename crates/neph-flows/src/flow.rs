//! What is kept of one flow: its base latency, order, witnesses. Its size does not grow with its
//! messages; its path changes are among those of all flows.

use neph_model::{FleetMessage, FleetOutcome, Instant, Lane, Own, ProbeKind, Span};

use crate::changes::{Changes, Link};
use crate::counts::Counts;
use crate::elsewhere::Row;
use crate::fates::{Fate, Silence};
use crate::flow_tally::FlowTally;
use crate::lately::Lately;
use crate::order::Order;
use crate::settings::Settings;
use crate::skew::Drift;
use crate::view::{FlowHistory, PathChange, Segment};
use crate::witness::{Claim, Looking, Witness};

/// A flow's base latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// When the first message of its first base latency was sent.
    since: Instant<Own>,
    /// What it is now.
    base: Span,
}

/// How a message of a flow is asked and judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions<'a> {
    pub(crate) probe: ProbeKind,
    pub(crate) interval: Span,
    /// By how much all flows had drifted when it was sent.
    pub(crate) drifted: Span,
    pub(crate) settings: &'a Settings,
}

/// A flow that is over, or a look at one that goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    lane: Lane,
    source_port: u16,
    until: Instant<Own>,
    level: Option<Level>,
    latest: Option<Link>,
    tally: Counts,
    lately: Lately,
}

impl Past {
    /// Whether it had a base latency at a moment.
    pub(crate) fn was_known(&self, at: Instant<Own>) -> bool {
        self.level.is_some_and(|level| level.since <= at)
    }

    /// The same as [`Flow::correct`], for what is found out when it is over.
    pub(crate) fn correct(
        &mut self,
        after: Span,
        settings: &Settings,
        changes: &mut Changes,
    ) -> Option<PathChange> {
        let level = self.level.as_mut()?;
        correct(level, &mut self.latest, after, settings, changes)
    }

    /// Its place in the fleet.
    pub(crate) const fn lane(&self) -> Lane {
        self.lane
    }

    /// When its last message was sent.
    pub(crate) const fn until(&self) -> Instant<Own> {
        self.until
    }

    /// The same for whoever reads it; the classes are not known yet.
    pub(crate) fn history(&self, changes: &Changes) -> FlowHistory {
        FlowHistory {
            lane: self.lane,
            source_port: self.source_port,
            segments: self.segments(changes),
            tally: self.tally.told(),
            last: self.lately.told(),
        }
    }

    /// From change to change, since it had a base latency or since all changes are known.
    fn segments(&self, changes: &Changes) -> Vec<Segment> {
        let Some(level) = self.level else {
            return Vec::new();
        };
        if Some(self.until) <= changes.horizon() {
            return Vec::new();
        }
        let known = changes.of_flow(self.latest);
        let begin = changes
            .horizon()
            .map_or(level.since, |horizon| horizon.max(level.since));
        let froms = [begin].into_iter().chain(known.iter().map(|one| one.at));
        let ends = known.iter().map(|one| (one.at, one.before));
        froms
            .zip(ends.chain([(self.until, level.base)]))
            .map(|(from, (until, base))| Segment {
                from,
                until: until.max(from),
                base,
                class: None,
            })
            .collect()
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
    source_port: u16,
    nth: u32,
    silence: Silence,
    /// Its latest path change.
    latest: Option<Link>,
    last: Instant<Own>,
    level: Option<Level>,
    order: Order,
    witness: Witness,
}

/// Where a flow stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) lane: Lane,
    /// Time between two messages of a flow.
    pub(crate) interval: Span,
    pub(crate) settings: &'a Settings,
    /// How fast the peer's clock runs away.
    pub(crate) drift: Drift,
}

impl Flow {
    /// The flow of a message, which is its first; its lane had so many before it.
    pub(crate) fn begun_by(message: &FleetMessage, nth: u32) -> Self {
        Self {
            source_port: message.source_port,
            nth,
            silence: Silence::default(),
            latest: None,
            last: message.sent,
            level: None,
            order: Order::default(),
            witness: Witness::default(),
        }
    }

    /// Whether a message is one of this flow, and not of the next one on its lane.
    pub(crate) const fn owns(&self, message: &FleetMessage) -> bool {
        self.source_port == message.source_port
    }

    /// How many flows its lane had before it.
    pub(crate) const fn nth(&self) -> u32 {
        self.nth
    }

    /// The next message; returns what it adds to the tally.
    pub(crate) fn push(
        &mut self,
        message: &FleetMessage,
        conditions: Conditions<'_>,
        drift: &mut Drift,
    ) -> FlowTally {
        let Conditions {
            probe,
            interval,
            drifted,
            settings,
        } = conditions;
        let found = self.order.push(message, probe, interval);
        if let Some(reply) = message.reply() {
            self.last = self.last.max(message.sent);
            let looking = Looking {
                base: self.level.map(|level| level.base),
                drifted,
                tolerance: settings.detection.tolerance,
                window: settings.detection.window,
            };
            self.witness.push(message, reply, looking, drift);
        }
        found
    }

    /// What its next message adds to the fates of those at its base latency; `None` where it has none.
    pub(crate) fn fate(&mut self, outcome: &FleetOutcome, silence: u64) -> Option<(Span, Fate)> {
        let fate = self.silence.push(outcome, silence);
        self.level.map(|level| (level.base, fate))
    }

    /// What of its messages lay, since it was asked last, at levels that were not told.
    pub(crate) fn take_elsewhere(&mut self) -> impl Iterator<Item = Row> + use<> {
        self.witness.take_elsewhere()
    }

    /// Another base latency, which makes a path change; of the first it makes none.
    pub(crate) fn shift(
        &mut self,
        shift: Shift,
        ground: Ground<'_>,
        changes: &mut Changes,
    ) -> Option<PathChange> {
        let Shift {
            at, told, after, ..
        } = shift;
        let Some(level) = &mut self.level else {
            self.witness.settle();
            self.level = Some(Level {
                since: at,
                base: after,
            });
            return None;
        };
        // As exactly as it was known at its end.
        let before = shift.before.unwrap_or(level.base);
        level.base = after;
        let change = PathChange {
            lane: ground.lane,
            source_port: self.source_port,
            at,
            told,
            before,
            after,
            evidence: self.witness.testify(&Claim {
                at,
                before,
                after,
                tolerance: ground.settings.detection.tolerance,
                window: ground.settings.detection.window,
                interval: ground.interval,
                overtaking: self.order.overtaking(),
                drift: ground.drift,
            }),
        };
        self.latest = Some(changes.push(change, self.latest));
        Some(change)
    }

    /// The latest level was none: it has been this latency all along. Where that is what it was
    /// before too, the change to the level never was: it is taken back and returned.
    pub(crate) fn correct(
        &mut self,
        after: Span,
        settings: &Settings,
        changes: &mut Changes,
    ) -> Option<PathChange> {
        self.witness.settle();
        let level = self.level.as_mut()?;
        correct(level, &mut self.latest, after, settings, changes)
    }

    /// A look at it as if it ended now; `base` is its base latency as exactly as it is known.
    pub(crate) fn past(&self, lane: Lane, base: Option<Span>) -> Past {
        let level = self.level.map(|level| Level {
            base: base.unwrap_or(level.base),
            ..level
        });
        Past {
            lane,
            source_port: self.source_port,
            until: self.last,
            level,
            latest: self.latest,
            tally: self.order.tally(),
            lately: self.order.lately(),
        }
    }
}

/// What [`Flow::correct`] does to a flow's level and the link to its latest change.
fn correct(
    level: &mut Level,
    link: &mut Option<Link>,
    after: Span,
    settings: &Settings,
    changes: &mut Changes,
) -> Option<PathChange> {
    level.base = after;
    let latest = (*link)?;
    let before = changes.get(latest)?.before;
    if (before - after).abs() > settings.detection.tolerance {
        changes.amend(latest, after);
        return None;
    }
    level.base = before;
    let (change, earlier) = changes.withdraw(latest)?;
    *link = earlier;
    Some(change)
}
