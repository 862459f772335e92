//! A small transfer on a chosen source port: the time that an application waits on one flow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ByteSize, Instant, Local, Span};

/// One transfer on its own TCP connection, from a given local port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourcePortTransfer {
    /// Local source port; with the peer's address it identifies the flow.
    pub source_port: u16,
    /// Pass over the ports, from 0.
    pub pass: u32,
    /// When neph began to connect, nanoseconds on the client's monotonic clock.
    pub begun: Instant<Local>,
    /// Outcome of the transfer.
    pub outcome: SourcePortOutcome,
}

/// The outcome of a transfer. A failure is an outcome, never a zero or a missing row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourcePortOutcome {
    /// The complete reply arrived.
    Done {
        /// Time from the beginning until the connection was established, nanoseconds.
        connect: Span,
        /// Time from the beginning until neph had the reply's last byte, nanoseconds.
        #[serde(alias = "whole")]
        total: Span,
    },
    /// The transfer failed, with the reason.
    Failed(String),
}

/// A transfer on the source port of a flow, and the latency class of its path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassTransfer {
    /// Index of the endpoint in the fleet, from 0.
    pub endpoint: usize,
    /// Latency class of its path, by its connect time: 0 has the lowest latency. If the connect
    /// time shows no other class, that of the flow at the end of the measurement.
    pub class: usize,
    /// Requested size in bytes.
    pub size: ByteSize,
    /// The transfer.
    pub transfer: SourcePortTransfer,
}

impl SourcePortTransfer {
    /// Time from the beginning to the reply's last byte, connecting included.
    pub const fn total(&self) -> Option<Span> {
        match self.outcome {
            SourcePortOutcome::Done { total, .. } => Some(total),
            SourcePortOutcome::Failed(_) => None,
        }
    }

    /// Time to connect.
    pub const fn connect(&self) -> Option<Span> {
        match self.outcome {
            SourcePortOutcome::Done { connect, .. } => Some(connect),
            SourcePortOutcome::Failed(_) => None,
        }
    }

    /// Why it failed, if it failed.
    pub fn failure(&self) -> Option<&str> {
        match &self.outcome {
            SourcePortOutcome::Done { .. } => None,
            SourcePortOutcome::Failed(reason) => Some(reason),
        }
    }

    /// Time from the established connection to the reply's last byte: the time on a persistent
    /// connection.
    pub fn without_connect(&self) -> Option<Span> {
        Some(self.total()? - self.connect()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_and_transfer_time_add_up_to_the_total() {
        let outcome = SourcePortOutcome::Done {
            connect: Span::from_millis(10),
            total: Span::from_millis(21),
        };
        let mut transfer = SourcePortTransfer {
            source_port: 40_000,
            pass: 0,
            begun: Instant::from_nanos(5),
            outcome,
        };
        assert_eq!(transfer.without_connect(), Some(Span::from_millis(11)));
        assert_eq!(transfer.failure(), None);
        transfer.outcome = SourcePortOutcome::Failed("refused".to_owned());
        assert_eq!((transfer.total(), transfer.without_connect()), (None, None));
        assert_eq!(transfer.failure(), Some("refused"));
    }
}
