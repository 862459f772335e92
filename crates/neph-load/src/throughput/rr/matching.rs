//! Which request of a stream a datagram answers: a state without I/O.

use std::collections::VecDeque;

/// Number of remembered lost transactions, to distinguish late replies from duplicates.
const MAX_REMEMBERED: usize = 4_096;

/// Meaning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Of the outstanding transaction, which it ends.
    Reply,
    /// Of a lost transaction.
    Late,
    /// Of a transaction that already had its reply.
    Duplicate,
    /// Of no transaction.
    Foreign,
}

/// The transactions of one stream: numbered from 1, one outstanding at a time.
#[derive(Debug)]
pub(super) struct Matching {
    /// The last started one.
    current: u64,
    is_outstanding: bool,
    /// Lost ones without a late reply, in ascending order: the most recent of them.
    lost: VecDeque<u64>,
    /// Lost ones up to this number are forgotten.
    forgotten: u64,
}

impl Matching {
    /// Without transactions.
    pub(super) fn new() -> Self {
        Self {
            current: 0,
            is_outstanding: false,
            lost: VecDeque::with_capacity(MAX_REMEMBERED),
            forgotten: 0,
        }
    }

    /// Begins the next transaction; returns its number.
    #[inline]
    pub(super) const fn begin(&mut self) -> u64 {
        self.current += 1;
        self.is_outstanding = true;
        self.current
    }

    /// Marks the outstanding transaction as lost.
    pub(super) fn lose(&mut self) {
        if !std::mem::take(&mut self.is_outstanding) {
            return;
        }
        if self.lost.len() == MAX_REMEMBERED
            && let Some(oldest) = self.lost.pop_front()
        {
            self.forgotten = oldest;
        }
        self.lost.push_back(self.current);
    }

    /// Processes a reply with this number.
    #[inline]
    pub(super) fn arrive(&mut self, number: u64) -> Arrival {
        if number == self.current && self.is_outstanding {
            self.is_outstanding = false;
            return Arrival::Reply;
        }
        self.arrive_otherwise(number)
    }

    fn arrive_otherwise(&mut self, number: u64) -> Arrival {
        if number == 0 || number > self.current {
            return Arrival::Foreign;
        }
        if let Ok(index) = self.lost.binary_search(&number) {
            self.lost.remove(index);
            return Arrival::Late;
        }
        // Unknown for a forgotten number; a reply this old is late.
        if number <= self.forgotten {
            return Arrival::Late;
        }
        Arrival::Duplicate
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_late_reply_is_never_taken_for_another_transactions_reply() {
        let mut matching = Matching::new();
        assert_eq!(matching.begin(), 1);
        matching.lose();
        assert_eq!(matching.begin(), 2);
        assert_eq!(matching.arrive(1), Arrival::Late);
        assert_eq!(matching.arrive(1), Arrival::Duplicate);
        assert_eq!(matching.arrive(2), Arrival::Reply);
        assert_eq!(matching.arrive(2), Arrival::Duplicate);
        assert_eq!(matching.arrive(3), Arrival::Foreign);
        assert_eq!(matching.arrive(0), Arrival::Foreign);
    }

    #[test]
    fn only_outstanding_transactions_can_be_lost() {
        let mut matching = Matching::new();
        matching.lose();
        assert_eq!(matching.begin(), 1);
        assert_eq!(matching.arrive(1), Arrival::Reply);
        matching.lose();
        assert_eq!(matching.arrive(1), Arrival::Duplicate);
    }

    #[test]
    fn memory_is_bounded_for_any_number_of_lost_transactions() {
        let mut matching = Matching::new();
        let room = matching.lost.capacity();
        for _ in 0..MAX_REMEMBERED + 10 {
            matching.begin();
            matching.lose();
        }
        assert_eq!(matching.lost.capacity(), room);
        assert_eq!(matching.arrive(10), Arrival::Late);
        assert_eq!(matching.arrive(11), Arrival::Late);
        assert_eq!(matching.arrive(11), Arrival::Duplicate);
    }

    proptest! {
        /// Any order of starts, losses and arrivals, compared with a list of the outcomes.
        #[test]
        fn each_transaction_has_at_most_one_reply_and_each_reply_one_class(
            steps in prop::collection::vec(0_u64..12, 1..300),
        ) {
            let mut matching = Matching::new();
            // By number: outstanding, lost, or replied in time or late.
            let mut states = vec![' '];
            for step in steps {
                let last = states.len() - 1;
                match step {
                    0 if states[last] != 'o' => {
                        prop_assert_eq!(matching.begin(), last as u64 + 1);
                        states.push('o');
                    }
                    1 => {
                        matching.lose();
                        if states[last] == 'o' {
                            states[last] = 'l';
                        }
                    }
                    back => {
                        let number = (last as u64 + 3).saturating_sub(back);
                        let state = states.get_mut(usize::try_from(number).expect("small"));
                        let expected = match state {
                            Some(state) if *state == 'o' => {
                                *state = 'r';
                                Arrival::Reply
                            }
                            Some(state) if *state == 'l' => {
                                *state = 'r';
                                Arrival::Late
                            }
                            Some(state) if *state == 'r' => Arrival::Duplicate,
                            _ => Arrival::Foreign,
                        };
                        prop_assert_eq!(matching.arrive(number), expected);
                    }
                }
            }
        }
    }
}
