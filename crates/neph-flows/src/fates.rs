//! What flows lost at which base latency: a message counts where its flow was known to be when it was
//! asked about. Counts messages; knows nothing of classes.
//!
//! What was lost after a flow's last reply counts nowhere, nor does a silence as long as a bin of time:
//! that says something of the flow, not of its path.

use std::collections::BTreeMap;

use neph_model::{Fleet, FleetOutcome, Span};

use crate::settings::Settings;

/// Base latencies are told apart by this part of the tolerance.
const CELLS: i64 = 16;
/// Cells at most; what is at further latencies counts with the nearest.
const MOST: usize = 1 << 16;

/// Messages that were sent, and of these the lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
}

impl Fate {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.lost += other.lost;
    }
}

/// The messages lost in a row since a flow's latest reply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence(u32);

impl Silence {
    /// The flow's next message: what is known of the path now that was not before it. `silence` is how
    /// many messages lost in a row say that the flow was silent.
    pub(crate) fn push(&mut self, outcome: &FleetOutcome, silence: u64) -> Fate {
        match outcome {
            FleetOutcome::Failed => Fate::default(),
            FleetOutcome::Lost => {
                self.0 = self.0.saturating_add(1);
                Fate::default()
            }
            FleetOutcome::Reply(_) => {
                let row = u64::from(std::mem::take(&mut self.0));
                let lost = if row < silence { row } else { 0 };
                Fate {
                    sent: 1 + lost,
                    lost,
                }
            }
        }
    }
}

/// How many messages a flow sends in a bin of time: 2 or more.
pub(crate) fn silence(fleet: &Fleet, settings: &Settings) -> u64 {
    let rounds = settings.bin.nanos() / fleet.interval.nanos().max(1);
    u64::try_from(rounds).unwrap_or(0).max(2)
}

/// Fates by cells of base latency.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fates(BTreeMap<i64, Fate>);

impl Fates {
    /// More messages of a flow whose base latency is this.
    pub(crate) fn add(&mut self, base: Span, fate: Fate, settings: &Settings) {
        if fate.sent == 0 {
            return;
        }
        let cell = base.nanos().div_euclid(height(settings));
        let cell = if self.0.len() < MOST || self.0.contains_key(&cell) {
            cell
        } else {
            self.nearest(cell)
        };
        self.0.entry(cell).or_default().add(fate);
    }

    fn nearest(&self, cell: i64) -> i64 {
        let below = self.0.range(..cell).next_back();
        let above = self.0.range(cell..).next();
        let known = below.into_iter().chain(above).map(|(known, _)| *known);
        known
            .min_by_key(|known| (known - cell).abs())
            .unwrap_or(cell)
    }

    /// Each base latency, to the nearest sixteenth of the tolerance, with its messages.
    pub(crate) fn each(&self, settings: &Settings) -> impl Iterator<Item = (Span, Fate)> + '_ {
        let height = height(settings);
        let middle = move |cell: i64| Span::from_nanos(cell * height + height / 2);
        self.0
            .iter()
            .map(move |(cell, fate)| (middle(*cell), *fate))
    }
}

fn height(settings: &Settings) -> i64 {
    (settings.detection.tolerance.nanos() / CELLS).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    /// The third path loses every tenth message of each flow: its class says so, and the others that
    /// they lost none. A flow that dies takes nothing from its path.
    #[test]
    fn loss_is_told_of_the_class_that_it_happened_in() {
        let world = World {
            reshuffle: 30,
            lossy: Some((2, 10)),
            dead: Some((5, 60)),
            ..World::default()
        };
        let (digest, _) = world.digest();
        let view = digest.view();
        let classes = &view.classes[0];
        assert_eq!(classes.len(), 4);
        for (index, class) in classes.iter().enumerate() {
            let loss = class.loss().unwrap();
            if index == 2 {
                assert!((loss.share - 0.1).abs() < 0.01, "{loss:?}");
            } else {
                // A flow that has just moved counts for its last path until that is known.
                assert!(loss.share < 0.01, "{loss:?}");
            }
        }
    }

    #[test]
    fn what_is_lost_between_replies_counts_and_a_silence_does_not() {
        let reply = crate::world::message(0, 0, 0, 1).outcome;
        let fates = |outcomes: &[&FleetOutcome]| {
            let mut row = Silence::default();
            let mut all = Fate::default();
            for outcome in outcomes {
                all.add(row.push(outcome, 3));
            }
            (all.sent, all.lost)
        };
        let lost = FleetOutcome::Lost;
        assert_eq!(fates(&[&reply, &lost, &lost, &reply]), (4, 2));
        assert_eq!(fates(&[&reply, &lost, &lost, &lost, &reply]), (2, 0));
        assert_eq!(fates(&[&reply, &FleetOutcome::Failed, &lost]), (1, 0));
    }

    #[test]
    fn of_too_many_latencies_the_furthest_count_with_their_neighbours() {
        let settings = Settings::default();
        let height = height(&settings);
        let one = Fate { sent: 1, lost: 0 };
        let mut fates = Fates::default();
        for cell in 0..=i64::try_from(MOST).unwrap() + 5 {
            fates.add(Span::from_nanos(cell * height), one, &settings);
        }
        assert_eq!(fates.0.len(), MOST);
        let all: u64 = fates.each(&settings).map(|(_, fate)| fate.sent).sum();
        assert_eq!(all, MOST as u64 + 6);
    }
}
