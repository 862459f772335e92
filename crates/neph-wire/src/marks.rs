//! The marks: a reflector's timestamps, in every reply of neph's protocols.
//!
//! Owns the 56-byte form and the hexadecimal form for the HTTP header `Neph-Marks`. Does not own
//! the reading of clocks, nor the use of the marks.
//!
//! ```text
//!  0  version (1)      1  which of rx, app_rx, app_tx, previous are present (bits 0..3)
//!  2  reserved, zero (6 bytes)
//!  8  rx   16  app_rx   24  app_tx   32  wall_offset   40  previous.seq   48  previous.nic_tx
//! ```
//! All numbers are big-endian. An absent field is zero, and readers require that: each value has
//! exactly one encoding.

use thiserror::Error;

use crate::bytes::Reader;

/// Length of the encoded marks, bytes.
pub const LEN: usize = 56;

/// Length of the hexadecimal form.
pub const HEX_LEN: usize = 2 * LEN;

/// Name of the HTTP header that carries the hexadecimal form.
pub const HEADER: &str = "Neph-Marks";

const VERSION: u8 = 1;
const HAS_RX: u8 = 1;
const HAS_APP_RX: u8 = 2;
const HAS_APP_TX: u8 = 4;
const HAS_PREVIOUS: u8 = 8;
const KNOWN: u8 = HAS_RX | HAS_APP_RX | HAS_APP_TX | HAS_PREVIOUS;

/// The clock readings of a reflector for one message.
///
/// All marks are nanoseconds of the reflector's `CLOCK_MONOTONIC_RAW`; `None` means that the mark
/// could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerMarks {
    /// The kernel received the request's last byte (`peer_rx`).
    pub rx: Option<i64>,
    /// The application received the request (`peer_app_rx`).
    pub app_rx: Option<i64>,
    /// The application is about to write the reply (`peer_app_tx`).
    pub app_tx: Option<i64>,
    /// `CLOCK_REALTIME` - `CLOCK_MONOTONIC_RAW` at `app_tx`, in nanoseconds.
    pub wall_offset: i64,
    /// Send time of an earlier reply: a reply cannot contain its own.
    pub previous: Option<PreviousTx>,
}

/// The kernel's send timestamp of an earlier reply (`peer_nic_tx`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviousTx {
    /// The sequence number of the earlier reply.
    pub seq: u64,
    /// Nanoseconds of the reflector's `CLOCK_MONOTONIC_RAW`.
    pub nic_tx: i64,
}

/// Why bytes are no marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MarksError {
    /// Not exactly [`LEN`] bytes, or [`HEX_LEN`] digits.
    #[error("decode marks: {0} bytes is not their length")]
    WrongLength(usize),
    /// An unknown version; 0 is in the placeholder of a request.
    #[error("decode marks: version {0} is not known")]
    UnsupportedVersion(u8),
    /// A reserved bit is set, or an absent mark is not zero.
    #[error("decode marks: a reserved or absent field is not zero")]
    ReservedBitsSet,
    /// The text form has a character that is no hexadecimal digit.
    #[error("decode marks: not hexadecimal")]
    InvalidHex,
}

impl PeerMarks {
    /// Appends the encoded marks, [`LEN`] bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }

    /// The encoded marks, for callers that overwrite part of a buffer.
    pub fn to_bytes(&self) -> [u8; LEN] {
        let previous = self.previous.unwrap_or(PreviousTx { seq: 0, nic_tx: 0 });
        let mut bytes = [0; LEN];
        bytes[0] = VERSION;
        bytes[1] = self.presence();
        bytes[8..16].copy_from_slice(&self.rx.unwrap_or(0).to_be_bytes());
        bytes[16..24].copy_from_slice(&self.app_rx.unwrap_or(0).to_be_bytes());
        bytes[24..32].copy_from_slice(&self.app_tx.unwrap_or(0).to_be_bytes());
        bytes[32..40].copy_from_slice(&self.wall_offset.to_be_bytes());
        bytes[40..48].copy_from_slice(&previous.seq.to_be_bytes());
        bytes[48..56].copy_from_slice(&previous.nic_tx.to_be_bytes());
        bytes
    }

