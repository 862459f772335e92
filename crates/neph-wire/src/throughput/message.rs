//! The messages of the control connection.
//!
//! ```text
//! client: ask | ask_rr server: granted | refused
//! client: (connects its streams)       ready
//! client: start                        started
//!                                      intervals ...
//! client: end                          intervals, done
//! ```

use serde::{Deserialize, Serialize};

use super::interval::{CpuInterval, ReceivedInterval, SentInterval, StreamVariation};
use super::rr::{RrInterval, RrTestRequest};
use super::test_request::TestRequest;
use super::token::Token;

/// A message of the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum ClientMessage {
    /// First message: a throughput test.
    Ask(TestRequest),
    /// First message: a request/response test.
    AskRr(RrTestRequest),
    /// All streams are open: data may be sent.
    Start,
    /// The client has stopped sending, at the end of the test or earlier.
    End,
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The test is accepted.
    Granted {
        /// The token for preambles and headers.
        token: Token,
    },
    /// The test is refused.
    Refused {
        /// The reason, one sentence.
        reason: String,
    },
    /// All streams are open at the server, too.
    Ready,
    /// The server now counts and sends.
    Started,
    /// The server's counters since the last message.
    Intervals(Intervals),
    /// No more intervals follow.
    Done,
    /// The test failed at the server.
    Failed {
        /// The reason, one sentence.
        reason: String,
    },
}

/// The counters of one end since its last message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervals {
    /// Sending streams of this end.
    pub sent: Vec<SentInterval>,
    /// Receiving streams of this end.
    pub received: Vec<ReceivedInterval>,
    /// Streams with completely received UDP data.
    pub variation: Vec<StreamVariation>,
    /// Streams of a request/response test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanged: Vec<RrInterval>,
    /// CPU time of this end's host.
    pub cpu: Vec<CpuInterval>,
}

impl Intervals {
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        let Self {
            sent,
            received,
            variation,
            exchanged,
            cpu,
        } = self;
        let is_moved = !sent.is_empty() || !received.is_empty() || !variation.is_empty();
        !is_moved && exchanged.is_empty() && cpu.is_empty()
    }

    /// Appends another's counters.
    pub fn append(&mut self, mut other: Self) {
        self.sent.append(&mut other.sent);
        self.received.append(&mut other.received);
        self.variation.append(&mut other.variation);
        self.exchanged.append(&mut other.exchanged);
        self.cpu.append(&mut other.cpu);
    }
}
