//! What a server is asked to grant, and what happens at it.

use std::net::SocketAddr;

use neph_model::{BitRate, Span};

use super::trace::Trace;

/// What a server grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerCaps {
    /// Streams at the same time, of all clients together.
    pub streams: u16,
    /// The mean bit rates of these streams together; absent for no limit.
    pub rate: Option<BitRate>,
    /// How long a stream may last; then it is ended.
    pub duration: Span,
}

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Address and port of the RTSP connections.
    pub listen: SocketAddr,
    /// What it grants.
    pub caps: ServerCaps,
    /// The frames that it sends.
    pub trace: Trace,
}

/// What happened at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaServed {
    /// A stream begins.
    Began {
        /// The client's RTSP connection.
        peer: SocketAddr,
        /// Streams that are sent now, this one included.
        streams: u16,
    },
    /// A stream is over.
    Ended {
        /// The client's RTSP connection.
        peer: SocketAddr,
        /// What was sent.
        sent: Sent,
        /// Why it ended before the client asked for it.
        fault: Option<String>,
    },
    /// A stream was refused.
    Refused {
        /// The client's RTSP connection.
        peer: SocketAddr,
        /// Why.
        reason: String,
    },
}

/// What was sent of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// RTP packets.
    pub packets: u64,
    /// Their bytes, RTP headers included.
    pub bytes: u64,
    /// Packets that this host did not send: a full queue, or no buffers.
    pub refused: u64,
    /// Frames that were left out since the server was held up for more than a second.
    pub frames_left_out: u64,
    /// From the first packet on.
    pub lasted: Span,
}

impl ServerCaps {
    /// Whether one more stream of this rate may be sent beside so many.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn admit(&self, others: u16, rate: BitRate) -> Result<(), String> {
        if others >= self.streams {
            let most = self.streams;
            return Err(format!(
                "all {most} streams that this server grants are taken"
            ));
        }
        let all = rate.bits_per_second().saturating_mul(u64::from(others) + 1);
        match self.rate {
            Some(most) if all > most.bits_per_second() => Err(format!(
                "{} would be sent, this server grants {most}",
                BitRate(all)
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
        assert_eq!(refused, "all 3 streams that this server grants are taken");
    }
}
