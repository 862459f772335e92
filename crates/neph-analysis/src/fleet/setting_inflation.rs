//! Latency inflation over pairs: its distribution, and the share of pairs above a value.

use neph_stats::proportion;

use super::pair::Pair;
use super::pooled_pair::PooledPair;
use crate::numbers::percent;
use crate::text::to_f64;

/// What the third source found: inflation above 32 % for 5 % of the 120 pairs of AWS.
pub const SOURCE_INFLATION: f64 = 0.32;
/// The share of pairs of the headline.
const TAIL_SHARE: f64 = 0.05;
/// From so many pairs on, 5 % of them is one pair or more.
const MIN_TAIL_PAIRS: usize = 20;

/// Pairs that were measured in the same way, with their inflation (0.32 is 32 %), smallest first.
#[derive(Clone, Debug)]
pub struct SettingInflation<'a> {
    pub pairs: Vec<(f64, &'a Pair<'a>)>,
}

impl<'a> SettingInflation<'a> {
    /// One for each way of measuring with at least two pairs: two seasons of one pair are no distribution.
    pub fn by_setting(pooled: &[PooledPair<'a>]) -> Vec<Self> {
        let mut inflations: Vec<Self> = Vec::new();
        for pooled_pair in pooled {
            let Some(inflation) = pooled_pair.inflation else {
                continue;
            };
            let existing = inflations
                .iter_mut()
                .find(|setting_inflation| setting_inflation.setting() == pooled_pair.pair.setting);
            let pair = (inflation, pooled_pair.pair);
            match existing {
                Some(setting_inflation) => setting_inflation.pairs.push(pair),
                None => inflations.push(Self { pairs: vec![pair] }),
            }
        }
        inflations.retain(|setting_inflation| setting_inflation.pairs.len() > 1);
        for setting_inflation in &mut inflations {
            setting_inflation.pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        inflations
    }

    /// How they were measured, such as `season low`; empty where the plan varies nothing but places.
    pub fn setting(&self) -> &'a str {
        &self.pairs[0].1.setting
    }

    /// The share of pairs up to the one at this index.
    pub fn share(&self, index: usize) -> f64 {
        to_f64(index + 1) / to_f64(self.pairs.len())
    }

    /// Whether 5 % of the pairs are one pair or more.
    pub fn has_tail(&self) -> bool {
        self.pairs.len() >= MIN_TAIL_PAIRS
    }

    /// Number of pairs with more than this inflation.
    pub fn pairs_above(&self, inflation: f64) -> usize {
        self.pairs.len() - self.pairs.partition_point(|(known, _)| *known <= inflation)
    }

    /// The least inflation that no more than 5 % of the pairs are above; with fewer than 20 pairs what the
    /// third source compares with.
    pub fn tail_inflation(&self) -> f64 {
        if !self.has_tail() {
            return SOURCE_INFLATION;
        }
        let pairs = self.pairs.len();
        let is_within_tail = |level: &&(f64, &Pair<'_>)| {
            to_f64(self.pairs_above(level.0)) <= TAIL_SHARE * to_f64(pairs)
        };
        self.pairs
            .iter()
            .find(is_within_tail)
            .map_or(SOURCE_INFLATION, |pair| pair.0)
    }

    /// `5.0 % of the pairs (6 of 120) have an inflation above 27 %`.
    pub fn headline(&self) -> String {
        let level = self.tail_inflation();
        let (above, total) = (self.pairs_above(level), self.pairs.len());
        let verb = if above == 1 { "has" } else { "have" };
        format!(
            "{} of the pairs ({above} of {total}) {verb} an inflation above {}",
            percent(to_f64(above) / to_f64(total)),
            percent(level)
        )
    }

    /// The headline with the median and the largest, and how it compares with the third source.
    pub(crate) fn to_text(&self) -> String {
        let (largest, pair) = self.pairs[self.pairs.len() - 1];
        let median = self.median();
        let mut text = format!(
            "{}; median {}, largest {} ({}).",
            self.headline(),
            percent(median),
            percent(largest),
            pair.name
        );
        let (above, total) = (self.pairs_above(SOURCE_INFLATION), self.pairs.len());
        let interval = proportion(above, total).map(|share| share.interval());
        if let (true, Ok(interval)) = (self.has_tail(), interval) {
            text.push_str(&format!(
                " Above {}: {} of the pairs (95 % confidence interval {} to {}); a study of AWS found 5 % of 120 pairs (source 3 of docs/sources.md).",
                percent(SOURCE_INFLATION),
                percent(to_f64(above) / to_f64(total)),
                percent(interval.low),
                percent(interval.high)
            ));
        }
        text
    }

    pub(crate) fn median(&self) -> f64 {
        let last = self.pairs.len() - 1;
        f64::midpoint(self.pairs[last / 2].0, self.pairs[last.div_ceil(2)].0)
    }
}
