//! Where a body ends, found while its bytes come in, without keeping them.
//!
//! Owns the count of bytes and the cap. Chunk syntax is in `chunk`. Does not own buffers: the
//! payload is handed out in the pieces in which it arrived.

use super::body_error::BodyError;
use super::chunk::{ChunkReader, ChunkStep};

/// How a body's end is told (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body.
    Empty,
    /// That many bytes, at least one.
    Exactly(u64),
    /// By an empty chunk.
    Chunked,
    /// By the end of the connection; only a response may do so.
    UntilClose,
}

/// What the bytes at hand are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyStep<'a> {
    /// All bytes at hand were taken (maybe for chunk syntax only); more are needed.
    More,
    /// A piece of the body. Drop `consumed` bytes and call again.
    Piece {
        /// Bytes taken off the input's start.
        consumed: usize,
        /// The piece, never empty.
        payload: &'a [u8],
    },
    /// The body is over; `consumed` bytes at the input's start were its last.
    Done {
        /// Bytes taken off the input's start.
        consumed: usize,
    },
}

#[derive(Debug)]
enum State {
    Done,
    Counting(u64),
    Chunks(ChunkReader),
    UntilClose,
}

/// Follows one body to its end.
#[derive(Debug)]
pub struct BodyReader {
    state: State,
    seen: u64,
    max: u64,
}

impl BodyReader {
    /// A reader for a body of this length that may have at most `max` bytes.
    ///
    /// # Errors
    /// [`BodyError::TooLong`] when the announced length alone exceeds `max`.
    pub fn new(length: BodyLength, max: u64) -> Result<Self, BodyError> {
        let state = match length {
            BodyLength::Empty | BodyLength::Exactly(0) => State::Done,
            BodyLength::Exactly(length) if length > max => {
                return Err(BodyError::TooLong { length, max });
            }
            BodyLength::Exactly(length) => State::Counting(length),
            BodyLength::Chunked => State::Chunks(ChunkReader::new(max)),
            BodyLength::UntilClose => State::UntilClose,
        };
        Ok(Self {
            state,
            seen: 0,
            max,
        })
    }

    /// Bytes of the body so far, without chunk syntax.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Whether the body is over.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Takes what it can from the start of `input`. After [`BodyStep::More`] all of it was taken.
    ///
    /// # Errors
    /// When the body exceeds the cap or breaks the chunk syntax; the connection is of no use then.
    pub fn step<'a>(&mut self, input: &'a [u8]) -> Result<BodyStep<'a>, BodyError> {
        let (consumed, payload) = match &mut self.state {
            State::Done => return Ok(BodyStep::Done { consumed: 0 }),
            _ if input.is_empty() => return Ok(BodyStep::More),
            State::Counting(left) => {
                let take = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(input.len());
                *left -= take as u64;
                (take, &input[..take])
            }
            State::UntilClose => (input.len(), input),
            State::Chunks(chunks) => match chunks.step(input)? {
                ChunkStep::More => return Ok(BodyStep::More),
                ChunkStep::Data { consumed, payload } => (consumed, payload),
                ChunkStep::End { consumed } => {
                    self.state = State::Done;
                    return Ok(BodyStep::Done { consumed });
                }
            },
        };
        self.seen = self.seen.saturating_add(payload.len() as u64);
        if self.seen > self.max {
            return Err(BodyError::TooLong {
                length: self.seen,
                max: self.max,
            });
        }
        if matches!(self.state, State::Counting(0)) {
            self.state = State::Done;
        }
        Ok(BodyStep::Piece { consumed, payload })
    }

    /// The connection ended: the body did too, if only that could end it.
    ///
    /// # Errors
    /// [`BodyError::Truncated`] when bytes are missing.
    pub fn at_end_of_stream(&mut self) -> Result<(), BodyError> {
        match self.state {
            State::Done | State::UntilClose => {
                self.state = State::Done;
                Ok(())
            }
            State::Counting(_) | State::Chunks(_) => Err(BodyError::Truncated),
        }
    }
}
