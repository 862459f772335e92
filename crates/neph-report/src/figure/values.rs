//! The latencies that a figure shows: one scenario's, over blocks, as the settings want them.

use neph_model::Span;
use neph_stats::Sorted;

use crate::axis::Spread;
use crate::data::FlowData;
use crate::{Basis, CampaignData, PlotSettings};

/// A scenario's latencies in milliseconds, ascending, and how many messages were lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Latencies {
    values: Vec<f64>,
    pub(crate) lost: usize,
}

impl Latencies {
    /// Over several flows, whole.
    pub(crate) fn of<'a>(flows: impl IntoIterator<Item = &'a FlowData>, basis: Basis) -> Self {
        let mut found = Self::default();
        for flow in flows {
            found.lost += flow.lost();
            let times = flow.exchanges.iter().filter_map(|exchange| match basis {
                Basis::Response => exchange.response,
                Basis::Service => exchange.service,
            });
            found.values.extend(times.map(Span::millis_f64));
        }
        found.values.sort_unstable_by(f64::total_cmp);
        found
    }

    /// A scenario's, without the percentiles that the settings remove.
    pub(crate) fn plotted(data: &CampaignData, scenario: usize, settings: &PlotSettings) -> Self {
        Self::of(data.main_flows(scenario, settings), settings.basis)
            .trimmed(settings.percentiles_to_remove)
    }

    /// Without so many percentiles at each end.
    pub(crate) fn trimmed(mut self, percentiles: f64) -> Self {
        let share = (percentiles / 100.0).clamp(0.0, 0.499);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a count in memory"
        )]
        let each = (self.values.len() as f64 * share).floor() as usize;
        self.values.truncate(self.values.len() - each);
        self.values.drain(..each);
        if each > 0 {
            // Lost messages lie above every reply: they are the first to be removed.
            self.lost = 0;
        }
        self
    }

    /// The values.
    pub(crate) fn sorted(&self) -> Sorted<'_> {
        Sorted::check(&self.values).expect("times are finite and were sorted")
    }

    /// How many replies.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// What an axis needs to know.
    pub(crate) fn spread(&self) -> Option<Spread> {
        Spread::of(self.sorted())
    }
}

/// The note that tells of removed percentiles, if any were.
pub(crate) fn removed(settings: &PlotSettings) -> String {
    if settings.percentiles_to_remove > 0.0 {
        format!(
            " The lowest and the highest {} % of each group's values are left out.",
            settings.percentiles_to_remove
        )
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_removed_at_both_ends() {
        let whole = Latencies {
            values: (0..100).map(f64::from).collect(),
            lost: 2,
        };
        let cut = whole.clone().trimmed(1.0);
        assert_eq!((cut.len(), cut.values[0], cut.values[97]), (98, 1.0, 98.0));
        assert_eq!(whole.clone().trimmed(0.0), whole);
    }
}
