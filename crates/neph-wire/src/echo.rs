//! The echo message of neph: the payload of a WebSocket frame, an HTTP body or a TCP frame.
//!
//! Owns the head of a message (magic, sequence number, marks) and its padding. Does not own the
//! framing or the size limits: those belong to the carrier.
//!
//! ```text
//! request:  "NEq1"  seq u64                          padding to the size, at least 12 bytes
//! reply:    "NEr1"  seq u64  marks (56, see marks)   padding to the size, at least 68 bytes
//! ```
//! The padding is the output of `SplitMix64`, so that no proxy or tunnel can compress a message. It
//! depends only on the position within the message, because 100 kB of it take 9.8 us (measured,
//! release build), too long between two marks. So a sender reuses one padded buffer and writes only
//! the head of each message (`overwrite`). Readers do not check the padding.

use thiserror::Error;

use crate::bytes::Reader;
use crate::marks::{self, MarksError, PeerMarks};

/// The smallest request, bytes.
pub const REQUEST_MIN: usize = 12;

/// The smallest reply, bytes.
pub const REPLY_MIN: usize = REQUEST_MIN + marks::LEN;

const REQUEST_MAGIC: [u8; 4] = *b"NEq1";
const REPLY_MAGIC: [u8; 4] = *b"NEr1";

/// The message of a prober.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The message number within its experiment.
    pub seq: u64,
}

/// The answer of a reflector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The number of the request.
    pub seq: u64,
    /// The reflector's timestamps.
    pub marks: PeerMarks,
}

/// Why bytes are no echo message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EchoError {
    /// Fewer bytes than the smallest message.
    #[error("decode echo message: {0} bytes is too short")]
    TooShort(usize),
    /// The first four bytes are not those of an echo message.
    #[error("decode echo message: magic {0:02x?} is not ours")]
    WrongMagic([u8; 4]),
    /// The marks of the reply are not valid.
    #[error("decode echo message: {0}")]
    InvalidTimestamps(#[from] MarksError),
}

impl Request {
    /// Appends this request, padded to `size` bytes (raised to [`REQUEST_MIN`]).
    pub fn encode_into(&self, size: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.head());
        pad(size.saturating_sub(REQUEST_MIN), REQUEST_MIN, start, out);
    }

    /// Writes this request over the head of an encoded one; the padding remains.
    ///
    /// # Errors
    /// When `message` is shorter than [`REQUEST_MIN`]; nothing is written then.
    pub fn overwrite(&self, message: &mut [u8]) -> Result<(), EchoError> {
        overwrite(&self.head(), message)
    }

    /// Reads a request; what follows its first [`REQUEST_MIN`] bytes is padding.
    ///
    /// # Errors
    /// When the bytes are too short or no request.
    pub fn decode(bytes: &[u8]) -> Result<Self, EchoError> {
        let (seq, _) = read_head(REQUEST_MAGIC, bytes)?;
        Ok(Self { seq })
    }

    fn head(self) -> [u8; REQUEST_MIN] {
        head(REQUEST_MAGIC, self.seq)
    }
}

impl Reply {
    /// Appends this reply, padded to `size` bytes (raised to [`REPLY_MIN`]).
    pub fn encode_into(&self, size: usize, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.head());
        pad(size.saturating_sub(REPLY_MIN), REPLY_MIN, start, out);
    }

    /// Writes this reply over the head of an encoded one; the padding remains.
    ///
    /// # Errors
    /// When `message` is shorter than [`REPLY_MIN`]; nothing is written then.
    pub fn overwrite(&self, message: &mut [u8]) -> Result<(), EchoError> {
        overwrite(&self.head(), message)
    }

    /// Reads a reply; what follows its first [`REPLY_MIN`] bytes is padding.
    ///
    /// # Errors
    /// When the bytes are too short, no reply, or without valid marks.
    pub fn decode(bytes: &[u8]) -> Result<Self, EchoError> {
        let (seq, mut reader) = read_head(REPLY_MAGIC, bytes)?;
        let marks = reader
            .slice(marks::LEN)
            .ok_or(EchoError::TooShort(bytes.len()))?;
        Ok(Self {
            seq,
            marks: PeerMarks::decode(marks)?,
        })
    }

    fn head(&self) -> [u8; REPLY_MIN] {
        let mut bytes = [0; REPLY_MIN];
        bytes[..REQUEST_MIN].copy_from_slice(&head(REPLY_MAGIC, self.seq));
        bytes[REQUEST_MIN..].copy_from_slice(&self.marks.to_bytes());
        bytes
    }
}

