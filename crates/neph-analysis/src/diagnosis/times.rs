//! The stages of one message, in milliseconds.

use neph_model::{Stage, StageSet};

use crate::data::{Exchange, FlowData};

/// The time of each stage that stands alone, in milliseconds; one that is merged is 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times([f64; Stage::ALL.len()]);

impl Times {
    pub(crate) fn of(flow: &FlowData, exchange: &Exchange) -> Self {
        let mut times = Self::default();
        for (set, time) in flow.ledger(exchange) {
            for (index, stage) in Stage::ALL.into_iter().enumerate() {
                if set == StageSet::only(stage) {
                    times.0[index] = time.millis_f64();
                }
            }
        }
        times
    }

    pub(crate) fn at(&self, stage: Stage) -> f64 {
        let index = Stage::ALL.iter().position(|known| *known == stage);
        index.map_or(0.0, |index| self.0[index])
    }

    /// Of several stages together.
    pub(crate) fn sum(&self, stages: &[Stage]) -> f64 {
        stages.iter().map(|stage| self.at(*stage)).sum()
    }
}
