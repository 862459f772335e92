//! Raw TCP: the hello that opens a connection, the reply to it, and length-prefixed frames.
//!
//! Owns the 16-byte hello and its reply and the 4-byte frame length. Does not own the payload of a
//! frame (see `echo`), nor the policy that grants or refuses.
//!
//! ```text
//! hello:  "NEPH"  version u8  mode u8    reserved u16 (0)  reply_size u32  duration_ms u32
//! reply:  "NEPR"  version u8  status u8  reserved u16 (0)  reply_size u32  max_request u32
//! frame:  length u32, then that many bytes
//! ```

use thiserror::Error;

use crate::bytes::Reader;

/// Length of a hello and of its reply, bytes.
pub const HELLO_LEN: usize = 16;

/// The supported protocol version.
pub const VERSION: u8 = 1;

const HELLO_MAGIC: [u8; 4] = *b"NEPH";
const REPLY_MAGIC: [u8; 4] = *b"NEPR";

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Frames in both directions.
    Echo,
    /// The client sends bulk data, the reflector discards it.
    Upload,
    /// The reflector sends bulk data, the client discards it.
    Download,
}

/// The first message of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The purpose of the connection.
    pub mode: Mode,
    /// Requested payload of each reply, bytes (echo).
    pub reply_size: u32,
    /// Requested duration of a bulk transfer, milliseconds (upload, download).
    pub duration_ms: u32,
}

/// Why a reflector refuses a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[repr(u8)]
pub enum Refusal {
    /// The version of the hello is not supported.
    #[error("protocol version not supported")]
    Version = 1,
    /// The mode is unknown or not offered.
    #[error("mode not offered")]
    Mode = 2,
    /// The requested reply size exceeds the reflector's limit.
    #[error("reply size too large")]
    ReplySize = 3,
    /// The requested duration exceeds the reflector's limit.
    #[error("duration too long")]
    Duration = 4,
    /// Another bulk transfer is running.
    #[error("reflector busy")]
    Busy = 5,
    /// The peer exceeds its message rate.
    #[error("message rate exceeded")]
    Rate = 6,
    /// The peer, or all peers together, have too many connections.
    #[error("too many connections")]
    Connections = 7,
    /// The hello is malformed in another way.
    #[error("malformed hello")]
    Malformed = 8,
}

/// The reflector's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The connection is served.
    Granted,
    /// The connection is closed after this reply.
    Refused(Refusal),
}

/// The first message of the reflector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelloReply {
    /// Served or not.
    pub status: Status,
    /// Payload of each reply that the reflector will send, bytes.
    pub reply_size: u32,
    /// The largest request payload that the reflector accepts, bytes.
    pub max_request: u32,
}

/// Why bytes are no hello, no reply to one, or no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Fewer than [`HELLO_LEN`] bytes.
    #[error("decode hello: {0} bytes is too short")]
    TooShort(usize),
    /// The first four bytes are not the magic.
    #[error("decode hello: magic {0:02x?} is not ours")]
    WrongMagic([u8; 4]),
    /// A version that is not supported.
    #[error("decode hello: version {0} is not supported")]
    UnsupportedVersion(u8),
    /// A mode that does not exist.
    #[error("decode hello: mode {0} does not exist")]
    UnknownMode(u8),
    /// A status that does not exist.
    #[error("decode hello reply: status {0} does not exist")]
    UnknownStatus(u8),
    /// The reserved field is not zero.
    #[error("decode hello: reserved field is {0:#06x}, not zero")]
    ReservedNotZero(u16),
    /// A frame announces more than the limit; nothing was read or allocated for it.
    #[error("read frame: announced length {length} exceeds the cap of {max}")]
    TooLong {
        /// The announced length, bytes.
        length: u32,
        /// The limit, bytes.
        max: u32,
    },
}

impl FrameError {
    /// The refusal to send to the client.
    pub fn refusal(self) -> Refusal {
        match self {
            Self::UnsupportedVersion(_) => Refusal::Version,
            Self::UnknownMode(_) => Refusal::Mode,
            _ => Refusal::Malformed,
        }
    }
}

impl Mode {
    fn from_code(code: u8) -> Result<Self, FrameError> {
        match code {
            0 => Ok(Self::Echo),
            1 => Ok(Self::Upload),
            2 => Ok(Self::Download),
            _ => Err(FrameError::UnknownMode(code)),
        }
    }
}

impl Refusal {
    /// All refusals, in the order of their codes.
    pub const ALL: [Self; 8] = [
        Self::Version,
        Self::Mode,
        Self::ReplySize,
        Self::Duration,
        Self::Busy,
        Self::Rate,
        Self::Connections,
        Self::Malformed,
    ];
}

impl Status {
    fn code(self) -> u8 {
        match self {
            Self::Granted => 0,
            Self::Refused(refusal) => refusal as u8,
        }
    }

    fn from_code(code: u8) -> Result<Self, FrameError> {
        if code == 0 {
            return Ok(Self::Granted);
        }
        let refusal = Refusal::ALL
            .into_iter()
            .find(|refusal| *refusal as u8 == code);
        refusal
            .map(Self::Refused)
            .ok_or(FrameError::UnknownStatus(code))
    }
}

impl Hello {
    /// Appends the [`HELLO_LEN`] bytes of this hello.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let fields = [self.reply_size, self.duration_ms];
        encode(HELLO_MAGIC, self.mode as u8, fields, out);
    }

    /// Reads a hello from the first [`HELLO_LEN`] bytes.
    ///
    /// # Errors
    /// When the bytes are too few or no hello; reply with [`FrameError::refusal`].
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let (mode, [reply_size, duration_ms]) = decode(HELLO_MAGIC, bytes)?;
        Ok(Self {
            mode: Mode::from_code(mode)?,
            reply_size,
            duration_ms,
        })
    }
}

