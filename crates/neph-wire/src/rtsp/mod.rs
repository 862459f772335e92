//! RTSP 1.0 messages (RFC 2326), as far as a stream over UDP needs them.
//!
//! Owns OPTIONS, DESCRIBE, SETUP, PLAY, `GET_PARAMETER` and TEARDOWN, the headers Transport,
//! Session and RTP-Info, and SDP (RFC 4566). Refuses data interleaved with RTSP over TCP (section
//! 10.12). Does not own connections or state.

mod inbox;
mod message;
mod sdp;
mod session;
#[cfg(test)]
mod tests;
mod transport;
mod url;

pub use inbox::{Inbox, MAX_BODY, MAX_FIELDS, MAX_HEAD};
pub use message::{Headers, Message, Method, Request, Response};
pub use sdp::{Media, Sdp};
pub use session::{RtpInfo, SessionId};
pub use transport::{PortPair, Transport};
pub use url::{PORT, Url};

use thiserror::Error;

/// Why bytes are no RTSP message, or a text cannot be part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RtspError {
    /// The first line is no request line and no status line of RTSP/1.0.
    #[error("read rtsp message: the first line is no request and no status of RTSP/1.0")]
    FirstLine,
    /// A line of the head is no `Name: value`.
    #[error("read rtsp message: a line of the head is no 'Name: value'")]
    Field,
    /// The head does not end within this many bytes.
    #[error("read rtsp message: the head is longer than {0} bytes")]
    HeadTooLong(usize),
    /// More fields than this.
    #[error("read rtsp message: more than {0} fields in the head")]
    TooManyFields(usize),
    /// The body exceeds this many bytes, or Content-Length is no number or repeated.
    #[error("read rtsp message: Content-Length is not one number of at most {0}")]
    BodyLength(usize),
    /// Binary data interleaved with RTSP.
    #[error("read rtsp message: the peer sends media over the RTSP connection")]
    Interleaved,
    /// A text to write has a control character, or a space in the wrong place.
    #[error("write rtsp message: a field holds a character that may not be in a head")]
    Text,
    /// No RTSP URL.
    #[error("write rtsp://host[:port][/path], without user and password")]
    Url,
}
