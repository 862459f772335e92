//! The events at a media server, as NDJSON lines.

use neph_load::media::MediaServed;
use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

use crate::reflector::PrivilegesDocument;

/// An NDJSON line of a media server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServedLine {
    /// The server listens.
    Listening {
        /// Address and port of RTSP.
        address: String,
        /// Privileges of the process.
        privileges: PrivilegesDocument,
    },
    /// A stream began.
    Began {
        /// Address and port of the client.
        peer: String,
        /// Number of streams that are sent now, this one included.
        streams: u16,
    },
    /// A stream ended.
    Ended {
        /// Address and port of the client.
        peer: String,
        /// RTP packets sent.
        packets: u64,
        /// Bytes sent, RTP headers included.
        sent_bytes: u64,
        /// Packets that the server host did not send.
        refused_packets: u64,
        /// Frames that were skipped because the server was delayed by more than a second.
        frames_skipped: u64,
        /// Duration since the first packet.
        lasted_ns: Span,
        /// Why it ended early; null if the client ended it.
        fault: Option<String>,
    },
    /// A stream was refused.
    Refused {
        /// Address and port of the client.
        peer: String,
        /// Why it was refused.
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
                frames_skipped: sent.frames_left_out,
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
