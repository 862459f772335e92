//! Shares and quantiles of messages that are not independent. Messages of one experiment share its path, host
//! and time. Neighbours share a queue or a burst of loss.
//!
//! The unit is the group: an experiment, or a stretch of it if there is only one. The differences between
//! groups give the number of independent messages with as much information (Kish's effective size). Student's
//! t corrects for the small number of groups (Korn and Graubard 1998). Intervals of shares are Wilson's with
//! that number. Those of quantiles use the shares below the value (Woodruff 1952).
//!
//! Whether there is an interval must not depend on an accidental similarity of groups: it would then be too
//! narrow. So a quantile with too few independent messages above it has an interval without an upper end.

use crate::casts::{to_usize, usize_to_f64};
use crate::distribution::{chi_square_quantile, normal_quantile, student_quantile};
use crate::error::StatsError;
use crate::interval::{ALPHA, ConfidenceInterval};
use crate::proportion::share_interval;
use crate::quantile::{Level, at_rank, interval_ranks, lower_rank, quantile_needs, type_seven};
use crate::sorted::{Sorted, refuse_fewer};

/// A group of messages: an experiment, or a stretch of one.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// The values of the replies, in any unit.
    pub replies: Sorted<'a>,
    /// Messages without a value; a quantile counts them as above every reply.
    pub unanswered: usize,
}

impl Group<'_> {
    fn len(&self) -> usize {
        self.replies.len() + self.unanswered
    }
}

/// Below this many groups their differences are not known well enough for an interval.
pub const GROUPS_NEEDED: usize = 6;

/// A share of messages with its 95 % confidence interval over groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupedShare {
    /// The share over all messages, 0 to 1.
    pub share: f64,
    /// The interval; within 0 to 1.
    pub interval: ConfidenceInterval,
    /// Number of independent messages with as much information; at most the number of messages.
    pub effective: f64,
}

/// The share of hits over groups, each with its hits and its messages.
///
/// # Errors
/// [`StatsError::TooFew`] below [`GROUPS_NEEDED`] groups with messages, and where no group has a hit or all
/// messages are hits: then the distribution over groups is unknown.
pub fn grouped_share(groups: &[(usize, usize)]) -> Result<GroupedShare, StatsError> {
    let known: Vec<(f64, f64)> = groups
        .iter()
        .filter(|(_, total)| *total > 0)
        .map(|(hits, total)| (usize_to_f64(*hits), usize_to_f64(*total)))
        .collect();
    refuse_fewer("share over groups", GROUPS_NEEDED, known.len())?;
    let hits: f64 = known.iter().map(|(hits, _)| hits).sum();
    let total: f64 = known.iter().map(|(_, total)| total).sum();
    let share = hits / total;
    if hits <= 0.0 || hits >= total {
        return Err(StatsError::TooFew {
            subject: "share over groups",
            need: 1,
            have: 0,
        });
    }
    let effective = Spread::of(&known, share).effective(share);
    // If few groups have any, the differences are known only from these.
    let with_hits = known.iter().filter(|(hits, _)| *hits > 0.0).count();
    let with_others = known.iter().filter(|(hits, all)| hits < all).count();
    let interval = share_interval(
        share,
        reduced_for_few_groups(effective, with_hits.min(with_others)),
    )?;
    Ok(GroupedShare {
        share,
        interval,
        effective: effective.min(total),
    })
}

/// A quantile over groups with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupedQuantile {
    /// The type 7 estimate over all messages.
    pub value: Level,
    /// Its 95 % confidence interval.
    pub interval: QuantileInterval,
    /// Number of independent messages with as much information; at most the number of messages.
    pub effective: f64,
}

/// The interval of a quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileInterval {
    /// Lower end.
    pub low: Level,
    /// Upper end; `None` where it may lie beyond all measured values.
    pub high: Option<Level>,
}

/// Probability that different groups look similar enough for an upper end.
const SIMILAR_BY_CHANCE: f64 = 0.02;

