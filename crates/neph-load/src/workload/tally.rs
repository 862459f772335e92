//! Counts of requests in a period: a second, or the measured time.
//!
//! Owns how they add up: counts and histograms, never averages of percentiles.

use std::collections::BTreeMap;

use neph_model::Span;
use serde::{Deserialize, Serialize};

use super::failure::RequestFailure;
use crate::durations::{DurationQuantile, Durations};

/// Counts of requests. Tallies of threads, generators and seconds can be merged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests whose intended time came.
    pub due: u64,
    /// Requests among them that this host took up later than the bound.
    pub late: u64,
    /// Time from the intended time until this host took the request up.
    pub lateness: Durations,
    /// Requests among them that had to wait for a connection.
    pub waited: u64,
    /// Requests that were sent, without repetitions.
    pub sent: u64,
    /// Requests that neph repeated because the peer closed their idle connection.
    pub retries: u64,
    /// Opened connections; of the measured time, those of the warm-up, too.
    pub connections: u64,
    /// Complete responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a complete response, by reason.
    pub failures: BTreeMap<RequestFailure, u64>,
    /// Bytes of requests.
    pub sent_bytes: u64,
    /// Bytes of responses.
    pub received_bytes: u64,
    /// Time from sending to the response; successful responses only.
    pub service: Durations,
    /// Time from the intended time to the response; successful responses only.
    pub response: Durations,
    /// CPU time of the threads.
    pub cpu: Span,
}

impl Tally {
    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.late += other.late;
        self.lateness.merge(&other.lateness);
        self.waited += other.waited;
        self.sent += other.sent;
        self.retries += other.retries;
        self.connections += other.connections;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (failure, count) in &other.failures {
            *self.failures.entry(*failure).or_default() += count;
        }
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.cpu += other.cpu;
    }

    /// Responses with a status of success (below 400).
    pub fn successes(&self) -> u64 {
        self.response.count()
    }

    /// Responses with a status of an error (400 and above).
    pub fn error_responses(&self) -> u64 {
        let errors = self.statuses.range(400..);
        errors.map(|(_, count)| count).sum()
    }

    /// Requests without a complete response.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Requests without success: failures, and responses with a status of an error.
    pub fn unsuccessful(&self) -> u64 {
        self.failed() + self.error_responses()
    }

    /// Requests with an outcome.
    pub fn ended(&self) -> u64 {
        self.successes() + self.unsuccessful()
    }

    /// The quantile `permille`/1000 of response times. A request without success counts as slower than
    /// every success.
    pub fn response_quantile(&self, permille: u32) -> DurationQuantile {
        self.response.quantile(permille, self.unsuccessful())
    }

    /// As [`Self::response_quantile`], of service times.
    pub fn service_quantile(&self, permille: u32) -> DurationQuantile {
        self.service.quantile(permille, self.unsuccessful())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsuccessful_requests_count_as_slower_than_every_success() {
        let mut tally = Tally::default();
        for nanos in 1..=290 {
            tally.response.add(nanos);
            *tally.statuses.entry(200).or_default() += 1;
        }
        tally.statuses.insert(503, 6);
        tally.failures.insert(RequestFailure::TimedOut, 4);
        assert_eq!((tally.successes(), tally.unsuccessful()), (290, 10));
        assert_eq!(tally.response_quantile(990), DurationQuantile::Lost);
        let median = tally.response_quantile(500).time();
        assert_eq!(median, Some(Span::from_nanos(150)));
        let mut both = tally.clone();
        both.merge(&tally);
        assert_eq!((both.ended(), both.error_responses()), (600, 12));
        assert_eq!(both.response_quantile(500).time(), median);
    }
}
