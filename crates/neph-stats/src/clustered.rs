//! Shares and quantiles of messages that are not independent: messages of one experiment share its
//! path, its host and its minute, and neighbours share a queue or a burst of loss.
//!
//! The unit is the group: an experiment, or where there is one experiment alone, a stretch of it. How
//! much groups differ gives the number of independent messages that would know as much (Kish's
//! effective size), corrected for the few groups it is estimated from by Student's t (Korn and
//! Graubard 1998). Intervals of shares are Wilson's with that number; those of quantiles are made of the
//! shares below the value (Woodruff 1952).
//!
//! Whether an interval is given must not depend on how alike the groups happen to be: it would be given
//! where they are alike by chance, and be too narrow there. So a quantile that too few independent
//! messages reach beyond has an interval without an upper end.

use crate::distribution::{chi_square_quantile, normal_quantile, student_quantile};
use crate::error::StatsError;
use crate::interval::{ALPHA, Interval};
use crate::proportion::share_interval;
use crate::quantile::{Level, at_rank, interval_ranks, lower_rank, quantile_needs, type_seven};
use crate::real::{real, whole};
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

/// A share of messages with its 95 % interval over groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupedShare {
    /// The share over all messages, 0 to 1.
    pub share: f64,
    /// The interval; within 0 to 1.
    pub interval: Interval,
    /// How many independent messages would know as much, at most as many as there are.
    pub effective: f64,
}

/// The share of hits over groups, each with its hits and its messages.
///
/// # Errors
/// [`StatsError::TooFew`] below [`GROUPS_NEEDED`] groups with messages, and where no group has a hit or
/// all have nothing else: how such messages come together is not known then.
pub fn grouped_share(groups: &[(usize, usize)]) -> Result<GroupedShare, StatsError> {
    let known: Vec<(f64, f64)> = groups
        .iter()
        .filter(|(_, all)| *all > 0)
        .map(|(hits, all)| (real(*hits), real(*all)))
        .collect();
    refuse_fewer("share over groups", GROUPS_NEEDED, known.len())?;
    let hits: f64 = known.iter().map(|(hits, _)| hits).sum();
    let all: f64 = known.iter().map(|(_, all)| all).sum();
    let share = hits / all;
    if hits <= 0.0 || hits >= all {
        return Err(StatsError::TooFew {
            what: "share over groups",
            need: 1,
            have: 0,
        });
    }
    let effective = Spread::of(&known, share).effective(share);
    // Where few groups have any, they are all that the differences are known from.
    let with_hits = known.iter().filter(|(hits, _)| *hits > 0.0).count();
    let with_others = known.iter().filter(|(hits, all)| hits < all).count();
    let interval = share_interval(share, fewer(effective, with_hits.min(with_others)))?;
    Ok(GroupedShare {
        share,
        interval,
        effective: effective.min(all),
    })
}

/// A quantile over groups with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupedQuantile {
    /// The type 7 estimate over all messages.
    pub value: Level,
    /// Its 95 % interval.
    pub interval: QuantileInterval,
    /// How many independent messages would know as much, at most as many as there are.
    pub effective: f64,
}

/// Where a quantile lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileInterval {
    /// Lower end.
    pub low: Level,
    /// Upper end; `None` where it may lie beyond all that was measured.
    pub high: Option<Level>,
}

/// The chance that groups are as alike as they must be for an upper end, although they are not.
const ALIKE_BY_CHANCE: f64 = 0.02;

