//! A small transfer on a source port that was chosen: how long an application waits on one flow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ByteSize, Instant, Own, Span};

/// One transfer over a TCP connection of its own, from a given port of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PinnedTransfer {
    /// Our port: with the peer's address it says which flow this was.
    pub source_port: u16,
    /// Which pass over the ports it belongs to, from 0.
    pub pass: u32,
    /// When the program began to connect.
    pub begun: Instant<Own>,
    /// What became of it.
    pub outcome: PinnedOutcome,
}

/// How a transfer ended. A failure is an outcome, never a zero or a missing row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PinnedOutcome {
    /// The reply came whole.
    Done {
        /// From there until the connection stood, as the program saw it.
        connect: Span,
        /// From there until the program had the reply's last byte.
        whole: Span,
    },
    /// It did not come, and why.
    Failed(String),
}

/// A transfer on the port of a flow, and the latency class whose path it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassTransfer {
    /// Whom it went to: the place among the fleet's endpoints, from 0.
    pub endpoint: usize,
    /// The latency class of its path, by its connect time: 0 has the lowest latency. That of the flow
    /// at the end of the measurement where the connect time shows no other.
    pub class: usize,
    /// What was asked for.
    pub size: ByteSize,
    /// The transfer.
    pub transfer: PinnedTransfer,
}

impl PinnedTransfer {
    /// From the beginning to the reply's last byte, connecting included.
    pub const fn whole(&self) -> Option<Span> {
        match self.outcome {
            PinnedOutcome::Done { whole, .. } => Some(whole),
            PinnedOutcome::Failed(_) => None,
        }
    }

    /// How long connecting took.
    pub const fn connect(&self) -> Option<Span> {
        match self.outcome {
            PinnedOutcome::Done { connect, .. } => Some(connect),
            PinnedOutcome::Failed(_) => None,
        }
    }

    /// Why it did not come whole, if it did not.
    pub fn failure(&self) -> Option<&str> {
        match &self.outcome {
            PinnedOutcome::Done { .. } => None,
            PinnedOutcome::Failed(why) => Some(why),
        }
    }

    /// From the connection's standing to the reply's last byte: what a connection that is kept
    /// open would have taken.
    pub fn without_connect(&self) -> Option<Span> {
        Some(self.whole()? - self.connect()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connecting_and_the_rest_are_the_whole() {
        let outcome = PinnedOutcome::Done {
            connect: Span::from_millis(10),
            whole: Span::from_millis(21),
        };
        let mut transfer = PinnedTransfer {
            source_port: 40_000,
            pass: 0,
            begun: Instant::from_nanos(5),
            outcome,
        };
        assert_eq!(transfer.without_connect(), Some(Span::from_millis(11)));
        assert_eq!(transfer.failure(), None);
        transfer.outcome = PinnedOutcome::Failed("refused".to_owned());
        assert_eq!((transfer.whole(), transfer.without_connect()), (None, None));
        assert_eq!(transfer.failure(), Some("refused"));
    }
}
