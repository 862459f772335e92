//! The reports of a running fleet.

use std::sync::mpsc::{Receiver, TryRecvError};

use neph_model::{Answer, Event, EventKind, FlowIndex, Instant, Message, Outcome, Tally};
use neph_probe::{FleetReport, FleetTally};

use super::RecordCollector;

/// Fewer messages without a reply say nothing, however few flows there are.
const MINIMUM: u64 = 16;

/// How the main flow, or the fleet in its place, fares while it runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunProgress {
    /// Messages that ended, with any outcome.
    ended: u64,
    /// The endpoint answered one of them.
    pub(super) answered: bool,
    /// The latest ICMP error that one met.
    pub(super) unreached: Option<Answer>,
}

impl RunProgress {
    /// A message of a single flow has ended.
    pub(super) fn take(&mut self, message: &Message) {
        self.ended += 1;
        match (message.outcome, message.answer) {
            (Outcome::Error, answer @ Some(Answer::Icmp(_))) => self.unreached = answer,
            (Outcome::Reply | Outcome::Error, _) => self.answered = true,
            _ => {}
        }
    }
}

impl RecordCollector {
    /// Takes in the reports of the fleet; whether more may follow.
    pub(crate) fn take_fleet(&mut self, reports: &Receiver<FleetReport>) -> bool {
        loop {
            match reports.try_recv() {
                Ok(report) => self.one_of_fleet(report),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Takes in one report of the fleet.
    pub(crate) fn one_of_fleet(&mut self, report: FleetReport) {
        match report {
            FleetReport::Opened { .. } => {}
            FleetReport::Messages(messages) => {
                let origin = self.origin.at;
                let traced = self.traced_slots;
                self.run_progress.ended += messages.len() as u64;
                let has_reply = messages.iter().any(|message| message.reply().is_some());
                self.run_progress.answered |= has_reply;
                for message in messages.iter().filter(|message| message.slot.0 < traced) {
                    self.ports.insert(message.slot, message.source_port);
                }
                self.fleet_messages
                    .extend(messages.into_iter().map(|mut message| {
                        message.sent = Instant::from_nanos((message.sent - origin).nanos());
                        message
                    }));
            }
            FleetReport::Anchor(anchor) => {
                let at = (anchor.at - self.origin.at).nanos();
                self.anchors.add((at, anchor.wall.unix_nanos()));
            }
            FleetReport::ClockStepped(by) => {
                self.clock_steps += 1;
                self.events.push(Event {
                    flow: FlowIndex(0),
                    at: (neph_probe::now() - self.origin.at).nanos(),
                    kind: EventKind::ClockStepped,
                    text: format!("the wall clock stepped by {by}"),
                });
            }
            FleetReport::NotSent(reason) => self.events.push(Event {
                flow: FlowIndex(0),
                at: (neph_probe::now() - self.origin.at).nanos(),
                kind: EventKind::SecondaryFlowFailed,
                text: format!("a message could not be sent: {reason}"),
            }),
            FleetReport::Ended(tally) => {
                self.main = Tally {
                    messages: tally.replies + tally.lost + tally.failed,
                    replies: tally.replies,
                    errors: 0,
                    lost: tally.lost,
                    failed: tally.failed,
                    duplicates: tally.copies,
                    reordered: 0,
                    late: tally.late,
                };
                self.fleet = Some(tally);
            }
        }
    }

    /// Whether each of so many flows had its chance, and none got a reply.
    pub(crate) const fn is_unseen(&self, flows: u32) -> bool {
        let enough = if flows as u64 > MINIMUM {
            flows as u64
        } else {
            MINIMUM
        };
        !self.run_progress.answered && self.run_progress.ended >= enough
    }

    /// The source ports of the latest flows that are to be traced, by slot.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.ports.values().copied()
    }

    /// How the fleet fared, once it is over.
    pub(crate) const fn fleet(&self) -> Option<FleetTally> {
        self.fleet
    }
}
