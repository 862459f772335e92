//! What else than the latency speaks for a path change of one flow: TTLs, the direction by the
//! peer's stamps, and reordering.

use neph_model::{FleetMessage, FleetReply, Instant, Own, Span};

use crate::skew::{Drift, Skew, Step, direction};
use crate::view::Evidence;

/// After so many messages at its base latency a flow is back there.
const BACK: u8 = 4;

/// What the messages of one level have in common.
#[derive(Clone, Copy, Debug)]
struct Traits {
    round_trip: Span,
    /// Where the peer tells it.
    skew: Option<Skew>,
    ttl: Option<u8>,
    peer_ttl: Option<u8>,
}

impl Traits {
    fn of(sent: Instant<Own>, reply: &FleetReply) -> Self {
        let peer = reply.at_peer;
        let round_trip = reply.network();
        Self {
            round_trip,
            skew: peer.map(|peer| Skew::of(sent, round_trip, &peer)),
            ttl: reply.ttl,
            peer_ttl: peer.and_then(|peer| peer.ttl),
        }
    }

    fn is_near(&self, round_trip: Span, tolerance: Span) -> bool {
        (self.round_trip - round_trip).abs() <= tolerance
    }

    /// The same as what follows another level of the flow.
    fn following(mut self, before: Option<&Self>) -> Self {
        let before = before.and_then(|before| before.skew);
        if let (Some(skew), Some(before)) = (&mut self.skew, before) {
            skew.inherit(&before);
        }
        self
    }

    /// A further message of the same level: the latest TTLs, the mean of skews.
    fn merge(&mut self, other: &Self, drift: Drift) {
        match (&mut self.skew, other.skew) {
            (Some(known), Some(later)) => known.merge(&later, drift),
            (slot, later) => *slot = later.or(*slot),
        }
        self.ttl = other.ttl.or(self.ttl);
        self.peer_ttl = other.peer_ttl.or(self.peer_ttl);
    }
}

/// Levels that a flow's messages had beside its base latency: two, so that a single late reply does
/// not make the new one forgotten. The first is the one that was met last.
#[derive(Clone, Copy, Debug, Default)]
struct Others([Option<Traits>; 2]);

/// A flow's latest messages as witnesses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Witness {
    /// Of the messages at the base latency.
    settled: Option<Traits>,
    /// Of those that were not; gone when the flow is back at its base latency.
    others: Option<Box<Others>>,
    /// Messages at the base latency since the last other one, up to [`BACK`].
    back: u8,
}

/// A change that evidence is wanted for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) at: Instant<Own>,
    pub(crate) before: Span,
    pub(crate) after: Span,
    pub(crate) tolerance: Span,
    /// Time between two messages of the flow.
    pub(crate) interval: Span,
    /// When the flow's latest message was sent that overtook another.
    pub(crate) overtaking: Option<Instant<Own>>,
    /// How fast the peer's clock runs away.
    pub(crate) drift: Drift,
}

impl Witness {
    /// A reply, while the flow's base latency is `base`; the drift learns from it.
    pub(crate) fn push(
        &mut self,
        (message, reply): (&FleetMessage, &FleetReply),
        base: Looking,
        drift: &mut Drift,
    ) {
        let new = Traits::of(message.sent, reply);
        let at_base = base
            .base
            .is_some_and(|base_latency| new.is_near(base_latency, base.tolerance));
        if !at_base {
            return self.remember(new, base.tolerance, *drift);
        }
        self.back = (self.back + 1).min(BACK);
        if self.back == BACK {
            self.others = None;
        }
        match &mut self.settled {
            Some(known) if known.is_near(new.round_trip, base.tolerance) => {
                if let (Some(before), Some(now)) = (&known.skew, &new.skew) {
                    drift.learn(before, now);
                }
                known.merge(&new, *drift);
                // A late first message is no measure of what is near to the base.
                known.round_trip = known.round_trip.min(new.round_trip);
            }
            slot => *slot = Some(new),
        }
    }

    fn remember(&mut self, new: Traits, tolerance: Span, drift: Drift) {
        self.back = 0;
        let Others(levels) = &mut **self.others.get_or_insert_default();
        let is_known = |slot: &Option<Traits>| {
            slot.is_some_and(|traits| traits.is_near(new.round_trip, tolerance))
        };
        if !is_known(&levels[0]) {
            levels.swap(0, 1);
        }
        match &mut levels[0] {
            Some(known) if known.is_near(new.round_trip, tolerance) => known.merge(&new, drift),
            slot => *slot = Some(new),
        }
    }

    /// The levels beside the base latency, which are not needed any more.
    fn take_others(&mut self) -> [Option<Traits>; 2] {
        self.back = 0;
        self.others.take().map_or([None; 2], |others| others.0)
    }

