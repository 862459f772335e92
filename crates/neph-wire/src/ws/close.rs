//! The body of a close frame: a status code and a reason (RFC 6455 sections 5.5.1 and 7.4).
//!
//! Owns which codes may be sent. Does not own the timing of the closing handshake.

use super::WsError;
use super::header::{Fin, Opcode, encode_frame};

/// The longest reason: 125 bytes of a control frame minus the code.
const REASON_MAX: usize = 123;

/// The status code of a close frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CloseCode(u16);

/// The content of a close frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close<'a> {
    /// The status code.
    pub code: CloseCode,
    /// The reason in words; often empty.
    pub reason: &'a str,
}

impl CloseCode {
    /// 1000: normal closure.
    pub const NORMAL: Self = Self(1000);
    /// 1001: the program or page terminates.
    pub const GOING_AWAY: Self = Self(1001);
    /// 1002: the peer violated the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// 1003: a type of message that is not accepted.
    pub const UNSUPPORTED: Self = Self(1003);
    /// 1007: the bytes of a message do not match its type.
    pub const NOT_CONSISTENT: Self = Self(1007);
    /// 1008: a policy (rate, connections) was violated.
    pub const POLICY: Self = Self(1008);
    /// 1009: the message is too long.
    pub const TOO_BIG: Self = Self(1009);
    /// 1011: an error at the closing side.
    pub const INTERNAL: Self = Self(1011);
    /// 1013: temporary overload (IANA's registry).
    pub const TRY_AGAIN: Self = Self(1013);

    /// A code that may be sent: 1000-1003, 1007-1014 (registered) or 3000-4999 (libraries and
    /// applications); `None` for all others.
    pub fn new(code: u16) -> Option<Self> {
        let registered = matches!(code, 1000..=1003 | 1007..=1014);
        (registered || matches!(code, 3000..=4999)).then_some(Self(code))
    }

    /// The number.
    pub fn get(self) -> u16 {
        self.0
    }
}

/// Reads the body of a close frame; an empty body has no code.
pub(super) fn parse_close(body: &[u8]) -> Result<Option<Close<'_>>, WsError> {
    if body.is_empty() {
        return Ok(None);
    }
    let (code, reason) = body.split_first_chunk::<2>().ok_or(WsError::CloseCode)?;
    let code = CloseCode::new(u16::from_be_bytes(*code)).ok_or(WsError::CloseCode)?;
    let reason = str::from_utf8(reason).map_err(|_| WsError::Utf8)?;
    Ok(Some(Close { code, reason }))
}

/// Appends a close frame; cuts a reason beyond 123 bytes at a character boundary.
pub fn encode_close(out: &mut Vec<u8>, mask: Option<[u8; 4]>, close: Close<'_>) {
    let reason = &close.reason[..close.reason.floor_char_boundary(REASON_MAX)];
    let parts = [&close.code.0.to_be_bytes()[..], reason.as_bytes()];
    encode_frame(out, Opcode::Close, Fin::Last, mask, &parts);
}
