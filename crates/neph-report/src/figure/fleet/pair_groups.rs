//! Groups of pairs whose data becomes one line: one pair over all of its blocks, or every pair of a season.
//!
//! A line per block would need as many colours as there are blocks. A line is the median over blocks at
//! each point, and the band from the lowest block to the highest. Messages of different blocks are not mixed.

use std::collections::BTreeSet;

use neph_flows::{Curve, CurvePoint};
use neph_model::Span;

use super::colours::MAX_DISTINGUISHED;
use neph_analysis::fleet::Pair;
use neph_analysis::text::plural;

/// From so many values on, a band leaves out the lowest and the highest 5 %.
const MIN_TRIMMED: usize = 20;
/// Maximum number of points of a pooled curve.
const MAX_POINTS: usize = 400;

/// Pairs whose data becomes one line.
#[derive(Clone, Debug)]
pub(super) struct PairGroup<'a> {
    /// Its name in the legend.
    pub(super) label: String,
    /// The blocks of each of its pairs.
    pub(super) blocks_by_pair: Vec<Vec<&'a Pair<'a>>>,
}

/// What a line and its band are pooled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooling {
    /// One experiment.
    OneExperiment,
    /// So many blocks of one pair.
    Blocks(usize),
    /// So many pairs, each with the median over its blocks.
    Pairs(usize),
}

impl Pooling {
    /// ` in 8 blocks`, ` in 120 pairs`; nothing for one experiment.
    pub(super) fn count_text(self) -> String {
        match self {
            Self::OneExperiment => String::new(),
            Self::Blocks(blocks) => format!(" in {}", plural(blocks, "block")),
            Self::Pairs(pairs) => format!(" in {}", plural(pairs, "pair")),
        }
    }

    /// What lines and bands are, for a caption; nothing where each line is one experiment.
    pub(super) fn explanation(poolings: impl IntoIterator<Item = Self>) -> &'static str {
        let poolings: Vec<Self> = poolings.into_iter().collect();
        let any = |test: fn(&Self) -> bool| poolings.iter().any(test);
        if any(|pooling| matches!(pooling, Self::Pairs(pairs) if *pairs >= MIN_TRIMMED)) {
            " A line is the median over pairs at each point, of each pair the median over its blocks; the band holds 90 % of the pairs."
        } else if any(|pooling| matches!(pooling, Self::Pairs(_))) {
            " A line is the median over pairs at each point, of each pair the median over its blocks; the band covers all pairs, lowest to highest."
        } else if any(|pooling| matches!(pooling, Self::Blocks(blocks) if *blocks >= MIN_TRIMMED)) {
            " A line is the median over blocks at each point; the band holds 90 % of the blocks."
        } else if any(|pooling| matches!(pooling, Self::Blocks(_))) {
            " A line is the median over blocks at each point; the band covers all blocks, lowest to highest."
        } else {
            ""
        }
    }
}

impl<'a> PairGroup<'a> {
    /// A group for each pair in each season; where these are more than can be distinguished by colour and
    /// there are several seasons, one for each season.
    pub(super) fn of_pairs(pairs: &'a [Pair<'a>]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for pair in pairs {
            let key = |member: &Pair<'_>| (member.scenario, member.endpoint);
            let existing = groups
                .iter_mut()
                .find(|group| key(group.blocks_by_pair[0][0]) == key(pair));
            match existing {
                Some(group) => group.blocks_by_pair[0].push(pair),
                None => groups.push(Self {
                    label: pair.label_without_block.clone(),
                    blocks_by_pair: vec![vec![pair]],
                }),
            }
        }
        let settings: BTreeSet<&str> = pairs.iter().map(|pair| pair.setting.as_str()).collect();
        if groups.len() <= MAX_DISTINGUISHED || settings.len() < 2 {
            return groups;
        }
        let mut by_setting: Vec<Self> = Vec::new();
        for group in groups {
            let setting = &group.blocks_by_pair[0][0].setting;
            match by_setting
                .iter_mut()
                .find(|existing| existing.label == *setting)
            {
                Some(existing) => existing.blocks_by_pair.extend(group.blocks_by_pair),
                None => by_setting.push(Self {
                    label: setting.clone(),
                    ..group
                }),
            }
        }
        by_setting
    }

    /// The curve of the whole group, and what it is pooled from; `None` where no block has one.
    pub(super) fn curve(
        &self,
        curve_of: fn(&'a Pair<'a>) -> Option<&'a Curve>,
    ) -> Option<(Curve, Pooling)> {
        let pool_blocks = |blocks: &Vec<&'a Pair<'a>>| {
            let curves = blocks.iter().filter_map(|block| curve_of(block));
            pool(curves.filter(|curve| !curve.points.is_empty()).collect())
        };
        let curves: Vec<(Curve, usize)> =
            self.blocks_by_pair.iter().filter_map(pool_blocks).collect();
        if self.blocks_by_pair.len() == 1 {
            let (curve, blocks) = curves.into_iter().next()?;
            let pooling = if self.blocks_by_pair[0].len() == 1 {
                Pooling::OneExperiment
            } else {
                Pooling::Blocks(blocks)
            };
            return Some((curve, pooling));
        }
        let (curve, pairs) = pool(curves.iter().map(|(curve, _)| curve).collect())?;
        Some((curve, Pooling::Pairs(pairs)))
    }
}

