//! The order of capture points along the path, estimated from the packets that passed them.
//!
//! Compares any two points, without any knowledge of their clocks. With one clock a packet passes the nearer
//! point first. With two, its difference of timestamps is larger than that of a packet in the other direction
//! shortly before. Does not own the reported directions (directions).

use super::followed::Followed;
use crate::directions::Votes;

/// Packets of two points that are examined, at most.
const MAX_PACKETS: usize = 100_000;
/// Drift between two clocks is negligible within this many nanoseconds.
const MAX_GAP_NANOS: i64 = 100_000_000;

impl Followed {
    /// The points in the order in which packets pass them, from one end of the path. Points that no packet of
    /// the busiest hosts passed are left out. `None` if they are in order already, or if the packets do not
    /// show the order clearly. `one_clock` is that of [`super::Hops::end`].
    pub fn order_of_points(&self, one_clock: &[bool]) -> Option<Vec<usize>> {
        let segment_votes: Vec<Vec<Votes>> = (0..self.segments())
            .map(|segment| self.votes(segment, segment + 1, one_clock))
            .collect();
        let vote_count = |pair: usize| {
            segment_votes
                .iter()
                .map(|votes| votes[pair].count())
                .sum::<i64>()
        };
        let pair = (0..self.pair_count()).max_by_key(|pair| vote_count(*pair))?;
        let has_majority = |sign| {
            segment_votes
                .iter()
                .any(|votes| votes[pair].clear_majority() == sign)
        };
        if !has_majority(1) || !has_majority(-1) {
            return None;
        }
        // Number of points behind each one, minus those before it.
        let mut leads: Vec<Option<i64>> = vec![None; self.segments() + 1];
        for first in 0..leads.len() {
            for second in first + 1..leads.len() {
                let sign = self.votes(first, second, one_clock)[pair].clear_majority();
                if sign != 0 {
                    *leads[first].get_or_insert(0) += sign;
                    *leads[second].get_or_insert(0) -= sign;
                }
            }
        }
        order_by_leads(&leads)
    }

    /// Votes of the packets for the order of two points, per host pair.
    fn votes(&self, first: usize, second: usize, one_clock: &[bool]) -> Vec<Votes> {
        let mut votes = vec![Votes::default(); self.pair_count()];
        // Per direction: when the latest packet passed the first point, and its difference of timestamps.
        let mut latest = vec![[None; 2]; self.pair_count()];
        let segment_clocks = one_clock.get(first..second);
        let has_one_clock = segment_clocks.is_some_and(|clocks| !clocks.contains(&false));
        for (number, first_at, second_at) in self.times_at_both(first, second).take(MAX_PACKETS) {
            let (pair, is_upward) = self.pair_and_direction(number);
            let (votes, latest) = (&mut votes[pair], &mut latest[pair]);
            let difference = second_at.saturating_sub(first_at);
            let excess = if has_one_clock {
                (self.stamp(second, second_at)).saturating_sub(self.stamp(first, first_at))
            } else {
                let other_latest = latest[usize::from(!is_upward)];
                latest[usize::from(is_upward)] = Some((first_at, difference));
                let recent_latest = other_latest.filter(|(at, _): &(i64, i64)| {
                    first_at.abs_diff(*at) <= MAX_GAP_NANOS.unsigned_abs()
                });
                let Some((_, other_difference)) = recent_latest else {
                    continue;
                };
                difference.saturating_sub(other_difference)
            };
            votes.add(is_upward, excess);
        }
        votes
    }
}

/// Points from one end to the other, if each lies before all that follow it. Begins at the end that keeps
/// more of them in the given order.
fn order_by_leads(leads: &[Option<i64>]) -> Option<Vec<usize>> {
    let points = leads.iter().enumerate();
    let points = points.filter_map(|(point, lead)| Some((point, (*lead)?)));
    let mut order: Vec<(usize, i64)> = points.collect();
    order.sort_by_key(|(_, lead)| -lead);
    let last = i64::try_from(order.len()).ok()? - 1;
    let is_complete = (0..)
        .zip(&order)
        .all(|(position, (_, lead))| *lead == last - 2 * position);
    let mut order: Vec<usize> = order.into_iter().map(|(point, _)| point).collect();
    let count_pairs = |is_counted: fn(usize, usize) -> bool| {
        let positions = order.iter().enumerate();
        positions
            .map(|(position, point)| {
                let later_points = order[position + 1..].iter();
                later_points
                    .filter(|other| is_counted(*point, **other))
                    .count()
            })
            .sum::<usize>()
    };
    if count_pairs(|point, other| point > other) > count_pairs(|point, other| point < other) {
        order.reverse();
    }
    is_complete.then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_ordered_if_each_precedes_all_that_follow() {
        let order_of = |leads: &[i64]| {
            let leads: Vec<Option<i64>> = leads.iter().map(|lead| Some(*lead)).collect();
            order_by_leads(&leads)
        };
        assert_eq!(order_of(&[2, -2, 0]), Some(vec![0, 2, 1]));
        // The same, from the other end.
        assert_eq!(order_of(&[-2, 2, 0]), Some(vec![0, 2, 1]));
        assert_eq!(
            order_of(&[0, 0, 0]),
            None,
            "each before the next, in a ring"
        );
        assert_eq!(order_by_leads(&[Some(1), None, Some(-1)]), Some(vec![0, 2]));
    }
}