fn head(magic: [u8; 4], seq: u64) -> [u8; REQUEST_MIN] {
    let mut bytes = [0; REQUEST_MIN];
    bytes[..4].copy_from_slice(&magic);
    bytes[4..].copy_from_slice(&seq.to_be_bytes());
    bytes
}

fn read_head(magic: [u8; 4], bytes: &[u8]) -> Result<(u64, Reader<'_>), EchoError> {
    let short = EchoError::TooShort(bytes.len());
    let mut reader = Reader::new(bytes);
    let first_bytes: [u8; 4] = reader.array().ok_or(short)?;
    if first_bytes != magic {
        return Err(EchoError::WrongMagic(first_bytes));
    }
    let seq = reader.u64().ok_or(short)?;
    Ok((seq, reader))
}

fn overwrite(head: &[u8], message: &mut [u8]) -> Result<(), EchoError> {
    let len = message.len();
    let prefix = message
        .get_mut(..head.len())
        .ok_or(EchoError::TooShort(len))?;
    prefix.copy_from_slice(head);
    Ok(())
}

/// Appends `count` bytes of padding to a message whose head of `head` bytes starts at `start`.
fn pad(count: usize, head: usize, start: usize, out: &mut Vec<u8>) {
    debug_assert_eq!(out.len(), start + head);
    out.resize(start + head + count, 0);
    let (words, tail) = out[start + head..].as_chunks_mut::<8>();
    let mut stream = (0..).map(|index| split_mix(index).to_be_bytes());
    for (slot, word) in words.iter_mut().zip(&mut stream) {
        *slot = word;
    }
    for (slot, byte) in tail.iter_mut().zip(stream.next().unwrap_or_default()) {
        *slot = byte;
    }
}

/// Output number `index` of `SplitMix64` (Steele, Lea, Flood 2014).
fn split_mix(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::marks::tests::any_marks;

    proptest! {
        #[test]
        fn requests_roundtrip(seq: u64, size in 0usize..5000, before in vec(any::<u8>(), 0..9)) {
            let mut out = before.clone();
            Request { seq }.encode_into(size, &mut out);
            prop_assert_eq!(out.len(), before.len() + size.max(REQUEST_MIN));
            prop_assert_eq!(Request::decode(&out[before.len()..]), Ok(Request { seq }));
        }

        #[test]
        fn replies_roundtrip(seq: u64, marks in any_marks(), size in 0usize..5000) {
            let reply = Reply { seq, marks };
            let mut out = Vec::new();
            reply.encode_into(size, &mut out);
            prop_assert_eq!(out.len(), size.max(REPLY_MIN));
            prop_assert_eq!(Reply::decode(&out), Ok(reply));
            for keep in 0..REPLY_MIN {
                prop_assert_eq!(Reply::decode(&out[..keep]), Err(EchoError::TooShort(keep)));
            }
        }

        #[test]
        fn overwriting_equals_encoding(seq: u64, marks in any_marks(), size in 0usize..300) {
            let (first, reply) = (Reply { seq: 0, marks: PeerMarks::default() }, Reply { seq, marks });
            let (mut patched, mut fresh) = (Vec::new(), Vec::new());
            first.encode_into(size, &mut patched);
            reply.overwrite(&mut patched).expect("long enough");
            reply.encode_into(size, &mut fresh);
            prop_assert_eq!(patched, fresh);
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_round_trip(bytes in vec(any::<u8>(), 0..200)) {
            prop_assert!(Request::decode(&bytes).is_err() || bytes.starts_with(&REQUEST_MAGIC));
            prop_assert!(Reply::decode(&bytes).is_err() || bytes.starts_with(&REPLY_MAGIC));
        }
    }

    #[test]
    fn padding_is_incompressible() {
        let mut out = Vec::new();
        Request { seq: 0 }.encode_into(100_000, &mut out);
        let mut words: Vec<&[u8]> = out[REQUEST_MIN..].windows(8).collect();
        let length = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), length);
    }

    #[test]
    fn a_request_is_not_parsed_as_a_reply() {
        let mut out = Vec::new();
        Request { seq: 1 }.encode_into(REPLY_MIN, &mut out);
        assert_eq!(
            Reply::decode(&out),
            Err(EchoError::WrongMagic(REQUEST_MAGIC))
        );
    }
}
