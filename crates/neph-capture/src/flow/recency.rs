//! Who was seen longest ago.
//!
//! Owns the order of places in a table by when they were last touched, apart from what is in the
//! places: the order is small and stays in the processor's cache.

/// No place.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Link {
    older: u32,
    newer: u32,
    /// Nanoseconds since 1970.
    at: i64,
}

/// Places in the order of their last touch.
#[derive(Debug)]
pub(crate) struct Recency {
    links: Vec<Link>,
    oldest: u32,
    newest: u32,
}

impl Default for Recency {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            oldest: NONE,
            newest: NONE,
        }
    }
}

impl Recency {
    /// The place that was touched longest ago, and when.
    pub(crate) fn oldest(&self) -> Option<(u32, i64)> {
        let link = self.links.get(self.oldest as usize)?;
        Some((self.oldest, link.at))
    }

    /// A place that is in use from now on.
    pub(crate) fn insert(&mut self, place: u32, at: i64) {
        let link = Link {
            older: self.newest,
            newer: NONE,
            at,
        };
        let index = place as usize;
        if index == self.links.len() {
            self.links.push(link);
        } else {
            self.links[index] = link;
        }
        self.append(place);
    }

    /// A place in use was touched.
    pub(crate) fn touch(&mut self, place: u32, at: i64) {
        if self.newest != place {
            self.remove(place);
            self.append(place);
        }
        self.links[place as usize].at = at;
    }

    /// Reads what a touch of the place will need.
    pub(super) fn fetch(&self, place: u32) -> u32 {
        let link = |place: u32| self.links.get(place as usize);
        let Some(own) = link(place) else {
            return 0;
        };
        let (older, newer) = (link(own.older), link(own.newer));
        older.map_or(0, |link| link.newer) ^ newer.map_or(0, |link| link.older)
    }

    /// A place in use is so no more.
    pub(crate) fn remove(&mut self, place: u32) {
        let Link { older, newer, .. } = self.links[place as usize];
        match self.links.get_mut(older as usize) {
            Some(link) => link.newer = newer,
            None => self.oldest = newer,
        }
        match self.links.get_mut(newer as usize) {
            Some(link) => link.older = older,
            None => self.newest = older,
        }
    }

    pub(super) fn heap(&self) -> usize {
        self.links.capacity() * size_of::<Link>()
    }

    fn append(&mut self, place: u32) {
        let newest = self.newest;
        let link = &mut self.links[place as usize];
        link.older = newest;
        link.newer = NONE;
        match self.links.get_mut(newest as usize) {
            Some(link) => link.newer = place,
            None => self.oldest = place,
        }
        self.newest = place;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Held against a list that is searched.
        #[test]
        fn the_oldest_is_who_was_touched_longest_ago(
            steps in prop::collection::vec((0_u32..8, any::<bool>()), 0..80),
        ) {
            let (mut recency, mut plain): (Recency, Vec<(u32, i64)>) = Default::default();
            for place in 0..8 {
                recency.insert(place, 0);
                plain.push((place, 0));
            }
            for (at, (place, removes)) in (1..).zip(steps) {
                let was_there = plain.iter().any(|(known, _)| *known == place);
                plain.retain(|(known, _)| *known != place);
                match (was_there, removes) {
                    (true, true) => recency.remove(place),
                    (true, false) => recency.touch(place, at),
                    (false, _) => recency.insert(place, at),
                }
                if !(was_there && removes) {
                    plain.push((place, at));
                }
                prop_assert_eq!(recency.oldest(), plain.first().copied());
            }
        }
    }
}
