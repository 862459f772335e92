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
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::There => "there",
            Self::Back => "back",
        }
    }
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
    pairs: Vec<Pair>,
}

/// What those between two hosts say.
#[derive(Debug, Clone, Default)]
struct Pair {
    votes: Votes,
    /// The latest difference of stamps by two clocks, downward and upward.
    latest: [Option<i64>; 2],
    /// The first difference of these captures, of either direction.
    first: Option<i64>,
    /// One of each direction, by two clocks.
    is_compared: bool,
    /// Not all differences are the same.
    is_moved: bool,
}

impl Ways {
    /// Of so many pairs of hosts.
    pub(crate) fn of(pairs: usize) -> Self {
        Self {
            pairs: vec![Pair::default(); pairs],
        }
    }

    /// A packet of both captures; `apart` is the later point's stamp minus the earlier one's.
    pub(crate) fn see(&mut self, pair: u32, is_upward: bool, apart: i64) {
        let Some(pair) = self.pairs.get_mut(pair as usize) else {
            return;
        };
        let (way, other) = if is_upward { (1, 0) } else { (0, 1) };
        pair.latest[way] = Some(apart);
        pair.is_moved |= *pair.first.get_or_insert(apart) != apart;
        if let Some(before) = pair.latest[other] {
            pair.is_compared = true;
            pair.votes.cast(is_upward, apart.saturating_sub(before));
        }
    }

    /// A packet of two captures by one clock: it alone says which way.
    pub(crate) fn see_by_one_clock(&mut self, pair: u32, is_upward: bool, apart: i64) {
        if let Some(pair) = self.pairs.get_mut(pair as usize) {
            pair.votes.cast(is_upward, apart);
        }
    }

    /// What follows is of other captures.
    pub(crate) fn turn(&mut self) {
        for pair in &mut self.pairs {
            pair.latest = [None; 2];
            pair.first = None;
        }
    }

    /// Which way; `None` where packets of one direction alone, or none, were seen, and where as many say
    /// the one as the other.
    pub(crate) fn way(&self, pair: u32, is_upward: bool) -> Option<Way> {
        match (self.pairs.get(pair as usize)?.votes.most(), is_upward) {
            (0, _) => None,
            (1.., true) | (..=-1, false) => Some(Way::There),
            (1.., false) | (..=-1, true) => Some(Way::Back),
        }
    }

    /// Whether packets of both directions were held against each other, by two clocks.
    pub(crate) fn is_compared(&self, pair: u32) -> bool {
        let pair = self.pairs.get(pair as usize);
        pair.is_some_and(|pair| pair.is_compared)
    }

    /// Either way, where nothing lies between the points: all packets of both directions differ by the
    /// clocks alone. One direction says that their offset is no more, the other that it is no less,
    /// whichever goes there: this is for clocks, and no answer to which way.
    pub(crate) fn either(&self, pair: u32, is_upward: bool) -> Option<Way> {
        let way = if is_upward { Way::There } else { Way::Back };
        self.is_still(pair).then_some(way)
    }

    /// Whether packets of both directions differ by the clocks alone.
    pub(crate) fn is_still(&self, pair: u32) -> bool {
        let pair = self.pairs.get(pair as usize);
        pair.is_some_and(|pair| pair.is_compared && !pair.is_moved && pair.votes.most() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_the_clocks_alone_goes_either_way() {
        let mut ways = Ways::of(1);
        ways.see(0, true, 3);
        assert!(!ways.is_compared(0), "one direction says nothing");
        assert_eq!(ways.either(0, true), None);
        ways.see(0, false, 3);
        assert!(ways.is_compared(0));
        assert_eq!(ways.way(0, true), None);
        assert_eq!(ways.either(0, true), Some(Way::There));
        assert_eq!(ways.either(0, false), Some(Way::Back));
        // Further captures have an offset of their own.
        ways.turn();
        ways.see(0, true, 8);
        ways.see(0, false, 8);
        assert_eq!(ways.either(0, true), Some(Way::There));
        // As many say the one as the other: something lies between.
        ways.see(0, true, 9);
        ways.see(0, false, 9);
        ways.see(0, false, 10);
        assert_eq!((ways.way(0, true), ways.either(0, true)), (None, None));
        assert!(ways.is_compared(0));
    }
}
