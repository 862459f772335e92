//! The header of a frame, and writing of frames.
//!
//! Owns RFC 6455 section 5.2. Does not own the bytes after the header, nor the order of frames.

use super::WsError;
use super::mask::mask_in_place;
use crate::bytes::Reader;

/// The longest header, bytes.
pub const MAX_HEADER: usize = 14;

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
const CONTROL_MAX: u64 = 125;
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// A later fragment of a message.
    Continuation = 0,
    /// The first fragment of a text message.
    Text = 1,
    /// The first fragment of a binary message.
    Binary = 2,
    /// The last frame of its sender.
    Close = 8,
    /// Requests a pong with the same bytes.
    Ping = 9,
    /// Answers a ping.
    Pong = 10,
}

/// Whether a frame is the last of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fin {
    /// The message ends with this frame.
    Last,
    /// Further fragments follow.
    More,
}

/// A checked frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Whether the frame is the last of its message.
    pub fin: Fin,
    /// The type of the frame.
    pub opcode: Opcode,
    /// The masking key, if the payload is masked.
    pub mask: Option<[u8; 4]>,
    /// Length of the payload, bytes; at most 2^63 - 1.
    pub len: u64,
    /// Length of this header, bytes.
    pub header_len: usize,
}

impl Opcode {
    /// Whether it is a control frame, which may be between the fragments of a message.
    pub fn is_control(self) -> bool {
        self as u8 >= 8
    }

    fn from_code(code: u8) -> Result<Self, WsError> {
        match code {
            0 => Ok(Self::Continuation),
            1 => Ok(Self::Text),
            2 => Ok(Self::Binary),
            8 => Ok(Self::Close),
            9 => Ok(Self::Ping),
            10 => Ok(Self::Pong),
            _ => Err(WsError::Opcode(code)),
        }
    }
}

/// Reads a header from the start of `bytes`; `None` when more bytes are needed.
///
/// # Errors
/// When the first bytes violate section 5.2 or 5.5, before the header is complete if possible.
pub fn parse_header(bytes: &[u8]) -> Result<Option<FrameHeader>, WsError> {
    let Some([first, second]) = bytes.first_chunk::<2>().copied() else {
        return Ok(None);
    };
    if first & 0x70 != 0 {
        return Err(WsError::ReservedBits(first & 0x70));
    }
    let opcode = Opcode::from_code(first & 0x0f)?;
    let fin = if first & FIN != 0 {
        Fin::Last
    } else {
        Fin::More
    };
    let short_len = u64::from(second & 0x7f);
    if opcode.is_control() && fin == Fin::More {
        return Err(WsError::FragmentedControl);
    }
    if opcode.is_control() && short_len > CONTROL_MAX {
        return Err(WsError::LongControl);
    }
    let mut reader = Reader::new(&bytes[2..]);
    let Some(len) = read_length(short_len, &mut reader)? else {
        return Ok(None);
    };
    let mask = if second & MASKED == 0 {
        None
    } else {
        let Some(key) = reader.array::<4>() else {
            return Ok(None);
        };
        Some(key)
    };
    let header_len = bytes.len() - reader.remaining().len();
    Ok(Some(FrameHeader {
        fin,
        opcode,
        mask,
        len,
        header_len,
    }))
}

fn read_length(short: u64, reader: &mut Reader<'_>) -> Result<Option<u64>, WsError> {
    let (len, min) = match short {
        126 => (reader.u16().map(u64::from), 126),
        127 => (reader.u64(), 1 << 16),
        _ => (Some(short), 0),
    };
    match len {
        Some(len) if len >> 63 != 0 => Err(WsError::LengthSign),
        Some(len) if len < min => Err(WsError::LengthForm(len)),
        other => Ok(other),
    }
}

/// Appends a header for a payload of `len` bytes. With a mask, the caller must mask the payload
/// ([`mask_in_place`]).
pub fn encode_header(
    out: &mut Vec<u8>,
    opcode: Opcode,
    fin: Fin,
    mask: Option<[u8; 4]>,
    len: usize,
) {
    out.push(opcode as u8 | if fin == Fin::Last { FIN } else { 0 });
    let masked = if mask.is_some() { MASKED } else { 0 };
    if let Some(short) = u8::try_from(len).ok().filter(|short| *short < 126) {
        out.push(masked | short);
    } else if let Ok(medium) = u16::try_from(len) {
        out.push(masked | LENGTH_16);
        out.extend_from_slice(&medium.to_be_bytes());
    } else {
        out.push(masked | LENGTH_64);
        out.extend_from_slice(&(len as u64).to_be_bytes());
    }
    if let Some(key) = mask {
        out.extend_from_slice(&key);
    }
}

/// Appends a frame with the concatenated `parts` as payload, masked if there is a key (a client
/// must mask, a server must not).
///
/// The parts of a control frame may have at most 125 bytes together; the caller checks this.
pub fn encode_frame(
    out: &mut Vec<u8>,
    opcode: Opcode,
    fin: Fin,
    mask: Option<[u8; 4]>,
    parts: &[&[u8]],
) {
    let len = parts.iter().map(|part| part.len()).sum();
    out.reserve(MAX_HEADER + len);
    encode_header(out, opcode, fin, mask, len);
    let payload = out.len();
    for part in parts {
        out.extend_from_slice(part);
    }
    if let Some(key) = mask {
        mask_in_place(&mut out[payload..], key);
    }
}
