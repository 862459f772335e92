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

use super::ask::Ask;
use super::interval::{CpuInterval, ReceivedInterval, SentInterval, StreamVariation};
use super::rr::{RrAsk, RrInterval};
use super::token::Token;

/// From the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum ClientMessage {
    /// The first one: a throughput test.
    Ask(Ask),
    /// The first one: a request/response test.
    AskRr(RrAsk),
    /// All streams are open: data may flow.
    Start,
    /// The client sends no more: its time is over, or it was stopped.
    End,
}

/// From the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The test may begin.
    Granted {
        /// For preambles and headers.
        token: Token,
    },
    /// It may not.
    Refused {
        /// One sentence.
        reason: String,
    },
    /// Each stream is open at the server too.
    Ready,
    /// The server counts and sends from now on.
    Started,
    /// What the server counted since the last time.
    Intervals(Intervals),
    /// There are no more intervals.
    Done,
    /// The test broke off at the server.
    Failed {
        /// One sentence.
        reason: String,
    },
}

/// What an end counted since it was last sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervals {
    /// Of streams that this end sends on.
    pub sent: Vec<SentInterval>,
    /// Of streams that this end receives.
    pub received: Vec<ReceivedInterval>,
    /// Of streams whose UDP data this end received to their end.
    pub variation: Vec<StreamVariation>,
    /// Of streams of a request/response test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanged: Vec<RrInterval>,
    /// Of this end's host.
    pub cpu: Vec<CpuInterval>,
}

impl Intervals {
    /// Whether there is nothing in it.
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

    /// Takes another's in.
    pub fn append(&mut self, mut other: Self) {
        self.sent.append(&mut other.sent);
        self.received.append(&mut other.received);
        self.variation.append(&mut other.variation);
        self.exchanged.append(&mut other.exchanged);
        self.cpu.append(&mut other.cpu);
    }
}
