//! Which way packets go between two points of capture, told without a word about the clocks.
//!
//! A packet's difference of stamps is the offset of the clocks plus its delay one way, and minus its
//! delay the other way: of two packets near to each other the one with the larger difference went
//! there.

/// Which way a packet went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From the first point of capture towards the last.
    There,
    /// From the last towards the first.
    Back,
}

impl Way {
    /// The point at which what goes this way comes into a segment between two neighbours, by the number
    /// of the first one.
    pub const fn enters(self, segment: usize) -> usize {
        match self {
            Self::There => segment,
            Self::Back => segment + 1,
        }
    }
}

/// What packets between one pair of hosts say of two points or more.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Votes {
    /// Above 0 if what goes upward goes there.
    sum: i64,
    cast: i64,
}

impl Votes {
    /// One more, of a packet: above 0 where the difference of its stamps is the larger one.
    pub(crate) const fn cast(&mut self, is_upward: bool, larger: i64) {
        self.cast += 1;
        self.sum += if is_upward {
            larger.signum()
        } else {
            -larger.signum()
        };
    }

    /// How many there are.
    pub(crate) const fn many(self) -> i64 {
        self.cast
    }

    /// 1 if what goes upward goes there, -1 if it goes back; 0 where as many say the one as the other.
    const fn most(self) -> i64 {
        self.sum.signum()
    }

    /// The same; 0 where not more than three quarters of them say so.
    pub(crate) const fn clearly(self) -> i64 {
        if self.sum.abs() * 2 > self.cast {
            self.sum.signum()
        } else {
            0
        }
    }
}

/// What packets between each pair of hosts say.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    votes: Vec<Votes>,
    latest: Vec<[Option<i64>; 2]>,
}

impl Ways {
    /// Of so many pairs of hosts.
    pub(crate) fn of(pairs: usize) -> Self {
        Self {
            votes: vec![Votes::default(); pairs],
            latest: vec![[None; 2]; pairs],
        }
    }

    /// A packet of both captures; `apart` is the later point's stamp minus the earlier one's.
    pub(crate) fn see(&mut self, pair: u32, is_upward: bool, apart: i64) {
        let pair = pair as usize;
        let (Some(vote), Some(latest)) = (self.votes.get_mut(pair), self.latest.get_mut(pair))
        else {
            return;
        };
        let (way, other) = if is_upward { (1, 0) } else { (0, 1) };
        latest[way] = Some(apart);
        if let Some(before) = latest[other] {
            vote.cast(is_upward, apart.saturating_sub(before));
        }
    }

    /// A packet of two captures by one clock: it alone says which way.
    pub(crate) fn see_by_one_clock(&mut self, pair: u32, is_upward: bool, apart: i64) {
        if let Some(vote) = self.votes.get_mut(pair as usize) {
            vote.cast(is_upward, apart);
        }
    }

    /// What follows is of other captures.
    pub(crate) fn turn(&mut self) {
        self.latest.fill([None; 2]);
    }

    /// Which way; `None` where packets of one direction alone, or none, were seen.
    pub(crate) fn way(&self, pair: u32, is_upward: bool) -> Option<Way> {
        match (self.votes.get(pair as usize)?.most(), is_upward) {
            (0, _) => None,
            (1.., true) | (..=-1, false) => Some(Way::There),
            (1.., false) | (..=-1, true) => Some(Way::Back),
        }
    }
}