/// The median of the curves with their range as a band, up to the end of the first, and the number of
/// curves. Curves that were watched for less than half as long as the longest are left out.
fn pool(mut curves: Vec<&Curve>) -> Option<(Curve, usize)> {
    if let [only] = curves.as_slice() {
        return Some(((*only).clone(), 1));
    }
    let observed_time = |curve: &Curve| curve.points.last().map_or(Span::ZERO, |last| last.at);
    let is_ended = |curve: &Curve| {
        curve
            .points
            .last()
            .is_some_and(|last| last.surviving <= 0.0)
    };
    let longest = curves.iter().map(|curve| observed_time(curve)).max()?;
    curves
        .retain(|curve| is_ended(curve) || observed_time(curve) + observed_time(curve) >= longest);
    let ends = curves.iter().filter(|curve| !is_ended(curve));
    let end = ends
        .map(|curve| observed_time(curve))
        .min()
        .unwrap_or(longest);
    let times: BTreeSet<Span> = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|point| point.at))
        .filter(|at| *at <= end)
        .collect();
    let stride = times.len().div_ceil(MAX_POINTS).max(1);
    let last = times.len().saturating_sub(1);
    let selected_times = times.into_iter().enumerate();
    let selected_times =
        selected_times.filter(|(index, _)| index.is_multiple_of(stride) || *index == last);
    let point = |at: Span| {
        let points: Vec<CurvePoint> = curves.iter().filter_map(|curve| curve.at(at)).collect();
        let band = Band::of(points.iter().map(|point| point.surviving).collect())?;
        Some(CurvePoint {
            at,
            surviving: band.median,
            low: band.low,
            high: band.high,
            at_risk: points.iter().map(|point| point.at_risk).sum(),
        })
    };
    let curve = Curve {
        n: curves.iter().map(|curve| curve.n).sum(),
        ended: curves.iter().map(|curve| curve.ended).sum(),
        points: selected_times.filter_map(|(_, at)| point(at)).collect(),
    };
    Some((curve, curves.len()))
}

/// Values at one point: their median, and what the band around it spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Band {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
}

impl Band {
    /// From the lowest to the highest, or 90 % of many; `None` without a value.
    pub(super) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let cut = if values.len() >= MIN_TRIMMED {
            values.len() / 20
        } else {
            0
        };
        Some(Self {
            low: values[cut],
            median: f64::midpoint(values[last / 2], values[values.len() / 2]),
            high: values[last - cut],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(i64, f64)]) -> Curve {
        let point = |&(seconds, surviving): &(i64, f64)| CurvePoint {
            at: Span::from_secs(seconds),
            surviving,
            low: surviving,
            high: surviving,
            at_risk: 5,
        };
        Curve {
            n: 10,
            ended: 5,
            points: points.iter().map(point).collect(),
        }
    }

    #[test]
    fn blocks_are_pooled_to_their_median_and_a_band_from_lowest_to_highest() {
        let blocks = [
            curve(&[(1, 0.9), (100, 0.4)]),
            curve(&[(2, 0.8), (100, 0.6)]),
            curve(&[(4, 0.3), (90, 0.2)]),
        ];
        let (pooled, count) = pool(blocks.iter().collect()).expect("a curve");
        assert_eq!((count, pooled.n, pooled.ended), (3, 30, 15));
        let points = pooled.points.iter().map(|point| {
            let at = point.at.nanos() / 1_000_000_000;
            (at, point.low, point.surviving, point.high)
        });
        let points: Vec<(i64, f64, f64, f64)> = points.collect();
        assert_eq!(
            points,
            [
                (1, 0.9, 1.0, 1.0),
                (2, 0.8, 0.9, 1.0),
                (4, 0.3, 0.8, 0.9),
                (90, 0.2, 0.8, 0.9),
            ]
        );
    }

    #[test]
    fn a_block_with_a_short_observation_does_not_shorten_the_pooled_curve() {
        let blocks = [
            curve(&[(1, 0.9), (100, 0.4)]),
            curve(&[(2, 0.8), (100, 0.6)]),
            curve(&[(3, 0.7)]),
        ];
        let (pooled, count) = pool(blocks.iter().collect()).expect("a curve");
        assert_eq!(count, 2);
        assert_eq!(
            pooled.points.last().map(|point| point.at),
            Some(Span::from_secs(100))
        );
        let falls = pooled.points.windows(2);
        assert!(
            falls
                .into_iter()
                .all(|two| two[1].surviving <= two[0].surviving)
        );
    }

    #[test]
    fn a_band_of_many_values_leaves_out_5_percent_at_each_end() {
        let band = Band::of((0..40).map(f64::from).collect()).expect("a band");
        assert_eq!((band.low, band.median, band.high), (2.0, 19.5, 37.0));
        let few = Band::of(vec![3.0, 1.0]).expect("a band");
        assert_eq!((few.low, few.median, few.high), (1.0, 2.0, 3.0));
        assert_eq!(Band::of(Vec::new()), None);
    }
}