/// The quantile `p` of all messages, with an interval that holds that of all groups that could have been.
/// `pooled` has the replies of all groups.
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
            what: "quantile over groups",
            value: p,
            wanted: "from 0.5 up to 1",
        });
    }
    let groups: Vec<&Group<'_>> = groups.iter().filter(|one| one.len() > 0).collect();
    refuse_fewer("quantile over groups", GROUPS_NEEDED, groups.len())?;
    let n: usize = groups.iter().map(|one| one.len()).sum();
    let value = type_seven(&pooled, n, p);
    let below: Vec<(f64, f64)> = groups
        .iter()
        .map(|group| (up_to(group, value), real(group.len())))
        .collect();
    let found = below.iter().map(|(below, _)| below).sum::<f64>() / real(n);
    let spread = Spread::of(&below, found);
    let effective = spread.effective(p);
    let on_side = |of: fn(&(f64, f64)) -> f64| below.iter().filter(|group| of(group) > 0.0).count();
    let sides = on_side(|(below, _)| *below).min(on_side(|(below, all)| all - below));
    let cases = if sides < GROUPS_NEEDED {
        Cases::only(groups.len())
    } else {
        // Messages without a value decide where high quantiles lie.
        let unanswered = groups.iter().filter(|one| one.unanswered > 0).count();
        let known_from = match unanswered {
            some @ 1.. if p > 0.5 => some,
            _ => groups.len(),
        };
        Cases::of(&spread, fewer(effective, known_from))
    };
    let rank = |rank: f64| at_rank(&pooled, whole(rank.ceil()).clamp(1, n));
    let scale = real(n) / real(cases.number);
    let interval = if cases.surely >= real(need) {
        let (lower, upper) = interval_ranks(cases.number, p);
        QuantileInterval {
            low: rank((real(lower) * scale).floor()),
            high: Some(rank(real(upper) * scale)),
        }
    } else {
        let lower = lower_rank(cases.number, p, 0.5 * ALPHA).max(1);
        QuantileInterval {
            // A case stands for `scale` ranks: its middle.
            low: rank(((real(lower) - 0.5) * scale).floor()),
            high: None,
        }
    };
    Ok(GroupedQuantile {
        value,
        interval,
        effective: effective.min(real(n)),
    })
}

/// How many independent messages the ranks of an interval are those of.
struct Cases {
    number: usize,
    /// And how many there are, but for a chance of [`ALIKE_BY_CHANCE`].
    surely: f64,
}

impl Cases {
    /// Each group is one: so few have values on one side that how many others would is not known.
    fn only(groups: usize) -> Self {
        Self {
            number: groups,
            surely: real(groups),
        }
    }

    fn of(spread: &Spread, effective: f64) -> Self {
        // A group is at least one.
        let number = effective.max(real(spread.groups));
        let freedom = spread.freedom();
        let chance = chi_square_quantile(ALIKE_BY_CHANCE, freedom) / freedom;
        Self {
            number: whole(number),
            surely: (number * chance).max(real(spread.groups)),
        }
    }
}

fn up_to(group: &Group<'_>, value: Level) -> f64 {
    match value {
        Level::At(value) => real(group.replies.count_up_to(value)),
        Level::Censored => real(group.replies.len()),
    }
}

/// How groups differ in a share: sums of powers of how many more hits each has than its part.
struct Spread {
    groups: usize,
    /// Messages of all groups.
    all: f64,
    squares: f64,
    fourths: f64,
}

impl Spread {
    /// Of groups with their hits and their messages, whose hits are `found` of all.
    fn of(groups: &[(f64, f64)], found: f64) -> Self {
        let power = |power: i32| {
            let more = groups.iter().map(|(hits, of)| hits - found * of);
            more.map(|one| one.powi(power)).sum()
        };
        Self {
            groups: groups.len(),
            all: groups.iter().map(|(_, all)| all).sum(),
            squares: power(2),
            fourths: power(4),
        }
    }

    /// How many independent messages, each with this chance to be a hit, have a share that is known as
    /// well. It may be more than there are, where groups happen to be alike, as an estimate does; four
    /// times as many at most.
    fn effective(&self, chance: f64) -> f64 {
        let count = real(self.groups);
        let variance = count / (count - 1.0) * self.squares / (self.all * self.all);
        let most = 4.0 * self.all;
        if variance <= 0.0 {
            return most;
        }
        (chance * (1.0 - chance) / variance).min(most)
    }

    /// Degrees of freedom of the variance: one less than the groups if they are normal, fewer if few of
    /// them make most of it.
    fn freedom(&self) -> f64 {
        let most = real(self.groups - 1);
        if self.fourths <= 0.0 {
            return most;
        }
        (3.0 * self.squares * self.squares / self.fourths - 1.0).clamp(1.0, most)
    }
}

/// The effective number with what is uncertain about it taken off, as it is known from so few groups: the
/// normal quantile is then as wide as Student's.
fn fewer(effective: f64, known_from: usize) -> f64 {
    let freedom = real(known_from.max(2) - 1);
    let normal = normal_quantile(1.0 - 0.5 * ALPHA);
    let student = student_quantile(1.0 - 0.5 * ALPHA, freedom);
    effective * (normal / student).powi(2)
}

#[cfg(test)]
mod tests;
