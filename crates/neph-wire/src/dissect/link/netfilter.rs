//! The netfilter log of Linux: attributes of length, type and value; one of them is the payload.

use super::{Unwrapped, plain};
use crate::bytes::Reader;

/// `NFULA_PAYLOAD`.
const PAYLOAD: u16 = 9;

pub(super) fn netfilter(mut reader: Reader<'_>) -> Unwrapped<'_> {
    reader.skip(4)?;
    loop {
        let length = usize::from(reader.u16()?.swap_bytes());
        let kind = reader.u16()?.swap_bytes();
        let length_of_value = length.checked_sub(4)?;
        if kind == PAYLOAD {
            // As much of it as was captured.
            let remaining = reader.remaining();
            return Some(Ok(plain(
                &remaining[..remaining.len().min(length_of_value)],
            )));
        }
        reader.skip(length_of_value)?;
        reader.skip(length.next_multiple_of(4) - length)?;
    }
}
