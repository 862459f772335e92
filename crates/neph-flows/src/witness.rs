//! Evidence for a path change of one flow in addition to the latency: TTLs, the direction by the peer's
//! timestamps, and reordering.

use neph_model::{FleetMessage, FleetReply, Instant, Local, Span};

use crate::skew::{Drift, Skew, Step, direction};
use crate::unexplained::Row;
use crate::view::Evidence;

/// After this many messages at its base latency a flow has returned to it.
const RETURN_MESSAGES: u8 = 4;
/// Messages at the base latency that are older than this many windows give no direction: other levels lie in
/// between. Their mean lags behind the latest by [`MEAN_LAG_MESSAGES`] messages.
const MAX_BASE_AGE_WINDOWS: i64 = 2;
const MEAN_LAG_MESSAGES: i64 = 8;
/// A level that is no path has lasted if it held for this many consecutive windows.
const MIN_LASTING_WINDOWS: u32 = 2;
/// Maximum number of rows of one level; later ones count with the last.
const MAX_ROWS: usize = 16;

/// The common properties of the messages of one level.
#[derive(Clone, Copy, Debug)]
struct Traits {
    round_trip: Span,
    /// `None` without data of the peer.
    skew: Option<Skew>,
    ttl: Option<u8>,
    peer_ttl: Option<u8>,
}

impl Traits {
    /// From a reply; its round trip excludes the drift that all flows share.
    fn of(sent: Instant<Local>, reply: &FleetReply, shared_drift: Span) -> Self {
        let peer = reply.peer_report;
        let round_trip = reply.network();
        Self {
            round_trip: round_trip - shared_drift,
            skew: peer.map(|peer| Skew::of(sent, round_trip, &peer)),
            ttl: reply.ttl,
            peer_ttl: peer.and_then(|peer| peer.ttl),
        }
    }

    fn is_near(&self, round_trip: Span, tolerance: Span) -> bool {
        (self.round_trip - round_trip).abs() <= tolerance
    }

    /// The same, following another level of the flow.
    fn inherit_skew(mut self, previous: Option<&Self>) -> Self {
        let previous = previous.and_then(|previous| previous.skew);
        if let (Some(skew), Some(previous)) = (&mut self.skew, previous) {
            skew.inherit(&previous);
        }
        self
    }

    /// Whether its latest messages are too old to be those just before the change.
    fn is_stale(&self, claim: &Claim) -> bool {
        let window = i64::from(claim.window);
        let max_age = claim
            .interval
            .times(MEAN_LAG_MESSAGES + MAX_BASE_AGE_WINDOWS * window);
        self.skew.is_some_and(|skew| claim.at - skew.at() > max_age)
    }

    /// Adds a message of the same level: the latest TTLs, the mean of skews.
    fn merge(&mut self, other: &Self, drift: Drift) {
        match (&mut self.skew, other.skew) {
            (Some(skew), Some(new_skew)) => skew.merge(&new_skew, drift),
            (skew, new_skew) => *skew = new_skew.or(*skew),
        }
        self.ttl = other.ttl.or(self.ttl);
        self.peer_ttl = other.peer_ttl.or(self.peer_ttl);
    }
}

/// A level other than the base latency.
#[derive(Clone, Debug)]
struct OtherLevel {
    traits: Traits,
    /// The latest consecutive messages at it.
    row: Row,
    /// The earlier rows that lasted.
    lasting_rows: Vec<Row>,
}

impl OtherLevel {
    fn of(traits: Traits, sent: Instant<Local>) -> Self {
        Self {
            traits,
            row: first_row(sent),
            lasting_rows: Vec::new(),
        }
    }

    /// Adds a message of the level; `is_in_row` if the flow's previous message was at it too.
    fn count(&mut self, sent: Instant<Local>, is_in_row: bool, window: u8) {
        if !is_in_row {
            self.close(window);
            self.row = first_row(sent);
            return;
        }
        self.row.until = self.row.until.max(sent);
        self.row.messages = self.row.messages.saturating_add(1);
    }

