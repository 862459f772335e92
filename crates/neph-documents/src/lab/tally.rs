//! The numbers of a link's record.

use std::collections::BTreeMap;

use neph_lab::{PacketHandling, Record, ScheduleEvent, Verdict};
use neph_stats::Histogram;

/// All numbers of one record.
#[derive(Debug, Default)]
pub struct Tally {
    pub directions: [DirectionTally; 2],
    /// Applied entries of the schedule, by direction, entry and kind of change.
    pub steps: BTreeMap<(u8, u16, ScheduleEvent), Steps>,
    pub cues: u64,
    /// Times of the first and the last record; wall nanoseconds.
    pub period: Option<(i64, i64)>,
    last_cue: Option<i64>,
}

/// The numbers of one direction.
#[derive(Debug, Default)]
pub struct DirectionTally {
    /// Packets by outcome.
    pub packets: BTreeMap<Verdict, u64>,
    /// Copies by outcome.
    pub copies: BTreeMap<Verdict, u64>,
    /// Delivered packets with a flipped bit, without copies.
    pub damaged: u64,
    pub early: u64,
    /// Delivered packets by path, without copies.
    pub paths: BTreeMap<u8, PathPackets>,
}

/// The packets of a path, in nanoseconds.
#[derive(Debug, Default)]
pub struct PathPackets {
    /// From the kernel's timestamp on arrival to departure.
    pub delay: Histogram,
    /// From scheduled to actual departure.
    pub lateness: Histogram,
}

/// How often an entry of a schedule was applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    pub times: u64,
    /// Time from the cue to its first application, if the cue is recorded; nanoseconds.
    pub first: Option<i64>,
}

impl Tally {
    /// Counts a record.
    pub fn add(&mut self, record: &Record) {
        self.extend_period(match record {
            Record::Packet { passage, .. } => passage.arrival,
            Record::Step { at, .. } | Record::Cue { at } => *at,
            Record::Anchor { wall, .. } => *wall,
        });
        match record {
            Record::Packet {
                passage,
                handling,
                verdict,
                due,
                left,
            } => {
                let direction = &mut self.directions[usize::from(passage.direction & 1)];
                direction.add(*handling, *verdict);
                if *verdict == Verdict::Delivered && !handling.is_copy {
                    let packets = direction
                        .paths
                        .entry(handling.path.unwrap_or(0))
                        .or_default();
                    packets.delay.add(elapsed_since(passage.arrival, *left));
                    packets.lateness.add(elapsed_since(*due, *left));
                }
            }
            Record::Step {
                direction,
                number,
                event,
                at,
            } => {
                let steps = self.steps.entry((*direction, *number, *event)).or_default();
                let time_since_cue = self.last_cue.map(|cue| at.saturating_sub(cue));
                steps.first = if steps.times == 0 {
                    time_since_cue
                } else {
                    steps.first
                };
                steps.times += 1;
            }
            Record::Cue { at } => {
                self.cues += 1;
                self.last_cue = Some(*at);
            }
            Record::Anchor { .. } => {}
        }
    }

    fn extend_period(&mut self, at: i64) {
        let (first, last) = self.period.unwrap_or((at, at));
        self.period = Some((first.min(at), last.max(at)));
    }
}

impl DirectionTally {
    fn add(&mut self, handling: PacketHandling, verdict: Verdict) {
        let counts = if handling.is_copy {
            &mut self.copies
        } else {
            &mut self.packets
        };
        *counts.entry(verdict).or_default() += 1;
        if verdict == Verdict::Delivered && !handling.is_copy {
            self.damaged += u64::from(handling.flipped.is_some());
            self.early += u64::from(handling.is_early);
        }
    }

    /// Number of packets, without copies.
    pub fn total(&self) -> u64 {
        self.packets.values().sum()
    }

    pub fn delivered(&self) -> u64 {
        let count = self.packets.get(&Verdict::Delivered);
        count.copied().unwrap_or_default()
    }

    /// Copies that were delivered.
    pub fn delivered_copies(&self) -> u64 {
        let count = self.copies.get(&Verdict::Delivered);
        count.copied().unwrap_or_default()
    }
}

/// Time since `before`; 0 if the wall clock was set back meanwhile.
fn elapsed_since(start: i64, end: i64) -> u64 {
    u64::try_from(end.saturating_sub(start)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use neph_lab::PacketPassage;

    use super::*;

    fn packet(direction: u8, verdict: Verdict, handling: PacketHandling) -> Record {
        Record::Packet {
            passage: PacketPassage {
                direction,
                length: 60,
                arrival: 1_000,
                identity: neph_lab::Identity::default(),
            },
            handling,
            verdict,
            due: 1_400,
            left: 1_500,
        }
    }

    #[test]
    fn copies_are_counted_separately_and_steps_since_the_last_cue() {
        let mut tally = Tally::default();
        let on_path = |path| PacketHandling {
            path: Some(path),
            ..PacketHandling::default()
        };
        let copy = |handling| PacketHandling {
            is_copy: true,
            ..handling
        };
        let step = |at| Record::Step {
            direction: 1,
            number: 3,
            event: ScheduleEvent::Begins,
            at,
        };
        for record in [
            Record::Cue { at: 500 },
            packet(0, Verdict::Delivered, on_path(1)),
            packet(0, Verdict::Delivered, copy(on_path(1))),
            packet(0, Verdict::Overflow, copy(on_path(1))),
            packet(0, Verdict::QueueFull, PacketHandling::default()),
            step(700),
            step(9_000),
        ] {
            tally.add(&record);
        }
        let [forward, reverse] = &tally.directions;
        assert_eq!(
            (
                forward.total(),
                forward.delivered(),
                forward.delivered_copies()
            ),
            (2, 1, 1)
        );
        assert_eq!(forward.copies[&Verdict::Overflow], 1);
        assert_eq!(reverse.total(), 0);
        assert_eq!(forward.paths[&1].delay.max(), Some(500));
        assert_eq!(forward.paths[&1].lateness.max(), Some(100));
        let steps = tally.steps[&(1, 3, ScheduleEvent::Begins)];
        assert_eq!((steps.times, steps.first), (2, Some(200)));
        assert_eq!(tally.period, Some((500, 9_000)));
    }
}
