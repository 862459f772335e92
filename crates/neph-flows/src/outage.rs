//! Separates loss in outages from other loss. In an outage no flow gets a reply for a bin of time, and its
//! losses say nothing about replies at other times. Counts messages; knows nothing about paths.

use neph_model::{Fleet, FleetMessage, FleetOutcome, Instant, Local};

use crate::flow_tally::FlowTally;
use crate::settings::Settings;

/// This many messages of each flow without a reply to any flow mean that the peer is silent.
const MIN_SILENT_ROUNDS: u64 = 3;

/// The lost messages of the flows to one endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    /// Lost since the latest reply to any flow.
    since_reply: u64,
    /// Lost while other messages got replies.
    outside_outages: u64,
    /// Send time of the latest replied message, and number of unanswered messages since then.
    last_replied_at: Option<Instant<Local>>,
    unanswered_since: u64,
}

impl Lost {
    /// Adds the next message of any of the flows.
    pub(crate) fn push(&mut self, message: &FleetMessage, fleet: &Fleet, settings: &Settings) {
        self.update_silence(message);
        match message.outcome {
            FleetOutcome::Failed => {}
            FleetOutcome::Lost => self.since_reply += 1,
            FleetOutcome::Reply(_) => {
                let lost_count = std::mem::take(&mut self.since_reply);
                if lost_count < messages_per_bin(fleet, settings) {
                    self.outside_outages += lost_count;
                }
            }
        }
    }

    fn update_silence(&mut self, message: &FleetMessage) {
        let Some(last_replied_at) = &mut self.last_replied_at else {
            self.last_replied_at = message.reply().map(|_| message.sent);
            return;
        };
        if message.reply().is_none() {
            self.unanswered_since += u64::from(message.sent > *last_replied_at);
        } else if message.sent > *last_replied_at {
            (*last_replied_at, self.unanswered_since) = (message.sent, 0);
        }
    }

    /// Since when a peer that replied before is silent, and number of messages since: at least
    /// [`MIN_SILENT_ROUNDS`] of each flow.
    pub(crate) fn silence(&self, fleet: &Fleet) -> Option<(Instant<Local>, u64)> {
        let endpoints = fleet.endpoints.len().max(1) as u64;
        let min_lost = MIN_SILENT_ROUNDS * u64::from(fleet.slots).div_ceil(endpoints);
        let is_silent = self.unanswered_since >= min_lost;
        self.last_replied_at
            .filter(|_| is_silent)
            .map(|at| (at, self.unanswered_since))
    }

    /// Whether more messages were lost outside of outages than got replies.
    pub(crate) const fn exceeds_half_of(&self, tally: &FlowTally) -> bool {
        self.outside_outages > tally.replies
    }
}

/// Number of messages to one endpoint in a bin of time.
fn messages_per_bin(fleet: &Fleet, settings: &Settings) -> u64 {
    let endpoints = fleet.endpoints.len().max(1) as u64;
    let rounds = settings.bin.nanos() / fleet.interval.nanos().max(1);
    u64::from(fleet.slots) * u64::try_from(rounds).unwrap_or(0) / endpoints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::world::World;

    const SECOND: i64 = 1_000_000_000;

    /// Two of three messages of each flow are too late, so the levels of the others are random. An outage of
    /// two thirds of the time does not affect the levels of the last third.
    #[test]
    fn flows_that_lose_most_messages_have_no_classes() {
        let world = World::default();
        let evaluate = |is_lost: fn(i64, u32) -> bool| {
            let mut digest = Digest::new(&world.fleet(), Settings::default()).unwrap();
            world.messages(&world.truth(), |message| {
                let mut message = *message;
                if is_lost(message.sent.nanos() / SECOND, message.seq) {
                    message.outcome = FleetOutcome::Lost;
                }
                digest.push(&message);
            });
            digest.finish();
            let view = digest.view();
            let pair = &view.pairs[0];
            let rate = pair.changes_per_flow_hour();
            let is_reported = [
                pair.inflation.is_some(),
                pair.bimodality.is_some(),
                rate.is_some(),
            ];
            (pair.mostly_lost, view.classes[0].len(), is_reported)
        };
        assert_eq!(evaluate(|_, seq| seq % 3 > 0), (true, 0, [false; 3]));
        // A reflector that stops does not affect earlier replies, no matter how early.
        let (mostly_lost, classes, _) = evaluate(|second, _| !(70..102).contains(&second));
        assert_eq!((mostly_lost, classes), (false, 4));
        let (mostly_lost, classes, [inflation, _, rate]) = evaluate(|second, _| second < 80);
        assert_eq!((mostly_lost, classes), (false, 4));
        assert!(inflation && rate);
    }
    /// The last reply belongs to the last message before the 100th second; two more of each flow may be under
    /// way at the end of a measurement.
    #[test]
    fn the_start_of_a_silence_is_known_after_several_losses_per_flow() {
        let world = World::default();
        let silence = |until: i64| {
            let mut digest = Digest::new(&world.fleet(), Settings::default()).unwrap();
            world.messages(&world.truth(), |message| {
                let mut message = *message;
                let sent = message.sent.nanos();
                if sent >= 100 * SECOND {
                    message.outcome = FleetOutcome::Lost;
                }
                if sent < until {
                    digest.push(&message);
                }
            });
            digest.finish();
            digest.view().pairs[0].silence
        };
        let (silence_start, messages) = silence(120 * SECOND).unwrap();
        assert!((99 * SECOND..100 * SECOND).contains(&silence_start.nanos()));
        assert_eq!(messages, 20 * 5 * 64);
        assert_eq!(silence(100 * SECOND + SECOND / 2), None);
    }
}