    /// Keeps the latest row, if it lasted.
    fn close(&mut self, window: u8) {
        if self.row.messages < MIN_LASTING_WINDOWS * u32::from(window) {
            return;
        }
        let is_full = self.lasting_rows.len() >= MAX_ROWS;
        match self.lasting_rows.last_mut() {
            Some(last) if is_full => {
                last.until = self.row.until;
                last.messages = last.messages.saturating_add(self.row.messages);
            }
            _ => self.lasting_rows.push(self.row),
        }
    }
}

/// A row's first message.
const fn first_row(sent: Instant<Local>) -> Row {
    Row {
        from: sent,
        until: sent,
        messages: 1,
    }
}

/// Levels of a flow's messages other than its base latency. There are two, so that a single late reply does
/// not replace the new level. The first is the most recent one.
#[derive(Clone, Debug, Default)]
struct OtherLevels([Option<OtherLevel>; 2]);

/// Rows that lasted: boxed, because few flows have any.
#[derive(Clone, Debug, Default)]
struct Rows(Vec<Row>);

/// Evidence from a flow's latest messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Witness {
    /// Of the messages at the base latency.
    base_traits: Option<Traits>,
    /// Of the other messages; dropped when the flow has returned to its base latency.
    other_levels: Option<Box<OtherLevels>>,
    /// Messages at the base latency since the last other one, up to [`RETURN_MESSAGES`].
    base_messages: u8,
    /// Rows at levels that were neither the base latency nor reported as one.
    unexplained: Option<Box<Rows>>,
}

/// A change that needs evidence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) at: Instant<Local>,
    pub(crate) before: Span,
    pub(crate) after: Span,
    pub(crate) tolerance: Span,
    /// Number of messages that establish a level.
    pub(crate) window: u8,
    /// Time between two messages of the flow.
    pub(crate) interval: Span,
    /// When the flow's latest message was sent that arrived before an earlier one.
    pub(crate) overtaking: Option<Instant<Local>>,
    /// Drift of the peer's clock.
    pub(crate) drift: Drift,
}

impl Witness {
    /// Adds a reply, while the flow's base latency is `base`; the drift learns from it.
    pub(crate) fn push(
        &mut self,
        message: &FleetMessage,
        reply: &FleetReply,
        base: WitnessConditions,
        drift: &mut Drift,
    ) {
        let new = Traits::of(message.sent, reply, base.shared_drift);
        let at_base = base
            .base
            .is_some_and(|base_latency| new.is_near(base_latency, base.tolerance));
        if !at_base {
            return self.record_other_level(new, message.sent, base, *drift);
        }
        self.base_messages = (self.base_messages + 1).min(RETURN_MESSAGES);
        if self.base_messages == RETURN_MESSAGES {
            let removed = self.other_levels.take();
            self.drop_levels(
                removed.into_iter().flat_map(|other_levels| other_levels.0),
                base.window,
            );
        }
        match &mut self.base_traits {
            Some(base_traits) if base_traits.is_near(new.round_trip, base.tolerance) => {
                if let (Some(previous_skew), Some(new_skew)) = (&base_traits.skew, &new.skew) {
                    drift.learn(previous_skew, new_skew);
                }
                base_traits.merge(&new, *drift);
                // A late first message is no measure of nearness to the base latency.
                base_traits.round_trip = base_traits.round_trip.min(new.round_trip);
            }
            slot => *slot = Some(new),
        }
    }

