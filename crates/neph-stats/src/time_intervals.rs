//! Intervals of time, joined where they are close together, so that their number stays bounded.

/// Most separate intervals: a queue each ten seconds for a week.
const MAX_INTERVALS: usize = 65_536;

/// Intervals in order, each from its first moment to its last, in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct TimeIntervals {
    known: Vec<(i64, i64)>,
    /// Intervals closer together than this are one.
    gap: i64,
    /// Most separate intervals.
    max: usize,
    /// Whether there were more.
    joined: bool,
}

impl TimeIntervals {
    /// Empty; intervals closer together than `gap` will be one.
    pub(crate) fn new(gap: i64) -> Self {
        Self {
            known: Vec::new(),
            gap,
            max: MAX_INTERVALS,
            joined: false,
        }
    }

    /// Adds an interval that does not begin before the last one.
    pub(crate) fn add(&mut self, from: i64, until: i64) {
        match self.known.last_mut() {
            Some(last) if from.saturating_sub(last.1) < self.gap => last.1 = last.1.max(until),
            _ => self.known.push((from, until)),
        }
        if self.known.len() > self.max {
            self.join_closest();
        }
    }

    /// Joins neighbours, the closest first, and none twice: many short intervals show more than a few long
    /// ones.
    fn join_closest(&mut self) {
        let gap = |index: usize| self.known[index + 1].0.saturating_sub(self.known[index].1);
        let mut order: Vec<usize> = (0..self.known.len() - 1).collect();
        order.sort_by_key(|&index| (gap(index), index));
        let mut taken = vec![false; self.known.len()];
        let mut is_right = taken.clone();
        let pairs = order.into_iter().filter(|&index| {
            let free = !taken[index] && !taken[index + 1];
            if free {
                (taken[index], taken[index + 1]) = (true, true);
            }
            free
        });
        for index in pairs.take(self.max / 4) {
            is_right[index + 1] = true;
        }
        let mut is_right = is_right.into_iter();
        // `dedup_by` calls the closure with the second one first.
        is_right.next();
        self.known.dedup_by(|right, index| {
            let joins = is_right.next() == Some(true);
            if joins {
                index.1 = right.1;
            }
            joins
        });
        self.joined = true;
    }

    /// Removes everything that was added from `since` on.
    pub(crate) fn cut(&mut self, since: i64) {
        self.known.retain(|&(from, _)| from < since);
        if let Some((_, until)) = self.known.last_mut() {
            *until = since.min(*until);
        }
    }

    pub(crate) fn known(&self) -> &[(i64, i64)] {
        &self.known
    }

    /// Whether there were so many that some were joined, with the time between them.
    pub(crate) const fn is_joined(&self) -> bool {
        self.joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_intervals_merge_and_a_cut_removes_later_time() {
        let mut stretches = TimeIntervals::new(10);
        for (from, until) in [(0, 5), (9, 20), (40, 50), (60, 70)] {
            stretches.add(from, until);
        }
        assert_eq!(stretches.known(), [(0, 20), (40, 50), (60, 70)]);
        stretches.cut(45);
        assert_eq!(stretches.known(), [(0, 20), (40, 45)]);
    }

    #[test]
    fn many_intervals_are_merged_and_cover_the_same_time() {
        let mut stretches = TimeIntervals {
            max: 1024,
            ..TimeIntervals::new(1)
        };
        for n in 0..100_000 {
            stretches.add(n * 10, n * 10 + 1);
        }
        let known = stretches.known();
        assert!((100..=1024).contains(&known.len()), "{}", known.len());
        assert_eq!((known[0].0, known[known.len() - 1].1), (0, 999_991));
        assert!(known.windows(2).all(|two| two[0].1 < two[1].0));
        assert!(stretches.is_joined());
    }

    #[test]
    fn the_closest_intervals_are_merged_first() {
        let mut stretches = TimeIntervals {
            max: 4,
            ..TimeIntervals::new(1)
        };
        for from in [0, 100, 110, 300, 305] {
            stretches.add(from, from + 2);
        }
        let known = [(0, 2), (100, 102), (110, 112), (300, 307)];
        assert_eq!(stretches.known(), known);
    }

    /// A rate excludes the queues' own time, not the time between them.
    #[test]
    fn a_queue_each_minute_for_a_week_is_stored_exactly() {
        let second = 1_000_000_000;
        let week = (0..7 * 1440).map(|minute| (minute * 60 * second, (minute * 60 + 1) * second));
        let mut stretches = TimeIntervals::new(second);
        for (from, until) in week.clone() {
            stretches.add(from, until);
        }
        assert!(stretches.known().iter().copied().eq(week));
        assert!(!stretches.is_joined());
    }
}