    /// What speaks for a change; from here on the new level is the flow's base latency.
    pub(crate) fn testify(&mut self, claim: &Claim) -> Evidence {
        let new = self
            .take_others()
            .into_iter()
            .flatten()
            .find(|traits| traits.is_near(claim.after, claim.tolerance));
        let old = self.settled.take();
        self.settled = new.map(|new| new.following(old.as_ref()));
        let falls = claim.after < claim.before;
        let step = Step {
            before: claim.before,
            after: claim.after,
            tolerance: claim.tolerance,
            interval: claim.interval,
        };
        let nearby = |sent: Instant<Own>| (sent - claim.at).abs() <= claim.interval;
        Evidence {
            reordered: falls && claim.overtaking.is_some_and(nearby),
            ttl: match (old, new) {
                (Some(old), Some(new)) => {
                    differ(old.ttl, new.ttl) || differ(old.peer_ttl, new.peer_ttl)
                }
                _ => false,
            },
            trace: None,
            direction: old
                .zip(new)
                .and_then(|(old, new)| direction(&old.skew?, &new.skew?, &step, claim.drift)),
        }
    }

    /// The flow's base latency is known for the first time.
    pub(crate) fn settle(&mut self) {
        self.settled = self.take_others()[0];
    }
}

/// With what a reply is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looking {
    /// The flow's base latency, if it has one.
    pub(crate) base: Option<Span>,
    /// What is near to it.
    pub(crate) tolerance: Span,
}

fn differ(one: Option<u8>, other: Option<u8>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

#[cfg(test)]
mod tests {
    use neph_model::{AtPeer, FleetOutcome, Lane, ReadBy};

    use super::*;
    use crate::view::Direction;

    const TOLERANCE: Span = Span::from_micros(500);
    /// The peer's clock is that far ahead of ours, and drifts by 50 us a second.
    const AHEAD: i64 = 86_400_000_000_000;

    fn reply(second: i64, micros: (i64, i64), ttl: u8) -> FleetMessage {
        let sent = second * 1_000_000_000;
        FleetMessage {
            lane: Lane(0),
            source_port: 1,
            seq: 0,
            sent: Instant::from_nanos(sent),
            late: Span::ZERO,
            outcome: FleetOutcome::Reply(FleetReply {
                round_trip: Span::from_micros(micros.0 + micros.1 + 70),
                read_by: ReadBy::Kernel,
                at_peer: Some(AtPeer {
                    rx: Instant::from_nanos(sent + AHEAD + (micros.0 + second * 50) * 1000),
                    residence: Span::from_micros(70),
                    count: None,
                    ttl: Some(60),
                }),
                ttl: Some(ttl),
                copies: 0,
                answer: None,
            }),
        }
    }

    /// 40 messages at one level, then 4 at another; what is said of it.
    fn testimony(before: (i64, i64), after: (i64, i64), ttls: (u8, u8)) -> Evidence {
        let (mut witness, mut drift) = (Witness::default(), Drift::default());
        let sum = |(there, back): (i64, i64)| Span::from_micros(there + back);
        let looking = Looking {
            base: Some(sum(before)),
            tolerance: TOLERANCE,
        };
        for second in 0..44 {
            let message = match second {
                0..40 => reply(second, before, ttls.0),
                _ => reply(second, after, ttls.1),
            };
            let reply = message.reply().unwrap();
            // The other flows of a fleet learn too.
            for other in 0..20 {
                let mut own = witness.clone();
                if other > 0 {
                    own.push((&message, reply), looking, &mut drift);
                }
            }
            witness.push((&message, reply), looking, &mut drift);
        }
        witness.testify(&Claim {
            at: Instant::from_nanos(40_000_000_000),
            before: sum(before),
            after: sum(after),
            tolerance: TOLERANCE,
            interval: Span::from_secs(1),
            overtaking: Some(Instant::from_nanos(40_000_000_000)),
            drift,
        })
    }

    #[test]
    fn the_peers_stamps_tell_which_way_moved_although_its_clock_drifts() {
        let direction = |after| testimony((10_000, 10_000), after, (60, 60)).direction;
        assert_eq!(direction((12_000, 10_000)), Some(Direction::Forward));
        assert_eq!(direction((10_000, 8_000)), Some(Direction::Reverse));
        assert_eq!(direction((12_000, 13_000)), Some(Direction::Both));
        assert_eq!(direction((13_000, 9_000)), Some(Direction::Both));
    }

    #[test]
    fn a_ttl_that_became_another_speaks_for_a_change() {
        assert!(testimony((10_000, 10_000), (12_000, 10_000), (60, 58)).ttl);
        assert!(!testimony((10_000, 10_000), (12_000, 10_000), (60, 60)).ttl);
    }

    #[test]
    fn overtaking_speaks_for_a_fall_and_not_for_a_rise() {
        assert!(testimony((10_000, 10_000), (8_000, 10_000), (60, 60)).reordered);
        assert!(!testimony((10_000, 10_000), (12_000, 10_000), (60, 60)).reordered);
    }

    #[test]
    fn without_a_witness_nothing_is_said() {
        let claim = Claim {
            at: Instant::from_nanos(0),
            before: Span::from_millis(20),
            after: Span::from_millis(18),
            tolerance: TOLERANCE,
            interval: Span::from_secs(1),
            overtaking: None,
            drift: Drift::default(),
        };
        assert_eq!(Witness::default().testify(&claim), Evidence::default());
    }
}
