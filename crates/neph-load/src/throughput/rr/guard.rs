//! Counts a server's stream, and ends it without a stop in case of a fault.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};

use neph_model::{BitRate, Permit, Span, Stop};
use neph_sys::clock::{self, RawNanos};
use neph_wire::throughput::RrTestRequest;

use super::super::served::ServerSpec;
use super::recorder::Recorder;

/// A stream without a request for this long ends the test.
const IDLE_TIMEOUT: Span = Span::from_secs(60);
/// How long after the end of the test a client may still send requests.
const END_MARGIN: Span = Span::from_secs(30);
/// Requests per reading of the clock: exact times are not needed here.
const REQUESTS_PER_CLOCK_READ: u64 = 8;
/// Interval over which a rate is checked.
const RATE_WINDOW: Span = Span::from_secs(1);

/// Belongs to the thread of a stream.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    pub(super) recorder: Recorder<'a>,
    pub(super) busy_poll: bool,
    permit: Permit,
    /// Payload of a request and its reply.
    transaction_bytes: u64,
    /// When the client must have ended the test.
    ends_at: RawNanos,
    /// Time of the last request of this stream, or of all: any thread may accept the next
    /// connection.
    last_request: RawNanos,
    last_request_of_all: Option<&'a AtomicI64>,
    rate: Option<Rate>,
    /// Requests since the last reading of the clock.
    uncounted: u64,
}

impl<'a> Guard<'a> {
    /// Starts now.
    pub(super) fn new(
        test_request: &RrTestRequest,
        spec: &ServerSpec,
        recorder: Recorder<'a>,
    ) -> Self {
        let duration =
            Span::from_nanos(i64::try_from(test_request.duration_ns).unwrap_or(i64::MAX / 2));
        let now = clock::raw();
        let rate = spec.caps.rate.map(|allowed| Rate {
            allowed,
            streams: test_request.streams,
            each: test_request
                .request_bytes
                .max(test_request.reply_bytes)
                .into(),
            from: now,
            bytes: 0,
        });
        Self {
            ends_at: recorder.moment(duration + END_MARGIN),
            busy_poll: spec.busy_poll,
            permit: spec.permit.clone(),
            transaction_bytes: u64::from(test_request.request_bytes)
                + u64::from(test_request.reply_bytes),
            last_request: now,
            last_request_of_all: None,
            rate,
            uncounted: 0,
            recorder,
        }
    }

    /// Shares the time of the last request: a request of any of these streams counts for all.
    pub(super) const fn share(&mut self, last_request: &'a AtomicI64) {
        self.last_request_of_all = Some(last_request);
    }

    /// Counts an answered request.
    #[inline]
    pub(super) fn answered(&mut self) -> io::Result<()> {
        self.recorder.count();
        self.uncounted += 1;
        if self.uncounted < REQUESTS_PER_CLOCK_READ {
            return Ok(());
        }
        self.read(clock::raw())
    }

    /// Whether the permit allows a transaction; if so, its request and its reply are deducted.
    #[inline]
    pub(super) fn take_permit(&self) -> bool {
        self.permit.is_unlimited() || self.permit.message(self.transaction_bytes, clock::raw().0)
    }

    /// Waits until a reply is allowed; false after a stop.
    pub(super) fn await_permit(&mut self, stop: &Stop) -> io::Result<bool> {
        while !self.take_permit() {
            if stop.is_set() {
                return Ok(false);
            }
            self.idle(clock::raw())?;
            clock::nap(Permit::REST.to_duration());
        }
        Ok(true)
    }

    /// Processes the requests since the last reading of the clock.
    fn read(&mut self, now: RawNanos) -> io::Result<()> {
        let requests = std::mem::take(&mut self.uncounted);
        self.last_request = now;
        if let Some(last_request) = self.last_request_of_all {
            last_request.store(now.0, Ordering::Relaxed);
        }
        self.recorder.tick(now);
        self.check_end_time(now)?;
        let Some(rate) = &mut self.rate else {
            return Ok(());
        };
        rate.add(requests, now)
    }

    /// Called after a time without requests.
    pub(super) fn idle(&mut self, now: RawNanos) -> io::Result<()> {
        if self.uncounted > 0 {
            self.read(now)?;
        }
        self.recorder.tick(now);
        let of_all = self
            .last_request_of_all
            .map(|shared| shared.load(Ordering::Relaxed));
        let last_request = of_all.unwrap_or(self.last_request.0);
        if Span::from_nanos(now.0 - last_request) >= IDLE_TIMEOUT {
            return Err(io::Error::other(format!(
                "no request came for {IDLE_TIMEOUT}"
            )));
        }
        self.check_end_time(now)
    }

    /// Ends a client that continues after the end of its test.
    fn check_end_time(&self, now: RawNanos) -> io::Result<()> {
        if now >= self.ends_at {
            let late = format!("the client did not end the test {END_MARGIN} after its time");
            return Err(io::Error::other(late));
        }
        Ok(())
    }
}

/// The server's rate cap of a direction, checked each second.
#[derive(Debug)]
struct Rate {
    allowed: BitRate,
    streams: u16,
    each: u64,
    from: RawNanos,
    bytes: u64,
}

impl Rate {
    fn add(&mut self, requests: u64, now: RawNanos) -> io::Result<()> {
        let more = self.each.saturating_mul(requests);
        self.bytes = self.bytes.saturating_add(more);
        let passed = now.0 - self.from.0;
        if passed < RATE_WINDOW.nanos() {
            return Ok(());
        }
        let bits = u128::from(self.bytes) * 8 * u128::from(self.streams) * 1_000_000_000;
        if bits > u128::from(self.allowed.bits_per_second()) * u128::from(passed.unsigned_abs()) {
            return Err(io::Error::other(format!(
                "its payload is more than the {} that this server allows",
                self.allowed
            )));
        }
        (self.from, self.bytes) = (now, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_above_the_cap_is_found_after_a_second_and_one_below_never() {
        let rate = |streams, each| Rate {
            allowed: BitRate(8_000_000),
            streams,
            each,
            from: RawNanos(0),
            bytes: 0,
        };
        let first_violation = |mut rate: Rate| {
            (1..=5_000_i64).find(|milli| rate.add(1, RawNanos(milli * 1_000_000)).is_err())
        };
        // 1,000 transactions per second.
        assert_eq!(first_violation(rate(1, 1_000)), None);
        assert_eq!(first_violation(rate(1, 1_001)), Some(1_000));
        assert_eq!(first_violation(rate(2, 600)), Some(1_000));
    }
}