impl HelloReply {
    /// Appends the [`HELLO_LEN`] bytes of this reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let fields = [self.reply_size, self.max_request];
        encode(REPLY_MAGIC, self.status.code(), fields, out);
    }

    /// Reads a reply from the first [`HELLO_LEN`] bytes.
    ///
    /// # Errors
    /// When the bytes are too few or no reply to a hello.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let (status, [reply_size, max_request]) = decode(REPLY_MAGIC, bytes)?;
        Ok(Self {
            status: Status::from_code(status)?,
            reply_size,
            max_request,
        })
    }
}

fn encode(magic: [u8; 4], code: u8, fields: [u32; 2], out: &mut Vec<u8>) {
    out.extend_from_slice(&magic);
    out.extend_from_slice(&[VERSION, code, 0, 0]);
    out.extend_from_slice(&fields[0].to_be_bytes());
    out.extend_from_slice(&fields[1].to_be_bytes());
}

fn decode(magic: [u8; 4], bytes: &[u8]) -> Result<(u8, [u32; 2]), FrameError> {
    let short = FrameError::TooShort(bytes.len());
    let mut reader = Reader::new(bytes);
    let first_bytes: [u8; 4] = reader.array().ok_or(short)?;
    if first_bytes != magic {
        return Err(FrameError::WrongMagic(first_bytes));
    }
    let version = reader.u8().ok_or(short)?;
    if version != VERSION {
        return Err(FrameError::UnsupportedVersion(version));
    }
    let code = reader.u8().ok_or(short)?;
    let reserved = reader.u16().ok_or(short)?;
    if reserved != 0 {
        return Err(FrameError::ReservedNotZero(reserved));
    }
    let first = reader.u32().ok_or(short)?;
    let second = reader.u32().ok_or(short)?;
    Ok((code, [first, second]))
}

/// The length prefix of a payload of `len` bytes.
pub fn frame_prefix(len: u32) -> [u8; 4] {
    len.to_be_bytes()
}

/// Reads the first frame of `buf`: its length with the prefix, and the payload; `None` when more
/// bytes are needed. The announced length is compared with `max` before anything is allocated for
/// it.
///
/// # Errors
/// [`FrameError::TooLong`] when the frame announces more than `max` bytes.
pub fn next_frame(buf: &[u8], max: u32) -> Result<Option<(usize, &[u8])>, FrameError> {
    let mut reader = Reader::new(buf);
    let Some(length) = reader.u32() else {
        return Ok(None);
    };
    if length > max {
        return Err(FrameError::TooLong { length, max });
    }
    let payload = usize::try_from(length)
        .ok()
        .and_then(|length| reader.slice(length));
    Ok(payload.map(|payload| (4 + payload.len(), payload)))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn any_status() -> impl Strategy<Value = Status> {
        (0usize..=Refusal::ALL.len()).prop_map(|at| match Refusal::ALL.get(at) {
            Some(refusal) => Status::Refused(*refusal),
            None => Status::Granted,
        })
    }

    proptest! {
        #[test]
        fn hellos_roundtrip(mode in 0u8..3, reply_size: u32, duration_ms: u32, prefix_len in 0usize..16) {
            let mode = Mode::from_code(mode).expect("a known mode");
            let hello = Hello { mode, reply_size, duration_ms };
            let mut out = Vec::new();
            hello.encode(&mut out);
            prop_assert_eq!(out.len(), HELLO_LEN);
            prop_assert_eq!(Hello::decode(&out), Ok(hello));
            prop_assert_eq!(Hello::decode(&out[..prefix_len]), Err(FrameError::TooShort(prefix_len)));
        }

        #[test]
        fn replies_roundtrip(status in any_status(), reply_size: u32, max_request: u32) {
            let reply = HelloReply { status, reply_size, max_request };
            let mut out = Vec::new();
            reply.encode(&mut out);
            prop_assert_eq!(HelloReply::decode(&out), Ok(reply));
        }

        #[test]
        fn only_complete_frames_are_parsed(
            payload in vec(any::<u8>(), 0..300),
            remaining in vec(any::<u8>(), 0..5),
            prefix_len in 0usize..300,
        ) {
            let len = u32::try_from(payload.len()).expect("small");
            let mut buf = frame_prefix(len).to_vec();
            buf.extend_from_slice(&payload);
            let frame_len = buf.len();
            buf.extend_from_slice(&remaining);
            prop_assert_eq!(next_frame(&buf, len), Ok(Some((frame_len, &payload[..]))));
            let cut = prefix_len % frame_len;
            prop_assert_eq!(next_frame(&buf[..cut], len), Ok(None));
        }

        #[test]
        fn a_frame_that_is_too_long_is_refused_by_its_prefix(length in 1u32.., over in 1u32..) {
            let max = length.saturating_sub(over);
            let prefix = frame_prefix(length);
            prop_assert_eq!(next_frame(&prefix, max), Err(FrameError::TooLong { length, max }));
        }
    }

    #[test]
    fn each_invalid_field_has_its_refusal_code() {
        let mut out = Vec::new();
        Hello {
            mode: Mode::Echo,
            reply_size: 1,
            duration_ms: 2,
        }
        .encode(&mut out);
        for (at, value, refusal) in [
            (4, 2, Refusal::Version),
            (5, 3, Refusal::Mode),
            (6, 1, Refusal::Malformed),
        ] {
            let mut bytes = out.clone();
            bytes[at] = value;
            assert_eq!(
                Hello::decode(&bytes).map_err(FrameError::refusal),
                Err(refusal)
            );
        }
    }
}
