//! WebSocket (RFC 6455): frames, masks, whole messages, close codes and the opening handshake.
//!
//! Owns the bytes of the protocol for both ends. Does not own sockets, TLS, random mask keys (the
//! caller passes them) or extensions: none is offered, so a reserved bit is an error.

mod assembler;
mod close;
mod handshake;
mod header;
mod mask;

pub use assembler::{Assembler, Event, Kind, Role, Step};
pub use close::{Close, CloseCode, encode_close};
pub use handshake::{
    HandshakeError, UpgradeRequest, accept_key, check_request, check_response, client_key,
    server_response,
};
pub use header::{Fin, FrameHeader, MAX_HEADER, Opcode, encode_frame, encode_header, parse_header};
pub use mask::mask_in_place;

use thiserror::Error;

/// Why a peer's bytes violate RFC 6455 or a limit. The connection is unusable then: send
/// [`WsError::close_code`] and close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WsError {
    /// RSV1-3 is set although no extension was negotiated (section 5.2).
    #[error("read websocket frame: reserved bits {0:#04x} are set")]
    ReservedBits(u8),
    /// An opcode that is not defined (section 5.2).
    #[error("read websocket frame: opcode {0:#x} is not defined")]
    Opcode(u8),
    /// A control frame is fragmented (section 5.5).
    #[error("read websocket frame: a control frame is fragmented")]
    FragmentedControl,
    /// A control frame has more than 125 bytes (section 5.5).
    #[error("read websocket frame: a control frame has more than 125 bytes")]
    LongControl,
    /// The length is not in its shortest form (section 5.2).
    #[error("read websocket frame: length {0} is not written in its shortest form")]
    LengthForm(u64),
    /// The length's highest bit is set (section 5.2).
    #[error("read websocket frame: length has its highest bit set")]
    LengthSign,
    /// A frame from a client is not masked, or one from a server is (section 5.1).
    #[error("read websocket frame: masked by the wrong side, or not masked")]
    Masking,
    /// A continuation without a message, or a new message within another (section 5.4).
    #[error("read websocket frame: fragments out of order")]
    FragmentOrder,
    /// The message exceeds the limit; nothing was read or allocated for it.
    #[error("read websocket message: {length} bytes exceed the cap of {max}")]
    TooLong {
        /// Announced bytes of the message so far.
        length: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// A text message or a close reason is not UTF-8 (section 8.1).
    #[error("read websocket message: text is not UTF-8")]
    Utf8,
    /// A close frame with one byte, or a code that must not be sent (section 7.4).
    #[error("read websocket close: status code is missing or must not be sent")]
    CloseCode,
    /// No memory for a fragment.
    #[error("read websocket message: no memory for a fragment")]
    Memory,
}

impl WsError {
    /// The status code to send for this error (section 7.4.1).
    pub fn close_code(self) -> CloseCode {
        match self {
            Self::TooLong { .. } => CloseCode::TOO_BIG,
            Self::Utf8 => CloseCode::NOT_CONSISTENT,
            _ => CloseCode::PROTOCOL_ERROR,
        }
    }
}

#[cfg(test)]
mod interop;
#[cfg(test)]
mod tests;
