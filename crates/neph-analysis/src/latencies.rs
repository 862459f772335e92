//! The latencies of a figure: one scenario, over blocks, according to the settings.

use neph_model::{Span, Unanswered};
use neph_stats::{Level, Sorted};

use crate::data::FlowData;
use crate::{Basis, CampaignData, Layer, PlotSettings};

/// A scenario's latencies in milliseconds, ascending, with the numbers of messages that have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    values: Vec<f64>,
    /// Messages with an unexpected reply.
    pub errors: usize,
    /// Messages without a reply in time.
    pub lost: usize,
    /// Messages that could not be sent. They count for the response time, because they were scheduled, and
    /// not for the service time.
    pub failed: usize,
}

impl Latencies {
    /// Replies after these times in ascending milliseconds, and this many lost messages.
    pub fn answered(millis: impl Iterator<Item = i32>, lost: usize) -> Self {
        Self {
            values: millis.map(f64::from).collect(),
            errors: 0,
            lost,
            failed: 0,
        }
    }

    /// Over several flows, complete.
    pub fn of<'a>(flows: impl IntoIterator<Item = &'a FlowData>, basis: Basis) -> Self {
        let mut latencies = Self::default();
        for flow in flows {
            latencies.errors += flow.errors();
            latencies.lost += flow.lost();
            if basis == Basis::Response {
                latencies.failed += flow.failed();
            }
            let times = flow.exchanges.iter().filter_map(|exchange| match basis {
                Basis::Response => exchange.response,
                Basis::Service => exchange.service,
            });
            latencies.values.extend(times.map(Span::millis_f64));
        }
        latencies.values.sort_unstable_by(f64::total_cmp);
        latencies
    }

    /// The messages without a time.
    pub const fn without_reply(&self) -> Unanswered {
        Unanswered {
            errors: self.errors as u64,
            lost: self.lost as u64,
            not_sent: self.failed as u64,
        }
    }

    /// Of one flow, in a layer that begins when a message is sent.
    pub(crate) fn of_layer(flow: &FlowData, layer: &Layer) -> Self {
        let mut values = layer.values(flow);
        values.sort_unstable_by(f64::total_cmp);
        Self {
            values,
            errors: flow.errors(),
            lost: flow.lost(),
            failed: 0,
        }
    }

    /// Of a scenario, without the percentiles that the settings remove.
    pub fn plotted(data: &CampaignData, scenario: usize, settings: &PlotSettings) -> Self {
        Self::of(data.main_flows(scenario, settings), settings.basis)
            .trimmed(settings.percentiles_to_remove)
    }

    /// Removes this many percentiles at each end. Messages without a reply count as slowest: errors are
    /// removed first, then lost messages, then messages that were not sent.
    #[must_use]
    pub fn trimmed(mut self, percentiles: f64) -> Self {
        let share = (percentiles / 100.0).clamp(0.0, 0.499);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a count in memory"
        )]
        let cut = (self.count() as f64 * share).floor() as usize;
        let mut above = cut;
        for unanswered in [&mut self.errors, &mut self.lost, &mut self.failed] {
            let removed = above.min(*unanswered);
            *unanswered -= removed;
            above -= removed;
        }
        self.values
            .truncate(self.values.len().saturating_sub(above));
        self.values.drain(..cut.min(self.values.len()));
        self
    }

    /// The values.
    ///
    /// # Panics
    /// Never panics: times are finite, and sorted on input.
    pub fn sorted(&self) -> Sorted<'_> {
        Sorted::check(&self.values).expect("times are finite and were sorted")
    }

    /// Number of messages without a reply: they count as slower than every reply.
    pub const fn unanswered(&self) -> usize {
        self.errors + self.lost + self.failed
    }

    /// The share of sent messages that were lost.
    #[expect(clippy::cast_precision_loss, reason = "counts in memory")]
    pub fn loss(&self) -> f64 {
        self.lost as f64 / (self.values.len() + self.errors + self.lost).max(1) as f64
    }

    /// Number of messages, with or without a reply.
    pub fn count(&self) -> usize {
        self.values.len() + self.unanswered()
    }

    /// The median, for any number of messages; `None` without messages.
    pub fn median(&self) -> Option<Level> {
        neph_stats::median(self.sorted(), self.unanswered()).ok()
    }

    /// The quantile `p`; `None` with too few messages for it.
    pub fn quantile(&self, p: f64) -> Option<Level> {
        let estimate = neph_stats::quantile(self.sorted(), self.unanswered(), p);
        estimate.ok().map(|quantile| quantile.value())
    }
}

/// The note about removed percentiles; empty if none were removed.
pub fn removed_percentiles_note(settings: &PlotSettings) -> String {
    if settings.percentiles_to_remove > 0.0 {
        format!(
            " The lowest and the highest {} % of each group's messages are left out, unanswered ones as the highest.",
            settings.percentiles_to_remove
        )
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies_of_100_replies(lost: usize, failed: usize) -> Latencies {
        Latencies {
            failed,
            ..Latencies::answered(0..100, lost)
        }
    }

    fn ends(latencies: &Latencies) -> (f64, f64) {
        let values = latencies.sorted().values();
        (values[0], values[values.len() - 1])
    }

    #[test]
    fn percentiles_are_removed_at_both_ends() {
        let cut = latencies_of_100_replies(0, 0).trimmed(1.0);
        assert_eq!((cut.count(), ends(&cut)), (98, (1.0, 98.0)));
        assert_eq!(
            latencies_of_100_replies(2, 0).trimmed(0.0),
            latencies_of_100_replies(2, 0)
        );
    }

    #[test]
    fn trimming_removes_lost_messages_before_the_slowest_replies() {
        // 5 % of 150 are 7: of 50 lost messages 43 remain, and every reply above the seven fastest.
        let cut = latencies_of_100_replies(50, 0).trimmed(5.0);
        assert_eq!((cut.lost, ends(&cut)), (43, (7.0, 99.0)));
        // 5 % of 104 are 5: three lost messages, one that was not sent, and the slowest reply.
        let cut = latencies_of_100_replies(3, 1).trimmed(5.0);
        assert_eq!((cut.unanswered(), ends(&cut)), (0, (5.0, 98.0)));
    }

    #[test]
    fn trimming_can_remove_more_messages_than_have_replies() {
        let cut = Latencies::answered(1..=2, 98).trimmed(10.0);
        assert_eq!((cut.lost, cut.count()), (88, 88));
    }
}