    /// Reads marks from exactly [`LEN`] bytes.
    ///
    /// # Errors
    /// When the length, the version or a field that must be zero is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, MarksError> {
        let wrong_length = || MarksError::WrongLength(bytes.len());
        let bytes: &[u8; LEN] = bytes.try_into().map_err(|_| wrong_length())?;
        if bytes[0] != VERSION {
            return Err(MarksError::UnsupportedVersion(bytes[0]));
        }
        let present = bytes[1];
        if present & !KNOWN != 0 || bytes[2..8] != [0; 6] {
            return Err(MarksError::ReservedBitsSet);
        }
        let mut reader = Reader::new(&bytes[8..]);
        let mut next = || reader.i64().ok_or_else(wrong_length);
        let (rx, app_rx, app_tx) = (next()?, next()?, next()?);
        let wall_offset = next()?;
        let (seq, nic_tx) = (next()?.cast_unsigned(), next()?);
        let previous = PreviousTx { seq, nic_tx };
        let marks = Self {
            rx: (present & HAS_RX != 0).then_some(rx),
            app_rx: (present & HAS_APP_RX != 0).then_some(app_rx),
            app_tx: (present & HAS_APP_TX != 0).then_some(app_tx),
            wall_offset,
            previous: (present & HAS_PREVIOUS != 0).then_some(previous),
        };
        if marks.to_bytes() == *bytes {
            Ok(marks)
        } else {
            Err(MarksError::ReservedBitsSet)
        }
    }

    /// Appends the marks as [`HEX_LEN`] lower-case digits.
    pub fn encode_hex(&self, out: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in self.to_bytes() {
            out.push(DIGITS[usize::from(byte >> 4)]);
            out.push(DIGITS[usize::from(byte & 15)]);
        }
    }

    /// Reads marks from exactly [`HEX_LEN`] hexadecimal digits of either case.
    ///
    /// # Errors
    /// As [`PeerMarks::decode`], and for a character that is no digit.
    pub fn decode_hex(text: &[u8]) -> Result<Self, MarksError> {
        if text.len() != HEX_LEN {
            return Err(MarksError::WrongLength(text.len()));
        }
        let mut bytes = [0; LEN];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Self::decode(&bytes)
    }

    fn presence(&self) -> u8 {
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        bit(self.rx.is_some(), HAS_RX)
            | bit(self.app_rx.is_some(), HAS_APP_RX)
            | bit(self.app_tx.is_some(), HAS_APP_TX)
            | bit(self.previous.is_some(), HAS_PREVIOUS)
    }
}

fn digit(byte: u8) -> Result<u8, MarksError> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(MarksError::InvalidHex),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn any_marks() -> impl Strategy<Value = PeerMarks> {
        let mark = || option::of(any::<i64>());
        let previous = option::of(any::<(u64, i64)>());
        (mark(), mark(), mark(), any::<i64>(), previous).prop_map(
            |(rx, app_rx, app_tx, wall_offset, previous)| PeerMarks {
                rx,
                app_rx,
                app_tx,
                wall_offset,
                previous: previous.map(|(seq, nic_tx)| PreviousTx { seq, nic_tx }),
            },
        )
    }

    proptest! {
        #[test]
        fn marks_roundtrip(marks in any_marks()) {
            let mut bytes = Vec::new();
            marks.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), LEN);
            prop_assert_eq!(PeerMarks::decode(&bytes), Ok(marks));
            let mut text = Vec::new();
            marks.encode_hex(&mut text);
            prop_assert_eq!(PeerMarks::decode_hex(&text), Ok(marks));
            text.make_ascii_uppercase();
            prop_assert_eq!(PeerMarks::decode_hex(&text), Ok(marks));
        }

        #[test]
        fn truncated_marks_are_refused(marks in any_marks(), keep in 0..LEN) {
            let bytes = marks.to_bytes();
            prop_assert_eq!(PeerMarks::decode(&bytes[..keep]), Err(MarksError::WrongLength(keep)));
        }

        #[test]
        fn decoded_marks_have_one_form(mut bytes in any::<[u8; 32]>(), tail in any::<[u8; 24]>()) {
            bytes[0] = VERSION;
            bytes[1] &= KNOWN;
            bytes[2..8].fill(0);
            let whole = [&bytes[..], &tail[..]].concat();
            if let Ok(marks) = PeerMarks::decode(&whole) {
                prop_assert_eq!(&marks.to_bytes()[..], &whole[..]);
            }
        }
    }

    #[test]
    fn zeroes_are_a_placeholder_and_no_timestamps() {
        assert_eq!(
            PeerMarks::decode(&[0; LEN]),
            Err(MarksError::UnsupportedVersion(0))
        );
        assert_eq!(
            PeerMarks::decode_hex(&[b'g'; HEX_LEN]),
            Err(MarksError::InvalidHex)
        );
    }
}
