//! Loss by base latency. A message counts for the base latency that its flow was known to have. Counts
//! messages; knows nothing about classes.
//!
//! Losses after a flow's last reply do not count, nor does a silence of a bin of time or more. The flow is
//! the cause then, not its path.

use std::collections::BTreeMap;

use neph_model::{Fleet, FleetOutcome, Span};

use crate::settings::Settings;

/// Resolution of base latencies, as a part of the tolerance.
const CELLS_PER_TOLERANCE: i64 = 16;
/// Maximum number of cells; other latencies count with the nearest.
const MAX_CELLS: usize = 1 << 16;

/// Number of sent and of lost messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutcomeCounts {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
}

impl OutcomeCounts {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.lost += other.lost;
    }
}

/// Number of consecutive lost messages since a flow's latest reply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence(u32);

impl Silence {
    /// Adds the flow's next message; returns the outcomes that are now certain. From `silence_length`
    /// consecutive lost messages on, the flow is silent.
    pub(crate) fn push(&mut self, outcome: &FleetOutcome, silence_length: u64) -> OutcomeCounts {
        match outcome {
            FleetOutcome::Failed => OutcomeCounts::default(),
            FleetOutcome::Lost => {
                self.0 = self.0.saturating_add(1);
                OutcomeCounts::default()
            }
            FleetOutcome::Reply(_) => {
                let lost_count = u64::from(std::mem::take(&mut self.0));
                let lost = if lost_count < silence_length {
                    lost_count
                } else {
                    0
                };
                OutcomeCounts {
                    sent: 1 + lost,
                    lost,
                }
            }
        }
    }
}

/// Number of messages of a flow in a bin of time, at least 2.
pub(crate) fn silence_length(fleet: &Fleet, settings: &Settings) -> u64 {
    let rounds = settings.bin.nanos() / fleet.interval.nanos().max(1);
    u64::try_from(rounds).unwrap_or(0).max(2)
}

/// Outcomes by cells of base latency.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossByBase(BTreeMap<i64, OutcomeCounts>);

impl LossByBase {
    /// Adds messages of a flow with this base latency.
    pub(crate) fn add(&mut self, base: Span, outcome_counts: OutcomeCounts, settings: &Settings) {
        if outcome_counts.sent == 0 {
            return;
        }
        let cell = base.nanos().div_euclid(cell_height(settings));
        let cell = if self.0.len() < MAX_CELLS || self.0.contains_key(&cell) {
            cell
        } else {
            self.nearest_cell(cell)
        };
        self.0.entry(cell).or_default().add(outcome_counts);
    }

    fn nearest_cell(&self, cell: i64) -> i64 {
        let previous_cell = self.0.range(..cell).next_back();
        let next_cell = self.0.range(cell..).next();
        let used_cells = previous_cell
            .into_iter()
            .chain(next_cell)
            .map(|(used_cell, _)| *used_cell);
        used_cells
            .min_by_key(|used_cell| (used_cell - cell).abs())
            .unwrap_or(cell)
    }

    /// Each base latency, rounded to a sixteenth of the tolerance, with its messages.
    pub(crate) fn iter_cells(
        &self,
        settings: &Settings,
    ) -> impl Iterator<Item = (Span, OutcomeCounts)> + '_ {
        let cell_height = cell_height(settings);
        let middle = move |cell: i64| Span::from_nanos(cell * cell_height + cell_height / 2);
        self.0
            .iter()
            .map(move |(cell, outcome_counts)| (middle(*cell), *outcome_counts))
    }
}

fn cell_height(settings: &Settings) -> i64 {
    (settings.detection.tolerance.nanos() / CELLS_PER_TOLERANCE).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    /// The third path loses 10 % of the messages of each flow. Only its class shows loss. A flow that ends
    /// does not count as loss of its path.
    #[test]
    fn loss_is_attributed_to_the_class_in_which_it_happened() {
        let world = World {
            reshuffle_seconds: 30,
            lossy_path: Some((2, 10)),
            dead_slot: Some((5, 60)),
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
                // A flow that has just moved counts for its last path until the change is known.
                assert!(loss.share < 0.01, "{loss:?}");
            }
        }
    }

    #[test]
    fn isolated_losses_count_and_a_silence_does_not() {
        let reply = crate::world::message(0, 0, 0, 1).outcome;
        let count_outcomes = |outcomes: &[&FleetOutcome]| {
            let mut silence = Silence::default();
            let mut total = OutcomeCounts::default();
            for outcome in outcomes {
                total.add(silence.push(outcome, 3));
            }
            (total.sent, total.lost)
        };
        let lost = FleetOutcome::Lost;
        assert_eq!(count_outcomes(&[&reply, &lost, &lost, &reply]), (4, 2));
        assert_eq!(
            count_outcomes(&[&reply, &lost, &lost, &lost, &reply]),
            (2, 0)
        );
        assert_eq!(
            count_outcomes(&[&reply, &FleetOutcome::Failed, &lost]),
            (1, 0)
        );
    }

    #[test]
    fn latencies_beyond_the_maximum_count_in_the_nearest_cell() {
        let settings = Settings::default();
        let cell_height = cell_height(&settings);
        let sent = OutcomeCounts { sent: 1, lost: 0 };
        let mut loss_by_base = LossByBase::default();
        for cell in 0..=i64::try_from(MAX_CELLS).unwrap() + 5 {
            loss_by_base.add(Span::from_nanos(cell * cell_height), sent, &settings);
        }
        assert_eq!(loss_by_base.0.len(), MAX_CELLS);
        let total: u64 = loss_by_base
            .iter_cells(&settings)
            .map(|(_, outcome_counts)| outcome_counts.sent)
            .sum();
        assert_eq!(total, MAX_CELLS as u64 + 6);
    }
}
