//! Finds the end of a body while its bytes arrive, without storing them.
//!
//! Owns the byte count and the limit. Chunk syntax is in `chunk`. Does not own buffers: the payload
//! is returned in the pieces in which it arrived.

use super::body_error::BodyError;
use super::chunk::{ChunkReader, ChunkStep};

/// How the end of a body is determined (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body.
    Empty,
    /// Content-Length, at least 1.
    Exactly(u64),
    /// The last chunk.
    Chunked,
    /// The end of the connection; only in a response.
    UntilClose,
}

/// Result of one reading step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyStep<'a> {
    /// All input was consumed (possibly only chunk syntax); more is needed.
    More,
    /// A piece of the body. Remove `consumed` bytes and call again.
    Piece {
        /// Bytes to remove from the start of the input.
        consumed: usize,
        /// The piece, never empty.
        payload: &'a [u8],
    },
    /// The body is complete; its last `consumed` bytes are at the start of the input.
    Done {
        /// Bytes to remove from the start of the input.
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

/// Reads one body up to its end.
#[derive(Debug)]
pub struct BodyReader {
    state: State,
    received: u64,
    max: u64,
}

impl BodyReader {
    /// A reader for a body of this length and at most `max` bytes.
    ///
    /// # Errors
    /// [`BodyError::TooLong`] when the announced length already exceeds `max`.
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
            received: 0,
            max,
        })
    }

    /// Bytes of the body so far, without chunk syntax.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether the body is complete.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Consumes input from the start of `input`. [`BodyStep::More`] means that all was consumed.
    ///
    /// # Errors
    /// When the body exceeds the limit or the chunk syntax is broken; close the connection then.
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
        self.received = self.received.saturating_add(payload.len() as u64);
        if self.received > self.max {
            return Err(BodyError::TooLong {
                length: self.received,
                max: self.max,
            });
        }
        if matches!(self.state, State::Counting(0)) {
            self.state = State::Done;
        }
        Ok(BodyStep::Piece { consumed, payload })
    }

    /// Handles the end of the connection, which ends a body of unknown length.
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
