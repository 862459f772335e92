//! A token bucket that several threads take from without a lock.

use std::sync::atomic::{AtomicI64, Ordering};

/// How far ahead of the rate a burst may be, nanoseconds.
const BURST: i64 = 100_000_000;
const SECOND: u128 = 1_000_000_000;

/// A rate that is valid over any time, except for a burst of a tenth of a second's worth. Times are
/// nanoseconds of one monotonic clock.
#[derive(Debug)]
pub struct TokenBucket {
    /// Tokens a second; at least 1.
    rate: u64,
    /// The time at which the tokens taken until now would be complete at the rate.
    taken_until: AtomicI64,
}

impl TokenBucket {
    /// A full bucket with this number of tokens per second, at least 1.
    pub fn new(rate: u64) -> Self {
        Self {
            rate: rate.max(1),
            taken_until: AtomicI64::new(i64::MIN),
        }
    }

    /// The time for this number of tokens at the rate, nanoseconds, rounded up.
    fn token_time(&self, tokens: u64) -> i64 {
        let nanos = (u128::from(tokens) * SECOND).div_ceil(u128::from(self.rate));
        i64::try_from(nanos).unwrap_or(i64::MAX)
    }

    /// Takes tokens if they are available. More tokens than a burst are given if the bucket is
    /// full, so that a large message is late and not impossible.
    pub fn take(&self, tokens: u64, now: i64) -> bool {
        let token_time = self.token_time(tokens);
        let latest_start = now + (BURST - token_time).max(0);
        let taken = self
            .taken_until
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
                let from = until.max(now);
                (from <= latest_start).then(|| from.saturating_add(token_time))
            });
        taken.is_ok()
    }

    /// Returns tokens that were taken and not used.
    pub(super) fn give_back(&self, tokens: u64) {
        let token_time = self.token_time(tokens);
        self.taken_until.fetch_sub(token_time, Ordering::Relaxed);
    }

    /// The number of available tokens; [`Self::spend`] may take them afterwards.
    pub(super) fn room(&self, now: i64) -> u64 {
        let until = self.taken_until.load(Ordering::Relaxed).max(now);
        let available_nanos = u128::try_from(BURST - (until - now).min(BURST)).unwrap_or(0);
        u64::try_from(available_nanos * u128::from(self.rate) / SECOND).unwrap_or(u64::MAX)
    }

    /// Takes tokens that were used, as many as are available.
    pub(super) fn spend_within_burst(&self, tokens: u64, now: i64) {
        self.spend(tokens.min(self.room(now)), now);
    }

    /// Takes tokens that were used, available or not.
    pub(super) fn spend(&self, tokens: u64, now: i64) {
        let token_time = self.token_time(tokens);
        // It never refuses.
        let _ = self
            .taken_until
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |until| {
                Some(until.max(now).saturating_add(token_time))
            });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_above_the_burst_size_is_sent_from_a_full_bucket_and_charged() {
        let bucket = TokenBucket::new(1_000);
        assert!(bucket.take(5_000, 0), "it would never go otherwise");
        assert!(!bucket.take(1, 4_800_000_000));
        assert!(bucket.take(1, 5_000_000_000));
    }

    proptest! {
        #[test]
        fn no_window_exceeds_the_rate_and_one_burst(
            rate in 10_u64..1_000_000,
            steps in prop::collection::vec((0_i64..300_000_000, 1_u64..400), 1..300),
        ) {
            let bucket = TokenBucket::new(rate);
            let mut now = 0;
            let mut sent_messages: Vec<(i64, u64)> = Vec::new();
            for (step, tokens) in steps {
                now += step;
                if bucket.take(tokens, now) {
                    sent_messages.push((now, tokens));
                }
            }
            let burst = (rate / 10).max(400);
            for first in 0..sent_messages.len() {
                let mut sum = 0;
                for (at, tokens) in &sent_messages[first..] {
                    sum += tokens;
                    let window = u64::try_from(at - sent_messages[first].0).expect("forwards");
                    let allowed = u128::from(window) * u128::from(rate) / 1_000_000_000
                        + u128::from(burst) + 1;
                    prop_assert!(u128::from(sum) <= allowed, "{sum} in {window} ns at {rate}");
                }
            }
        }

        #[test]
        fn spending_all_available_room_keeps_the_rate(rate in 1_000_u64..1_000_000_000) {
            let bucket = TokenBucket::new(rate);
            let mut sum = 0;
            for step in 0..1_000 {
                let now = step * 1_000_000;
                let room = bucket.room(now);
                bucket.spend(room, now);
                sum += room;
            }
            let allowed = u128::from(rate) * 1_099 / 1_000;
            prop_assert!(u128::from(sum) <= allowed + 1, "{sum} of {allowed}");
            prop_assert!(u128::from(sum) * 100 >= allowed * 98, "{sum} of {allowed}");
        }
    }
}
