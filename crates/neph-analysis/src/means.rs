//! The mean of every ledger entry: where a message spends its time.

use neph_model::StageSet;

use crate::data::FlowData;

/// The mean of every entry of a scenario's ledgers, in milliseconds; they add up to the mean response time. A
/// message without an entry counts as 0 in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Means {
    pub entries: Vec<(StageSet, f64)>,
    pub total: f64,
}

impl Means {
    /// Over several flows; `None` without a reply.
    pub fn of<'a>(flows: impl IntoIterator<Item = &'a FlowData>) -> Option<Self> {
        let mut sums: Vec<(StageSet, i128)> = Vec::new();
        let (mut replies, mut total) = (0_u64, 0_i128);
        for flow in flows {
            for exchange in &flow.exchanges {
                let Some(response) = exchange.response else {
                    continue;
                };
                replies += 1;
                total += i128::from(response.nanos());
                for (set, time) in flow.ledger(exchange) {
                    let index = sums.iter().position(|(known, _)| *known == set);
                    let index = index.unwrap_or_else(|| {
                        sums.push((set, 0));
                        sums.len() - 1
                    });
                    sums[index].1 += i128::from(time.nanos());
                }
            }
        }
        if replies == 0 {
            return None;
        }
        sums.sort_by_key(|(set, _)| order(*set));
        #[expect(clippy::cast_precision_loss, reason = "a mean for display")]
        let mean = |sum: i128| sum as f64 / replies as f64 / 1e6;
        Some(Self {
            entries: sums
                .into_iter()
                .map(|(set, sum)| (set, mean(sum)))
                .collect(),
            total: mean(total),
        })
    }
}

impl Means {
    /// Each entry's share of the bar, in percent. A wrong clock can make an entry negative; it has no share
    /// then, and the others add up to 100 %.
    pub fn percents(&self) -> Vec<f64> {
        let drawn = || self.entries.iter().map(|(_, mean)| mean.max(0.0));
        let total = drawn().sum::<f64>().max(f64::MIN_POSITIVE);
        drawn().map(|mean| mean / total * 100.0).collect()
    }
}

/// Sort key: first stage, then number of merged stages.
pub fn order(set: StageSet) -> (Option<neph_model::Stage>, usize) {
    (set.iter().next(), set.iter().count())
}
