//! Assembles received bytes into whole messages and control frames.
//!
//! Owns the order of fragments, the rule which side masks, and the limit of a message. Does not own
//! the receive buffer: the caller owns it and learns how much it must contain. A caller that needs
//! only control frames stores nothing of a message ([`Assembler::control_frames`]).

use super::close::{Close, parse_close};
use super::header::{Fin, FrameHeader, Opcode, parse_header};
use super::mask::mask_in_place;
use super::{WsError, header};

/// Memory that is reused for the fragments of the next message; the rest is freed.
const MAX_SPARE_CAPACITY: usize = 64 << 10;

/// The reading end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads frames of a server: never masked.
    Client,
    /// Reads frames of a client: always masked.
    Server,
}

/// The type of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8, checked.
    Text,
    /// Any bytes.
    Binary,
}

/// The content of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole message, unmasked.
    Message(Kind, &'a [u8]),
    /// A part of a message that is incomplete or skipped.
    Fragment,
    /// Answer it with a pong with the same bytes.
    Ping(&'a [u8]),
    /// A pong, with or without a ping before it.
    Pong(&'a [u8]),
    /// The peer sends nothing after it.
    Close(Option<Close<'a>>),
}

/// Result of one reading step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// No complete frame: call again when the buffer has at least `wanted` bytes (never more than
    /// the limit plus a header).
    Incomplete {
        /// Bytes that the buffer must contain from its start.
        wanted: usize,
    },
    /// One frame; remove `consumed` bytes from the buffer's start after using the event.
    Frame {
        /// Length of the frame.
        consumed: usize,
        /// Its content.
        event: Event<'a>,
    },
}

/// Assembles messages. A message in one frame, the usual case, is returned from the caller's
/// buffer; only fragments are copied.
#[derive(Debug)]
pub struct Assembler {
    role: Role,
    max: usize,
    open: Option<Kind>,
    pub(super) buffer: Vec<u8>,
    clear_kept: bool,
    /// Payload bytes still to skip; `None` if messages are returned.
    skipped: Option<u64>,
}

impl Assembler {
    /// An assembler for one connection with messages of at most `max` bytes.
    pub fn new(role: Role, max: usize) -> Self {
        Self {
            role,
            max,
            open: None,
            buffer: Vec::new(),
            clear_kept: false,
            skipped: None,
        }
    }

    /// An assembler that returns control frames and skips messages of any size, without storing
    /// them or checking their UTF-8.
    pub fn control_frames(role: Role) -> Self {
        Self {
            skipped: Some(0),
            ..Self::new(role, usize::MAX)
        }
    }

    /// Bytes of stored fragments of an incomplete message.
    pub const fn buffered(&self) -> usize {
        if self.clear_kept {
            0
        } else {
            self.buffer.len()
        }
    }

    /// Frees the memory of a message that was returned.
    pub fn shrink(&mut self) {
        if std::mem::take(&mut self.clear_kept) {
            self.buffer.clear();
            self.buffer.shrink_to(MAX_SPARE_CAPACITY);
        }
    }

    /// Memory of the stored fragments, spare capacity included.
    pub const fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Reads the frame at the start of `buf` and unmasks it in place. Checks the header against the
    /// limit before the payload arrives, so that no memory is allocated for a refused message.
    ///
    /// # Errors
    /// When the peer violates the protocol or the limit; the connection must then be closed.
    pub fn step<'a>(&'a mut self, buf: &'a mut [u8]) -> Result<Step<'a>, WsError> {
        self.shrink();
        if let Some(left @ 1..) = self.skipped {
            return Ok(self.skip(left, buf.len()));
        }
        let Some(header) = parse_header(buf)? else {
            return Ok(Step::Incomplete {
                wanted: wanted_for_header(buf),
            });
        };
        let len = self.check(&header)?;
        if self.skipped.is_some() && !header.opcode.is_control() {
            return Ok(self.begin_skipping(&header));
        }
        let consumed = header.header_len + len;
        let Some(payload) = buf.get_mut(header.header_len..consumed) else {
            return Ok(Step::Incomplete { wanted: consumed });
        };
        if let Some(key) = header.mask {
            mask_in_place(payload, key);
        }
        let event = self.take(&header, payload)?;
        Ok(Step::Frame { consumed, event })
    }

    /// Skips up to `available` bytes of a message with `left` remaining bytes.
    fn skip<'a>(&mut self, left: u64, available: usize) -> Step<'a> {
        let consumed = available.min(usize::try_from(left).unwrap_or(usize::MAX));
        self.skipped = Some(left - consumed as u64);
        match consumed {
            0 => Step::Incomplete { wanted: 1 },
            _ => Step::Frame {
                consumed,
                event: Event::Fragment,
            },
        }
    }

    /// Starts or continues a skipped message: only its header is read.
    fn begin_skipping<'a>(&mut self, header: &FrameHeader) -> Step<'a> {
        // Only the continuation matters, not the type of the message.
        self.open = (header.fin == Fin::More).then_some(Kind::Binary);
        self.skipped = Some(header.len);
        Step::Frame {
            consumed: header.header_len,
            event: Event::Fragment,
        }
    }

    fn check(&self, header: &FrameHeader) -> Result<usize, WsError> {
        if header.mask.is_some() != (self.role == Role::Server) {
            return Err(WsError::Masking);
        }
        let fragments_agree = match header.opcode {
            Opcode::Continuation => self.open.is_some(),
            Opcode::Text | Opcode::Binary => self.open.is_none(),
            Opcode::Close | Opcode::Ping | Opcode::Pong => true,
        };
        if !fragments_agree {
            return Err(WsError::FragmentOrder);
        }
        let before = if header.opcode == Opcode::Continuation {
            self.buffer.len() as u64
        } else {
            0
        };
        let length = before.saturating_add(header.len);
        let max = self.max as u64;
        if !header.opcode.is_control() && length > max {
            return Err(WsError::TooLong { length, max });
        }
        usize::try_from(header.len).map_err(|_| WsError::TooLong { length, max })
    }

    fn take<'a>(
        &'a mut self,
        header: &FrameHeader,
        payload: &'a [u8],
    ) -> Result<Event<'a>, WsError> {
        let kind = match header.opcode {
            Opcode::Ping => return Ok(Event::Ping(payload)),
            Opcode::Pong => return Ok(Event::Pong(payload)),
            Opcode::Close => return parse_close(payload).map(Event::Close),
            Opcode::Text => Kind::Text,
            Opcode::Binary => Kind::Binary,
            Opcode::Continuation => self.open.take().ok_or(WsError::FragmentOrder)?,
        };
        if header.fin == Fin::More {
            self.keep(payload)?;
            self.open = Some(kind);
            return Ok(Event::Fragment);
        }
        if header.opcode != Opcode::Continuation {
            return message(kind, payload);
        }
        self.keep(payload)?;
        self.clear_kept = true;
        message(kind, &self.buffer)
    }

    fn keep(&mut self, payload: &[u8]) -> Result<(), WsError> {
        let free_capacity = self.buffer.capacity() - self.buffer.len();
        if payload.len() > free_capacity {
            // An eighth more, so that not every fragment reallocates.
            let more = payload.len() + self.buffer.len() / 8;
            let reserved = self.buffer.try_reserve_exact(more);
            reserved.map_err(|_| WsError::Memory)?;
        }
        self.buffer.extend_from_slice(payload);
        Ok(())
    }

    /// Memory that the next [`Self::step`] allocates at most, for a complete fragment at the start
    /// of `buf`.
    pub fn copied_len(&self, buf: &[u8]) -> usize {
        let Ok(Some(header)) = parse_header(buf) else {
            return 0;
        };
        let is_fragment = header.fin == Fin::More || header.opcode == Opcode::Continuation;
        let is_whole = buf.len() as u64 >= header.len.saturating_add(header.header_len as u64);
        if is_fragment && is_whole && !header.opcode.is_control() {
            // As in [`Self::keep`].
            buf.len() - header.header_len + self.buffer.len() / 8
        } else {
            0
        }
    }
}

fn message(kind: Kind, bytes: &[u8]) -> Result<Event<'_>, WsError> {
    if kind == Kind::Text && str::from_utf8(bytes).is_err() {
        return Err(WsError::Utf8);
    }
    Ok(Event::Message(kind, bytes))
}

/// The smallest number of bytes for a complete header.
fn wanted_for_header(buf: &[u8]) -> usize {
    let Some(second) = buf.get(1) else { return 2 };
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    (2 + length + mask).min(header::MAX_HEADER)
}
