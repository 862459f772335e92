//! Detects missing, reordered and duplicate datagrams by their sequence numbers alone (RFC 4737).
//!
//! Reads no clock. Memory is bounded: with very many separate losses the oldest ones are forgotten.

use std::collections::BTreeMap;

/// Maximum number of remembered ranges of missing numbers.
const MAX_GAPS: usize = 4096;

/// A range of numbers that are still missing.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The first number after it.
    end: u64,
    /// Datagrams received when it was detected, including the one that revealed it.
    seen_at: u64,
}

/// Counts since the last call of [`Sequence::take`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SequenceCounts {
    /// Received datagrams, without duplicates.
    pub(crate) datagrams: u64,
    /// Datagrams that became missing.
    pub(crate) missing: u64,
    /// Missing datagrams that arrived.
    pub(crate) filled: u64,
    /// Datagrams that arrived after one with a higher number.
    pub(crate) reordered: u64,
    /// Largest reordering extent: datagrams that arrived before a reordered one, from the first one
    /// with a higher number on (RFC 4737, section 4.2.1).
    pub(crate) extent: u64,
    /// Duplicate datagrams.
    pub(crate) duplicates: u64,
}

impl SequenceCounts {
    /// Lost: more became missing than arrived late.
    pub(crate) fn lost(&self) -> u64 {
        self.missing.saturating_sub(self.filled)
    }

    /// Found: more arrived late than became missing.
    pub(crate) fn found(&self) -> u64 {
        self.filled.saturating_sub(self.missing)
    }
}

/// Position of a datagram in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Its number is the one after the highest.
    Next,
    /// Its number is higher: some are missing.
    Ahead,
    /// It was missing.
    Late,
    /// It is a duplicate.
    Duplicate,
}

/// The numbers of one stream, from 0 on.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    /// The number after the highest received one (RFC 4737: `NextExp`).
    next: u64,
    /// Received datagrams, without duplicates.
    received_count: u64,
    gaps: BTreeMap<u64, Gap>,
    /// Gaps below this number are forgotten.
    horizon: u64,
    counted: SequenceCounts,
}

impl Sequence {
    /// Adds a datagram with this number.
    pub(crate) fn arrive(&mut self, number: u64) -> Arrival {
        if number == self.next {
            self.next = number.saturating_add(1);
            self.count();
            return Arrival::Next;
        }
        if number > self.next {
            self.count();
            self.counted.missing += number - self.next;
            let gap = Gap {
                end: number,
                seen_at: self.received_count,
            };
            self.gaps.insert(self.next, gap);
            if self.gaps.len() > MAX_GAPS
                && let Some((_, forgotten)) = self.gaps.pop_first()
            {
                self.horizon = forgotten.end;
            }
            self.next = number.saturating_add(1);
            return Arrival::Ahead;
        }
        self.arrive_late(number)
    }

    fn arrive_late(&mut self, number: u64) -> Arrival {
        let around = self.gaps.range(..=number).next_back();
        let around = around.map(|(start, gap)| (*start, *gap));
        if let Some((start, gap)) = around.filter(|(_, gap)| number < gap.end) {
            self.gaps.remove(&start);
            if start < number {
                self.gaps.insert(start, Gap { end: number, ..gap });
            }
            if number + 1 < gap.end {
                self.gaps.insert(number + 1, gap);
            }
            self.count();
            self.counted.extent = self.counted.extent.max(self.received_count - gap.seen_at);
        } else if number < self.horizon {
            // Whether it was missing is unknown; most numbers this old were.
            self.count();
        } else {
            self.counted.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.counted.reordered += 1;
        self.counted.filled += 1;
        Arrival::Late
    }

    fn count(&mut self) {
        self.received_count += 1;
        self.counted.datagrams += 1;
    }

    /// Returns and resets the counts.
    pub(crate) fn take(&mut self) -> SequenceCounts {
        std::mem::take(&mut self.counted)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn count(numbers: &[u64]) -> SequenceCounts {
        let mut sequence = Sequence::default();
        for number in numbers {
            sequence.arrive(*number);
        }
        sequence.take()
    }

    #[test]
    fn datagrams_in_order_are_only_counted() {
        let counted = SequenceCounts {
            datagrams: 4,
            ..SequenceCounts::default()
        };
        assert_eq!(count(&[0, 1, 2, 3]), counted);
    }

    /// RFC 4737, section 5.1 (sample 1): 1, 2, 3, 5, 4, 6: number 4 is reordered with extent 1.
    #[test]
    fn a_datagram_behind_one_later_datagram_has_extent_one() {
        let counted = count(&[0, 1, 2, 4, 3, 5]);
        assert_eq!((counted.reordered, counted.extent), (1, 1));
        assert_eq!((counted.lost(), counted.duplicates), (0, 0));
    }

    /// Arrival order 4 0 1 2 3: by RFC 4737 all four are reordered, with extents 1, 2, 3, 4.
    #[test]
    fn the_reordering_extent_counts_from_the_earliest_later_datagram() {
        let counted = count(&[4, 0, 1, 2, 3]);
        assert_eq!((counted.reordered, counted.extent), (4, 4));
        assert_eq!(counted.lost(), 0);
    }

    #[test]
    fn a_missing_datagram_is_lost_until_it_arrives_in_a_later_interval() {
        let mut sequence = Sequence::default();
        for number in [0, 1, 5] {
            sequence.arrive(number);
        }
        let first = sequence.take();
        assert_eq!((first.lost(), first.found()), (3, 0));
        assert_eq!(sequence.arrive(3), Arrival::Late);
        assert_eq!(sequence.arrive(3), Arrival::Duplicate);
        assert_eq!(sequence.arrive(5), Arrival::Duplicate);
        let second = sequence.take();
        assert_eq!((second.lost(), second.found()), (0, 1));
        assert_eq!((second.duplicates, second.reordered), (2, 1));
    }

    #[test]
    fn gap_memory_is_bounded_and_the_highest_sequence_number_is_accepted() {
        let mut sequence = Sequence::default();
        for number in 0..100_000 {
            sequence.arrive(number * 2);
        }
        assert_eq!(sequence.gaps.len(), MAX_GAPS);
        assert_eq!(sequence.arrive(1), Arrival::Late);
        sequence.arrive(u64::MAX);
        sequence.arrive(u64::MAX);
        assert_eq!(sequence.take().filled, 1);
    }

    /// Comparison with a simple implementation, for any order of few numbers.
    #[test]
    fn sequence_counts_match_a_reference_implementation() {
        let mut state = 88_172_645_463_325_252_u64;
        for _ in 0..2_000 {
            let numbers: Vec<u64> = (0..30)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state % 20
                })
                .collect();
            let (mut received, mut highest, mut late, mut duplicates) =
                (BTreeSet::new(), None, 0, 0);
            for number in &numbers {
                if !received.insert(*number) {
                    duplicates += 1;
                } else if highest.is_some_and(|highest| *number < highest) {
                    late += 1;
                }
                highest = highest.max(Some(*number));
            }
            let counted = count(&numbers);
            assert_eq!(counted.datagrams, received.len() as u64);
            assert_eq!((counted.reordered, counted.duplicates), (late, duplicates));
            let expected = highest.map_or(0, |highest| highest + 1);
            assert_eq!(
                counted.lost(),
                expected - received.len() as u64,
                "{numbers:?}"
            );
        }
    }
}
