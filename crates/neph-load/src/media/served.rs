//! Configuration and events of a server.

use std::net::SocketAddr;

use neph_model::{BitRate, Span};

use super::trace::Trace;

/// Caps of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerCaps {
    /// Concurrent streams of all clients.
    pub streams: u16,
    /// Total of their mean bit rates; absent: no limit.
    pub rate: Option<BitRate>,
    /// Maximum duration of a stream; then the server ends it.
    pub duration: Span,
}

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Address and port for RTSP connections.
    pub listen: SocketAddr,
    /// Its caps.
    pub caps: ServerCaps,
    /// The frames that it sends.
    pub trace: Trace,
}

/// Events of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaServed {
    /// A stream begins.
    Began {
        /// The client's RTSP connection.
        peer: SocketAddr,
        /// Number of active streams, including this one.
        streams: u16,
    },
    /// A stream ended.
    Ended {
        /// The client's RTSP connection.
        peer: SocketAddr,
        /// The sent packets.
        sent: SentStatistics,
        /// Why it ended before the client requested it.
        fault: Option<String>,
    },
    /// A stream was refused.
    Refused {
        /// The client's RTSP connection.
        peer: SocketAddr,
        /// The reason.
        reason: String,
    },
}

/// The sent part of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentStatistics {
    /// RTP packets.
    pub packets: u64,
    /// Their bytes, RTP headers included.
    pub bytes: u64,
    /// Packets that this host could not send: a full queue, or no buffers.
    pub refused: u64,
    /// Frames that were skipped because the server was more than a second late.
    pub frames_left_out: u64,
    /// Time from the first packet on.
    pub lasted: Span,
}

impl ServerCaps {
    /// Whether the caps allow one more stream of this rate in addition to `others`.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(super) fn admit(&self, others: u16, rate: BitRate) -> Result<(), String> {
        if others >= self.streams {
            let max = self.streams;
            return Err(format!(
                "all {max} streams that this server allows are in use"
            ));
        }
        let total_rate = rate.bits_per_second().saturating_mul(u64::from(others) + 1);
        match self.rate {
            Some(max) if total_rate > max.bits_per_second() => Err(format!(
                "{} would be sent, this server grants {max}",
                BitRate(total_rate)
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_granted_up_to_the_number_and_the_rate() {
        let caps = ServerCaps {
            streams: 3,
            rate: Some(BitRate(2_000_000)),
            duration: Span::from_secs(60),
        };
        let rate = BitRate(957_000);
        assert_eq!(caps.admit(1, rate), Ok(()));
        let refused = caps.admit(2, rate).expect_err("above the rate");
        assert!(
            refused.ends_with("this server grants 2 Mbit/s"),
            "{refused}"
        );
        let free = ServerCaps { rate: None, ..caps };
        assert_eq!(free.admit(2, rate), Ok(()));
        let refused = free.admit(3, rate).expect_err("above the number");
        assert_eq!(refused, "all 3 streams that this server allows are in use");
    }
}
