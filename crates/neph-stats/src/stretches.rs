//! Stretches of time, joined where they lie close together, so that their number stays bounded.

/// More are not kept apart.
const MOST: usize = 1024;

/// Stretches of time in order, each from its first moment to its last, nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Stretches {
    known: Vec<(i64, i64)>,
    /// What lies closer together is one.
    gap: i64,
}

impl Stretches {
    /// None yet; what lies closer together than `gap` will be one.
    pub(crate) fn new(gap: i64) -> Self {
        let known = Vec::new();
        Self { known, gap }
    }

    /// Adds one that does not begin before the one that was added last.
    pub(crate) fn add(&mut self, from: i64, until: i64) {
        match self.known.last_mut() {
            Some(last) if from.saturating_sub(last.1) < self.gap => last.1 = last.1.max(until),
            _ => self.known.push((from, until)),
        }
        if self.known.len() > MOST {
            self.join_some();
        }
    }

    /// Joins neighbours, those that lie closest together first, and none twice: a few long
    /// stretches would say less than many short ones.
    fn join_some(&mut self) {
        let gap = |left: usize| self.known[left + 1].0.saturating_sub(self.known[left].1);
        let mut order: Vec<usize> = (0..self.known.len() - 1).collect();
        order.sort_by_key(|&left| (gap(left), left));
        let mut joined = vec![false; self.known.len()];
        let mut rights = Vec::new();
        for left in order {
            if rights.len() < MOST / 4 && !joined[left] && !joined[left + 1] {
                (joined[left], joined[left + 1]) = (true, true);
                rights.push(left + 1);
            }
        }
        rights.sort_unstable();
        for right in rights.into_iter().rev() {
            let (_, until) = self.known.remove(right);
            self.known[right - 1].1 = until;
        }
    }

    /// What was added from `since` on was wrong.
    pub(crate) fn cut(&mut self, since: i64) {
        self.known.retain(|&(from, _)| from < since);
        if let Some((_, until)) = self.known.last_mut() {
            *until = since.min(*until);
        }
    }

    pub(crate) fn known(&self) -> &[(i64, i64)] {
        &self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_stretches_are_one_and_what_was_wrong_is_cut_off() {
        let mut stretches = Stretches::new(10);
        for (from, until) in [(0, 5), (9, 20), (40, 50), (60, 70)] {
            stretches.add(from, until);
        }
        assert_eq!(stretches.known(), [(0, 20), (40, 50), (60, 70)]);
        stretches.cut(45);
        assert_eq!(stretches.known(), [(0, 20), (40, 45)]);
    }

    #[test]
    fn however_many_there_are_some_are_kept_and_all_are_covered() {
        let mut stretches = Stretches::new(1);
        for n in 0..100_000 {
            stretches.add(n * 10, n * 10 + 1);
        }
        let known = stretches.known();
        assert!((100..=MOST).contains(&known.len()), "{}", known.len());
        assert_eq!((known[0].0, known[known.len() - 1].1), (0, 999_991));
        assert!(known.windows(2).all(|two| two[0].1 < two[1].0));
    }
}