    fn record_other_level(
        &mut self,
        new: Traits,
        sent: Instant<Local>,
        conditions: WitnessConditions,
        drift: Drift,
    ) {
        let is_in_row = self.base_messages == 0;
        self.base_messages = 0;
        let OtherLevels(levels) = &mut **self.other_levels.get_or_insert_default();
        let is_near_level = |slot: &Option<OtherLevel>| {
            slot.as_ref()
                .is_some_and(|other| other.traits.is_near(new.round_trip, conditions.tolerance))
        };
        let is_latest = is_near_level(&levels[0]);
        if !is_latest {
            levels.swap(0, 1);
        }
        if is_near_level(&levels[0]) {
            if let Some(level) = &mut levels[0] {
                level.traits.merge(&new, drift);
                level.count(sent, is_in_row && is_latest, conditions.window);
            }
            return;
        }
        let removed = levels[0].replace(OtherLevel::of(new, sent));
        self.drop_levels([removed], conditions.window);
    }

    /// Drops levels that were not reported as a base latency.
    fn drop_levels(&mut self, levels: impl IntoIterator<Item = Option<OtherLevel>>, window: u8) {
        for mut level in levels.into_iter().flatten() {
            level.close(window);
            if !level.lasting_rows.is_empty() {
                let rows = self.unexplained.get_or_insert_default();
                rows.0.append(&mut level.lasting_rows);
            }
        }
    }

    /// New rows, since the last call, at levels that lasted and were not reported.
    pub(crate) fn take_unexplained(&mut self) -> impl Iterator<Item = Row> + use<> {
        let rows = self.unexplained.take();
        rows.into_iter().flat_map(|rows| rows.0)
    }

    /// The levels other than the base latency, which are no longer needed.
    fn take_other_levels(&mut self) -> [Option<OtherLevel>; 2] {
        self.base_messages = 0;
        self.other_levels
            .take()
            .map_or([None, None], |other_levels| other_levels.0)
    }

    /// The evidence for a change; from here on the new level is the flow's base latency.
    pub(crate) fn collect_evidence(&mut self, claim: &Claim) -> Evidence {
        let is_new = |other: &OtherLevel| other.traits.is_near(claim.after, claim.tolerance);
        let other_levels = self.take_other_levels();
        let new = other_levels.iter().flatten().find(|other| is_new(other));
        let new = new.map(|other| other.traits);
        let intermediate_levels = other_levels.map(|other| other.filter(|other| !is_new(other)));
        let was_unexplained = intermediate_levels.iter().any(Option::is_some);
        self.drop_levels(intermediate_levels, claim.window);
        let old = self.base_traits.take();
        self.base_traits = new.map(|new| new.inherit_skew(old.as_ref()));
        let is_decrease = claim.after < claim.before;
        let step = Step {
            before: claim.before,
            after: claim.after,
            tolerance: claim.tolerance,
            interval: claim.interval,
        };
        let is_nearby = |sent: Instant<Local>| (sent - claim.at).abs() <= claim.interval;
        Evidence {
            reordered: is_decrease && claim.overtaking.is_some_and(is_nearby),
            ttl: match (old, new) {
                (Some(old), Some(new)) => {
                    ttls_differ(old.ttl, new.ttl) || ttls_differ(old.peer_ttl, new.peer_ttl)
                }
                _ => false,
            },
            trace: None,
            direction: old
                .filter(|old| !was_unexplained || !old.is_stale(claim))
                .zip(new)
                .and_then(|(old, new)| direction(&old.skew?, &new.skew?, &step, claim.drift)),
        }
    }

    /// The flow's base latency is known for the first time.
    pub(crate) fn settle(&mut self) {
        let [latest, _] = self.take_other_levels();
        self.base_traits = latest.map(|other| other.traits);
    }
}

/// The reference for a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WitnessConditions {
    /// The flow's base latency, if it has one.
    pub(crate) base: Option<Span>,
    /// The drift that all flows share.
    pub(crate) shared_drift: Span,
    /// Largest difference to it that counts as near.
    pub(crate) tolerance: Span,
    /// Number of messages that establish a level.
    pub(crate) window: u8,
}

fn ttls_differ(first: Option<u8>, other: Option<u8>) -> bool {
    first
        .zip(other)
        .is_some_and(|(first, other)| first != other)
}

#[cfg(test)]
mod tests;
