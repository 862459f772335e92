//! Configuration, caps and events of a server.

use std::net::SocketAddr;

use neph_model::{BitRate, Permit, Span};

use super::job::Job;

/// Caps of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerCaps {
    /// Maximum duration of a test.
    pub duration: Span,
    /// Maximum number of streams per direction.
    pub streams: u16,
    /// Maximum rate per direction; absent: no limit.
    pub rate: Option<BitRate>,
}

impl ServerCaps {
    /// Whether a test is within the caps; the error is one sentence.
    pub(super) fn admit(&self, job: &Job) -> Result<(), String> {
        let duration = job.duration();
        if duration > self.duration {
            let max = self.duration;
            return Err(format!(
                "{duration} was requested, this server allows at most {max}"
            ));
        }
        if job.streams() > self.streams {
            let (requested, max) = (job.streams(), self.streams);
            return Err(format!(
                "{requested} streams were requested, this server allows at most {max}"
            ));
        }
        // A request/response test requests no rate: the cap is checked during the test.
        let (Some(max), Job::Throughput(test_request)) = (self.rate, job) else {
            return Ok(());
        };
        match test_request.rate_bit_s.map(BitRate) {
            Some(rate) if rate <= max => Ok(()),
            Some(rate) => Err(format!(
                "{rate} was requested, this server allows at most {max}"
            )),
            None => Err(format!(
                "the maximum rate was requested, this server allows at most {max}: give a rate"
            )),
        }
    }
}

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Listening address; port 0: a free one.
    pub listen: SocketAddr,
    /// Its caps.
    pub caps: ServerCaps,
    /// Pause of receivers before each read, to emulate busy ones.
    pub read_pause: Span,
    /// Limit of sent and received data.
    pub permit: Permit,
    /// Requests of request/response tests are polled without sleeping: each stream uses a whole
    /// core.
    pub busy_poll: bool,
}

/// Events of a server.
#[derive(Clone, Debug)]
pub enum ServedEvent {
    /// A test begins.
    Began {
        /// The client.
        peer: SocketAddr,
        /// The requested test.
        job: Job,
    },
    /// A test ended.
    Ended {
        /// The client.
        peer: SocketAddr,
        /// Why it broke off, if it did.
        fault: Option<String>,
    },
    /// A test was refused.
    Refused {
        /// The client.
        peer: SocketAddr,
        /// The reason, one sentence.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use neph_wire::throughput::{Direction, Protocol, RrKind, RrTestRequest, TestRequest, VERSION};

    use super::*;

    #[test]
    fn requests_above_a_cap_are_refused_with_the_cap() {
        let caps = ServerCaps {
            duration: Span::from_secs(60),
            streams: 4,
            rate: Some(BitRate(1_000_000_000)),
        };
        let test_request = TestRequest {
            version: VERSION,
            protocol: Protocol::Tcp,
            direction: Direction::Up,
            streams: 4,
            duration_ns: 60_000_000_000,
            rate_bit_s: Some(1_000_000_000),
            datagram_bytes: 1448,
            congestion: None,
            dscp: None,
        };
        let admit = |test_request: &TestRequest| caps.admit(&Job::Throughput(test_request.clone()));
        assert_eq!(admit(&test_request), Ok(()));
        let refused = |change: fn(&mut TestRequest)| {
            let mut changed_ask = test_request.clone();
            change(&mut changed_ask);
            admit(&changed_ask).expect_err("above the cap")
        };
        assert!(
            refused(|test_request| test_request.duration_ns += 1)
                .ends_with(&format!("this server allows at most {}", caps.duration))
        );
        assert!(
            refused(|test_request| test_request.streams = 5)
                .ends_with("this server allows at most 4")
        );
        let max = "this server allows at most 1 Gbit/s";
        assert!(
            refused(|test_request| test_request.rate_bit_s = Some(1_000_000_001)).ends_with(max)
        );
        assert!(refused(|test_request| test_request.rate_bit_s = None).ends_with(": give a rate"));
        let free = ServerCaps { rate: None, ..caps };
        let unlimited = TestRequest {
            rate_bit_s: None,
            ..test_request
        };
        assert_eq!(free.admit(&Job::Throughput(unlimited)), Ok(()));
        let rr = |streams, duration_ns| {
            let test_request = RrTestRequest {
                version: VERSION,
                kind: RrKind::UdpRr,
                streams,
                duration_ns,
                request_bytes: 16,
                reply_bytes: 16,
                dscp: None,
            };
            caps.admit(&Job::Rr(test_request))
        };
        assert_eq!(rr(4, 60_000_000_000), Ok(()));
        assert!(rr(5, 1).is_err_and(|why| why.ends_with("at most 4")));
        assert!(rr(4, 60_000_000_001).is_err());
    }
}