/// The quantile `p` of all messages, with an interval for that of all possible groups. `pooled` has the
/// replies of all groups.
///
/// # Errors
/// [`StatsError::OutOfRange`] unless 0.5 <= p < 1: below the median it would be the lower end that is not
/// known. [`StatsError::TooFew`] below [`GROUPS_NEEDED`] groups with messages.
pub fn grouped_quantile(
    pooled: Sorted<'_>,
    groups: &[Group<'_>],
    p: f64,
) -> Result<GroupedQuantile, StatsError> {
    let need = quantile_needs(p)?;
    if p < 0.5 {
        return Err(StatsError::OutOfRange {
            subject: "quantile over groups",
            value: p,
            wanted: "from 0.5 up to 1",
        });
    }
    let groups: Vec<&Group<'_>> = groups.iter().filter(|group| group.len() > 0).collect();
    refuse_fewer("quantile over groups", GROUPS_NEEDED, groups.len())?;
    let n: usize = groups.iter().map(|group| group.len()).sum();
    let value = type_seven(&pooled, n, p);
    let below: Vec<(f64, f64)> = groups
        .iter()
        .map(|group| (up_to(group, value), usize_to_f64(group.len())))
        .collect();
    let share = below.iter().map(|(below, _)| below).sum::<f64>() / usize_to_f64(n);
    let spread = Spread::of(&below, share);
    let effective = spread.effective(p);
    let on_side = |of: fn(&(f64, f64)) -> f64| below.iter().filter(|group| of(group) > 0.0).count();
    let sides = on_side(|(below, _)| *below).min(on_side(|(below, total)| total - below));
    let cases = if sides < GROUPS_NEEDED {
        Cases::only(groups.len())
    } else {
        // Messages without a value decide where high quantiles lie.
        let unanswered = groups.iter().filter(|group| group.unanswered > 0).count();
        let known_from = match unanswered {
            some @ 1.. if p > 0.5 => some,
            _ => groups.len(),
        };
        Cases::of(&spread, reduced_for_few_groups(effective, known_from))
    };
    let rank = |rank: f64| at_rank(&pooled, to_usize(rank).clamp(1, n));
    // A case represents this many ranks, and has the value of the middle one. The last rank of the last
    // case would be the slowest message of all.
    let scale = usize_to_f64(n) / usize_to_f64(cases.number);
    let middle = |case: usize| (usize_to_f64(case) - 0.5) * scale + 0.5;
    let interval = if cases.surely >= usize_to_f64(need) {
        let (lower, upper) = interval_ranks(cases.number, p);
        QuantileInterval {
            low: rank(middle(lower).floor()),
            high: Some(rank(middle(upper).ceil())),
        }
    } else {
        let lower = lower_rank(cases.number, p, 0.5 * ALPHA).max(1);
        QuantileInterval {
            low: rank(middle(lower).floor()),
            high: None,
        }
    };
    Ok(GroupedQuantile {
        value,
        interval,
        effective: effective.min(usize_to_f64(n)),
    })
}

/// Number of independent messages for the ranks of an interval.
struct Cases {
    number: usize,
    /// Their least number, with an error probability of [`SIMILAR_BY_CHANCE`].
    surely: f64,
}

impl Cases {
    /// Each group is one: with so few values on one side the distribution over groups is unknown.
    fn only(groups: usize) -> Self {
        Self {
            number: groups,
            surely: usize_to_f64(groups),
        }
    }

    fn of(spread: &Spread, effective: f64) -> Self {
        // A group counts at least as one.
        let number = effective.max(usize_to_f64(spread.groups));
        let freedom = spread.freedom();
        let chance = chi_square_quantile(SIMILAR_BY_CHANCE, freedom) / freedom;
        Self {
            number: to_usize(number),
            surely: (number * chance).max(usize_to_f64(spread.groups)),
        }
    }
}

fn up_to(group: &Group<'_>, value: Level) -> f64 {
    match value {
        Level::At(value) => usize_to_f64(group.replies.count_up_to(value)),
        Level::Censored => usize_to_f64(group.replies.len()),
    }
}

/// Differences of groups in a share: sums of powers of each group's excess of hits.
struct Spread {
    groups: usize,
    /// Messages of all groups.
    all: f64,
    squares: f64,
    fourths: f64,
}

impl Spread {
    /// From groups with their hits and their messages, with the `share` of all.
    fn of(groups: &[(f64, f64)], share: f64) -> Self {
        let power = |power: i32| {
            let more = groups.iter().map(|(hits, of)| hits - share * of);
            more.map(|deviation| deviation.powi(power)).sum()
        };
        Self {
            groups: groups.len(),
            all: groups.iter().map(|(_, total)| total).sum(),
            squares: power(2),
            fourths: power(4),
        }
    }

    /// Number of independent messages, each with this probability to be a hit, with an equally precise share.
    /// As an estimate it may exceed the number of messages if groups happen to be similar; at most four
    /// times.
    fn effective(&self, chance: f64) -> f64 {
        let count = usize_to_f64(self.groups);
        let variance = count / (count - 1.0) * self.squares / (self.all * self.all);
        let max = 4.0 * self.all;
        if variance <= 0.0 {
            return max;
        }
        (chance * (1.0 - chance) / variance).min(max)
    }

    /// Degrees of freedom of the variance: the number of groups minus one if they are normal, fewer if few of
    /// them cause most of it.
    fn freedom(&self) -> f64 {
        let max = usize_to_f64(self.groups - 1);
        if self.fourths <= 0.0 {
            return max;
        }
        (3.0 * self.squares * self.squares / self.fourths - 1.0).clamp(1.0, max)
    }
}

/// The effective number reduced for the uncertainty from few groups: the normal quantile is then as wide as
/// Student's.
fn reduced_for_few_groups(effective: f64, known_from: usize) -> f64 {
    let freedom = usize_to_f64(known_from.max(2) - 1);
    let normal = normal_quantile(1.0 - 0.5 * ALPHA);
    let student = student_quantile(1.0 - 0.5 * ALPHA, freedom);
    effective * (normal / student).powi(2)
}

#[cfg(test)]
mod tests;
