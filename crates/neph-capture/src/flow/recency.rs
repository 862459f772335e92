//! The order of a table's places by their last use.
//!
//! Does not own the content of the places. A use is only recorded; the order is corrected when the oldest
//! place is requested, which is far less frequent. Times in the queue are never later than the real ones. So
//! its first place is the oldest as soon as its time is correct.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::prefetch::prefetch;

/// The uses of a table, numbered from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LastUse {
    number: u64,
    /// Nanoseconds since 1970.
    time: i64,
}

/// For a place that is not in use.
const NEVER: LastUse = LastUse { number: 0, time: 0 };

/// Places in the order of their last use.
#[derive(Debug, Default)]
pub(crate) struct Recency {
    /// The last use of each place.
    last_uses: Vec<LastUse>,
    /// Number of uses so far.
    count: u64,
    /// An earlier use of each place, or its last.
    queue: BinaryHeap<Reverse<(LastUse, u32)>>,
    /// Which places are in the queue. Unused ones stay in it until they are the first.
    is_queued: Vec<bool>,
}

impl Recency {
    /// The place with the oldest last use.
    pub(crate) fn oldest(&mut self) -> Option<u32> {
        self.oldest_if(|_| true)
    }

    /// The same, if it was used before `until`.
    #[inline]
    pub(crate) fn oldest_before(&mut self, until: i64) -> Option<u32> {
        self.oldest_if(|time| time < until)
    }

    /// Searches only while `is_due` is true.
    #[inline]
    fn oldest_if(&mut self, is_due: impl Fn(i64) -> bool) -> Option<u32> {
        while let Some(Reverse((queued, _))) = self.queue.peek()
            && is_due(queued.time)
        {
            if let Some(index) = self.correct_first() {
                return Some(index);
            }
        }
        None
    }

    /// The first place of the queue if its time is correct. Otherwise corrects the time, or removes an unused
    /// place.
    fn correct_first(&mut self) -> Option<u32> {
        let mut first = self.queue.peek_mut()?;
        let Reverse((queued, index)) = *first;
        let last = self.last_uses[index as usize];
        if last == queued {
            return Some(index);
        }
        if last == NEVER {
            PeekMut::pop(first);
            self.is_queued[index as usize] = false;
        } else {
            *first = Reverse((last, index));
        }
        None
    }

    /// Adds a place.
    pub(crate) fn insert(&mut self, place: u32, time: i64) {
        let index = place as usize;
        if index >= self.last_uses.len() {
            self.last_uses.resize(index + 1, NEVER);
            self.is_queued.resize(index + 1, false);
        }
        self.touch(place, time);
        if !std::mem::replace(&mut self.is_queued[index], true) {
            self.queue.push(Reverse((self.last_uses[index], place)));
        }
    }

    /// Records a use of a place, not earlier than any before.
    #[inline]
    pub(crate) fn touch(&mut self, index: u32, time: i64) {
        self.count += 1;
        self.last_uses[index as usize] = LastUse {
            number: self.count,
            time,
        };
    }

    /// Prefetches a place for its next use.
    #[inline]
    pub(super) fn prefetch(&self, index: u32) {
        if let Some(last_use) = self.last_uses.get(index as usize) {
            prefetch(last_use);
        }
    }

    /// Removes a place.
    pub(crate) fn remove(&mut self, index: u32) {
        self.last_uses[index as usize] = NEVER;
        let first = self.queue.peek();
        if first.is_some_and(|Reverse((_, first))| *first == index) {
            self.queue.pop();
            self.is_queued[index as usize] = false;
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.last_uses.capacity() * size_of::<LastUse>()
            + self.queue.capacity() * size_of::<(LastUse, u32)>()
            + self.is_queued.capacity()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with a list that is searched.
        #[test]
        fn the_oldest_entry_is_the_least_recently_touched(
            steps in prop::collection::vec((0_u32..8, any::<bool>()), 0..80),
        ) {
            let (mut recency, mut expected_order): (Recency, Vec<(u32, i64)>) = Default::default();
            for place in 0..8 {
                recency.insert(place, 0);
                expected_order.push((place, 0));
            }
            for (time, (place, is_removal)) in (1..).zip(steps) {
                let was_present = expected_order.iter().any(|(other, _)| *other == place);
                expected_order.retain(|(other, _)| *other != place);
                match (was_present, is_removal) {
                    (true, true) => recency.remove(place),
                    (true, false) => recency.touch(place, time),
                    (false, _) => recency.insert(place, time),
                }
                if !(was_present && is_removal) {
                    expected_order.push((place, time));
                }
                // The result must not depend on how often it is requested.
                if time % 3 == 0 {
                    let oldest = expected_order.first().copied();
                    for until in [time - 20, time - 5, time + 1] {
                        let expected = oldest.filter(|(_, last)| *last < until);
                        prop_assert_eq!(recency.oldest_before(until), expected.map(|(place, _)| place));
                    }
                    prop_assert_eq!(recency.oldest(), oldest.map(|(place, _)| place));
                }
            }
        }
    }
}
