//! What happens at a media server, as lines of NDJSON.

use neph_load::media::MediaServed;
use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

use crate::reflected::PrivilegesDocument;

/// A line of NDJSON of a media server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServedLine {
    /// It listens.
    Listening {
        /// The address and port of RTSP.
        address: String,
        /// The privileges that it has.
        privileges: PrivilegesDocument,
    },
    /// A stream begins.
    Began {
        /// The client's address and port.
        peer: String,
        /// Streams that are sent now, this one included.
        streams: u16,
    },
    /// A stream is over.
    Ended {
        /// The client's address and port.
        peer: String,
        /// RTP packets that were sent.
        packets: u64,
        /// Their bytes, RTP headers included.
        sent_bytes: u64,
        /// Packets that this host did not send.
        refused_packets: u64,
        /// Frames that were left out since the server was held up for more than a second.
        frames_left_out: u64,
        /// From the first packet on, in nanoseconds.
        lasted_ns: Span,
        /// Why it ended before the client asked for it; null where the client did.
        fault: Option<String>,
    },
    /// A stream was refused.
    Refused {
        /// The client's address and port.
        peer: String,
        /// Why.
        reason: String,
    },
}

impl From<MediaServed> for ServedLine {
    fn from(event: MediaServed) -> Self {
        match event {
            MediaServed::Began { peer, streams } => Self::Began {
                peer: peer.to_string(),
                streams,
            },
            MediaServed::Ended { peer, sent, fault } => Self::Ended {
                peer: peer.to_string(),
                packets: sent.packets,
                sent_bytes: sent.bytes,
                refused_packets: sent.refused,
                frames_left_out: sent.frames_left_out,
                lasted_ns: sent.lasted,
                fault,
            },
            MediaServed::Refused { peer, reason } => Self::Refused {
                peer: peer.to_string(),
                reason,
            },
        }
    }
}
