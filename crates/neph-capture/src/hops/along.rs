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
const NEAR: i64 = 100_000_000;

impl Followed {
    /// The points in the order in which packets pass them, from one end of the path. Points that no packet of
    /// the busiest hosts passed are left out. `None` if they are in order already, or if the packets do not
    /// show the order clearly. `one_clock` is that of [`super::Hops::end`].
    pub fn order_of_points(&self, one_clock: &[bool]) -> Option<Vec<usize>> {
        let neighbours: Vec<Vec<Votes>> = (0..self.segments())
            .map(|segment| self.votes(segment, segment + 1, one_clock))
            .collect();
        let cast = |pair: usize| neighbours.iter().map(|of| of[pair].many()).sum::<i64>();
        let pair = (0..self.pairs()).max_by_key(|pair| cast(*pair))?;
        let has = |side| neighbours.iter().any(|of| of[pair].clearly() == side);
        if !has(1) || !has(-1) {
            return None;
        }
        // Number of points behind each one, minus those before it.
        let mut ahead: Vec<Option<i64>> = vec![None; self.segments() + 1];
        for first in 0..ahead.len() {
            for second in first + 1..ahead.len() {
                let side = self.votes(first, second, one_clock)[pair].clearly();
                if side != 0 {
                    *ahead[first].get_or_insert(0) += side;
                    *ahead[second].get_or_insert(0) -= side;
                }
            }
        }
        sorted(&ahead)
    }

    /// Votes of the packets for the order of two points, per host pair.
    fn votes(&self, first: usize, second: usize, one_clock: &[bool]) -> Vec<Votes> {
        let mut votes = vec![Votes::default(); self.pairs()];
        // Per direction: when the latest packet passed the first point, and its difference of timestamps.
        let mut latest = vec![[None; 2]; self.pairs()];
        let between = one_clock.get(first..second);
        let is_one = between.is_some_and(|clocks| !clocks.contains(&false));
        for (number, first_at, second_at) in self.passed(first, second).take(MAX_PACKETS) {
            let (pair, is_upward) = self.between(number);
            let (votes, latest) = (&mut votes[pair], &mut latest[pair]);
            let apart = second_at.saturating_sub(first_at);
            let larger = if is_one {
                (self.stamp(second, second_at)).saturating_sub(self.stamp(first, first_at))
            } else {
                let before = latest[usize::from(!is_upward)];
                latest[usize::from(is_upward)] = Some((first_at, apart));
                let recent_vote = before
                    .filter(|(at, _): &(i64, i64)| first_at.abs_diff(*at) <= NEAR.unsigned_abs());
                let Some((_, before)) = recent_vote else {
                    continue;
                };
                apart.saturating_sub(before)
            };
            votes.cast(is_upward, larger);
        }
        votes
    }
}

/// Points from one end to the other, if each lies before all that follow it. Begins at the end that keeps
/// more of them in the given order.
fn sorted(ahead: &[Option<i64>]) -> Option<Vec<usize>> {
    let known = ahead.iter().enumerate();
    let known = known.filter_map(|(point, ahead)| Some((point, (*ahead)?)));
    let mut order: Vec<(usize, i64)> = known.collect();
    order.sort_by_key(|(_, ahead)| -ahead);
    let last = i64::try_from(order.len()).ok()? - 1;
    let is_whole = (0..)
        .zip(&order)
        .all(|(position, (_, ahead))| *ahead == last - 2 * position);
    let mut order: Vec<usize> = order.into_iter().map(|(point, _)| point).collect();
    let pairs = |is_meant: fn(usize, usize) -> bool| {
        let each = order.iter().enumerate();
        each.map(|(at, entry)| {
            let behind = order[at + 1..].iter();
            behind.filter(|other| is_meant(*entry, **other)).count()
        })
        .sum::<usize>()
    };
    if pairs(|point, other| point > other) > pairs(|point, other| point < other) {
        order.reverse();
    }
    is_whole.then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_in_order_where_each_lies_before_all_that_follow_it() {
        let order_of = |ahead: &[i64]| {
            let ahead: Vec<Option<i64>> = ahead.iter().map(|ahead| Some(*ahead)).collect();
            sorted(&ahead)
        };
        assert_eq!(order_of(&[2, -2, 0]), Some(vec![0, 2, 1]));
        // The same, from the other end.
        assert_eq!(order_of(&[-2, 2, 0]), Some(vec![0, 2, 1]));
        assert_eq!(
            order_of(&[0, 0, 0]),
            None,
            "each before the next, in a ring"
        );
        assert_eq!(sorted(&[Some(1), None, Some(-1)]), Some(vec![0, 2]));
    }
}
