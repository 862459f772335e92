//! The chunked transfer coding (RFC 9112 section 7.1): syntax byte by byte, data in whole pieces.
//!
//! Owns sizes, extensions (skipped) and trailers (skipped), each limited. Lines must end with CR
//! LF: HTTP implementations disagree about a bare LF.

use super::body_error::BodyError;

const EXTENSION_MAX: u32 = 256;
const TRAILER_MAX: u32 = 16 * 1024;

/// Result of one reading step.
#[derive(Debug)]
pub(super) enum ChunkStep<'a> {
    More,
    Data { consumed: usize, payload: &'a [u8] },
    End { consumed: usize },
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// In the chunk size, after `digits` digits.
    Size {
        size: u64,
        digits: u32,
    },
    /// In the rest of the size line.
    Extension {
        size: u64,
    },
    /// After the CR of the size line.
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// At the start of a trailer line, or of the final empty line.
    TrailerStart,
    TrailerLine,
    TrailerLf,
    LastLf,
}

#[derive(Debug)]
pub(super) struct ChunkReader {
    state: State,
    announced: u64,
    skipped: u32,
    max: u64,
}

const START: State = State::Size { size: 0, digits: 0 };

impl ChunkReader {
    pub(super) fn new(max: u64) -> Self {
        Self {
            state: START,
            announced: 0,
            skipped: 0,
            max,
        }
    }

    pub(super) fn step<'a>(&mut self, input: &'a [u8]) -> Result<ChunkStep<'a>, BodyError> {
        let mut at = 0;
        while let Some(byte) = input.get(at) {
            if let State::Data { left } = self.state {
                let remaining = &input[at..];
                let take = usize::try_from(left)
                    .unwrap_or(usize::MAX)
                    .min(remaining.len());
                let left = left - take as u64;
                self.state = if left == 0 {
                    State::DataCr
                } else {
                    State::Data { left }
                };
                return Ok(ChunkStep::Data {
                    consumed: at + take,
                    payload: &remaining[..take],
                });
            }
            at += 1;
            if matches!((self.state, byte), (State::LastLf, b'\n')) {
                return Ok(ChunkStep::End { consumed: at });
            }
            self.state = self.after(*byte)?;
        }
        Ok(ChunkStep::More)
    }

    fn after(&mut self, byte: u8) -> Result<State, BodyError> {
        match (self.state, byte) {
            (State::Size { size, digits }, _) if byte.is_ascii_hexdigit() => {
                size_digit(size, digits, byte)
            }
            (State::Size { digits: 0, .. }, _) => Err(BodyError::ChunkSize),
            (State::Size { size, .. } | State::Extension { size }, b'\r') => {
                Ok(State::SizeLf { size })
            }
            (State::Size { size, .. }, b';' | b' ' | b'\t') | (State::Extension { size }, _) => {
                self.skip(byte, EXTENSION_MAX)?;
                Ok(State::Extension { size })
            }
            (State::Size { .. }, _) => Err(BodyError::ChunkSize),
            (State::SizeLf { size }, b'\n') => self.open(size),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(START),
            (State::TrailerStart, b'\r') => Ok(State::LastLf),
            (State::TrailerLine, b'\r') => Ok(State::TrailerLf),
            (State::TrailerLf, b'\n') => Ok(State::TrailerStart),
            (State::TrailerStart | State::TrailerLine, _) => {
                self.skip(byte, TRAILER_MAX)?;
                Ok(State::TrailerLine)
            }
            _ => Err(BodyError::ChunkEnd),
        }
    }

    /// Ends a size line: checks the limit before any data of the chunk arrives.
    fn open(&mut self, size: u64) -> Result<State, BodyError> {
        self.skipped = 0;
        self.announced = self.announced.saturating_add(size);
        if self.announced > self.max {
            return Err(BodyError::TooLong {
                length: self.announced,
                max: self.max,
            });
        }
        Ok(if size == 0 {
            State::TrailerStart
        } else {
            State::Data { left: size }
        })
    }

    fn skip(&mut self, byte: u8, limit: u32) -> Result<(), BodyError> {
        self.skipped += 1;
        if byte == b'\n' {
            Err(BodyError::ChunkEnd)
        } else if self.skipped > limit {
            Err(BodyError::Trailer)
        } else {
            Ok(())
        }
    }
}

/// Adds a digit. Limits the size to 63 bits, like Content-Length.
fn size_digit(size: u64, digits: u32, byte: u8) -> Result<State, BodyError> {
    let digit = char::from(byte).to_digit(16).ok_or(BodyError::ChunkSize)?;
    let size = size << 4 | u64::from(digit);
    if digits >= 16 || size >> 63 != 0 {
        return Err(BodyError::ChunkSize);
    }
    Ok(State::Size {
        size,
        digits: digits + 1,
    })
}
