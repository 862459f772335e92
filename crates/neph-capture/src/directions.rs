//! The direction of packets between two capture points, without any knowledge of their clocks.
//!
//! The later timestamp minus the earlier one is the clock offset plus the delay on the forward path, and the
//! offset minus the delay on the reverse path. Of two packets close in time, the one with the larger
//! difference is on the forward path.

/// The direction of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the first capture point towards the last.
    Forward,
    /// From the last towards the first.
    Reverse,
}

impl Direction {
    /// Its name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }
}

impl Direction {
    /// The point at which packets of this direction enter a segment. A segment has the number of its first
    /// point.
    pub const fn enters(self, segment: usize) -> usize {
        match self {
            Self::Forward => segment,
            Self::Reverse => segment + 1,
        }
    }
}

/// Votes of the packets between two hosts for the direction in which upward packets go.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Votes {
    /// Above 0 if upward packets go forward.
    sum: i64,
    count: i64,
}

impl Votes {
    /// Adds the vote of a packet; `excess` is above 0 if the difference of its timestamps is the larger one.
    pub(crate) const fn add(&mut self, is_upward: bool, excess: i64) {
        self.count += 1;
        self.sum += if is_upward {
            excess.signum()
        } else {
            -excess.signum()
        };
    }

    /// Number of votes.
    pub(crate) const fn count(self) -> i64 {
        self.count
    }

    /// 1 if most votes are for upward as forward, -1 for reverse, 0 for a tie.
    const fn majority(self) -> i64 {
        self.sum.signum()
    }

    /// The same, but 0 unless more than three quarters of the votes agree.
    pub(crate) const fn clear_majority(self) -> i64 {
        if self.sum.abs() * 2 > self.count {
            self.sum.signum()
        } else {
            0
        }
    }
}

/// Votes of all pairs of hosts.
#[derive(Debug, Default)]
pub(crate) struct Directions {
    pairs: Vec<Pair>,
}

/// Votes of one pair of hosts.
#[derive(Debug, Clone, Default)]
struct Pair {
    votes: Votes,
    /// The latest difference of timestamps by two clocks, downward and upward.
    latest: [Option<i64>; 2],
    /// The first difference in these captures, of either direction.
    first: Option<i64>,
    /// Packets of both directions were compared, by two clocks.
    is_compared: bool,
    /// The differences are not all equal.
    is_moved: bool,
}

impl Directions {
    /// For this number of host pairs.
    pub(crate) fn with_pairs(pairs: usize) -> Self {
        Self {
            pairs: vec![Pair::default(); pairs],
        }
    }

    /// Adds a packet of both captures; `difference` is the later point's timestamp minus the earlier one's.
    pub(crate) fn add(&mut self, pair: u32, is_upward: bool, difference: i64) {
        let Some(pair) = self.pairs.get_mut(pair as usize) else {
            return;
        };
        let (direction, other) = if is_upward { (1, 0) } else { (0, 1) };
        pair.latest[direction] = Some(difference);
        pair.is_moved |= *pair.first.get_or_insert(difference) != difference;
        if let Some(before) = pair.latest[other] {
            pair.is_compared = true;
            pair.votes.add(is_upward, difference.saturating_sub(before));
        }
    }

    /// Adds a packet of two captures with one clock: it shows its direction alone.
    pub(crate) fn add_by_one_clock(&mut self, pair: u32, is_upward: bool, difference: i64) {
        if let Some(pair) = self.pairs.get_mut(pair as usize) {
            pair.votes.add(is_upward, difference);
        }
    }

    /// The packets that follow are of other captures.
    pub(crate) fn start_next_captures(&mut self) {
        for pair in &mut self.pairs {
            pair.latest = [None; 2];
            pair.first = None;
        }
    }

    /// The direction. `None` with packets of one direction only or none, and where the votes tie.
    pub(crate) fn direction(&self, pair: u32, is_upward: bool) -> Option<Direction> {
        match (self.pairs.get(pair as usize)?.votes.majority(), is_upward) {
            (0, _) => None,
            (1.., true) | (..=-1, false) => Some(Direction::Forward),
            (1.., false) | (..=-1, true) => Some(Direction::Reverse),
        }
    }

    /// Whether packets of both directions were compared, by two clocks.
    pub(crate) fn is_compared(&self, pair: u32) -> bool {
        let pair = self.pairs.get(pair as usize);
        pair.is_some_and(|pair| pair.is_compared)
    }

    /// An arbitrary direction, where nothing lies between the points and all packets differ by the clocks
    /// alone. One direction limits the offset from above, the other from below, whichever is forward. Only
    /// for clocks: it does not show the real direction.
    pub(crate) fn arbitrary_direction(&self, pair: u32, is_upward: bool) -> Option<Direction> {
        let direction = if is_upward {
            Direction::Forward
        } else {
            Direction::Reverse
        };
        self.has_no_delay(pair).then_some(direction)
    }

    /// Whether packets of both directions differ by the clocks alone.
    pub(crate) fn has_no_delay(&self, pair: u32) -> bool {
        let pair = self.pairs.get(pair as usize);
        pair.is_some_and(|pair| pair.is_compared && !pair.is_moved && pair.votes.majority() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_alone_do_not_decide_the_direction() {
        let mut directions = Directions::with_pairs(1);
        directions.add(0, true, 3);
        assert!(!directions.is_compared(0), "one direction says nothing");
        assert_eq!(directions.arbitrary_direction(0, true), None);
        directions.add(0, false, 3);
        assert!(directions.is_compared(0));
        assert_eq!(directions.direction(0, true), None);
        assert_eq!(
            directions.arbitrary_direction(0, true),
            Some(Direction::Forward)
        );
        assert_eq!(
            directions.arbitrary_direction(0, false),
            Some(Direction::Reverse)
        );
        // Further captures have another offset.
        directions.start_next_captures();
        directions.add(0, true, 8);
        directions.add(0, false, 8);
        assert_eq!(
            directions.arbitrary_direction(0, true),
            Some(Direction::Forward)
        );
        // A tie: something lies between the points.
        directions.add(0, true, 9);
        directions.add(0, false, 9);
        directions.add(0, false, 10);
        assert_eq!(
            (
                directions.direction(0, true),
                directions.arbitrary_direction(0, true)
            ),
            (None, None)
        );
        assert!(directions.is_compared(0));
    }
}
