//! Messages to bytes and back: the length of the header as four bytes (little-endian), the header as
//! JSON. The bytes of a [`Part`](super::Part) or of a sample of packets follow.
//!
//! The bytes are untrusted: frames that are too long, truncated or malformed are refused without a panic.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{FromAgent, ToAgent};

/// Bytes of a file that travel in one message, at most.
pub const MAX_PART_BYTES: u32 = 256 << 10;
/// Bytes of the longest message: an order with a long list of pinned ports, or the state of one.
pub const LONGEST_FRAME: usize = 4 << 20;

const LENGTH_BYTES: usize = 4;

/// Bytes that are no message.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Longer than any message.
    #[error("a message of {0} bytes is longer than any that the other side may send")]
    TooLong(usize),
    /// Shorter than it claims to be.
    #[error("a message is cut off after {0} bytes")]
    Truncated(usize),
    /// Not one of the messages.
    #[error("a message cannot be understood: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A message that carries no bytes has some behind it.
    #[error("{0} bytes stand behind a message that has none")]
    Trailing(usize),
}

/// The bytes of a message to an agent.
pub fn encode_to_agent(message: &ToAgent) -> Result<Vec<u8>, FrameError> {
    encode(message, &[])
}

/// The message that a controller sent.
///
/// # Errors
/// The bytes are none.
pub fn decode_to_agent(bytes: &[u8]) -> Result<ToAgent, FrameError> {
    match decode(bytes)? {
        (message, []) => Ok(message),
        (_, trailing_bytes) => Err(FrameError::Trailing(trailing_bytes.len())),
    }
}

/// The bytes of a message from an agent.
pub fn encode_from_agent(message: &FromAgent) -> Result<Vec<u8>, FrameError> {
    match message {
        FromAgent::Part(part) => encode(message, &part.bytes),
        FromAgent::Sample { sample, .. } => encode(message, &sample.pcap),
        _ => encode(message, &[]),
    }
}

/// The message that an agent sent.
///
/// # Errors
/// The bytes are none.
pub fn decode_from_agent(bytes: &[u8]) -> Result<FromAgent, FrameError> {
    let (mut message, payload) = decode(bytes)?;
    let payload_field = match &mut message {
        FromAgent::Part(part) => &mut part.bytes,
        FromAgent::Sample { sample, .. } => &mut sample.pcap,
        _ if payload.is_empty() => return Ok(message),
        _ => return Err(FrameError::Trailing(payload.len())),
    };
    if payload.len() > MAX_PART_BYTES as usize {
        return Err(FrameError::TooLong(bytes.len()));
    }
    *payload_field = payload.to_vec();
    Ok(message)
}

fn encode(header: &impl Serialize, payload: &[u8]) -> Result<Vec<u8>, FrameError> {
    let header = serde_json::to_vec(header)?;
    let total_length = LENGTH_BYTES + header.len() + payload.len();
    let length = u32::try_from(header.len()).map_err(|_| FrameError::TooLong(total_length))?;
    if total_length > LONGEST_FRAME {
        return Err(FrameError::TooLong(total_length));
    }
    let mut bytes = Vec::with_capacity(total_length);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(payload);
    Ok(bytes)
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), FrameError> {
    if bytes.len() > LONGEST_FRAME {
        return Err(FrameError::TooLong(bytes.len()));
    }
    let truncated = || FrameError::Truncated(bytes.len());
    let (length, after_length) = bytes
        .split_first_chunk::<LENGTH_BYTES>()
        .ok_or_else(truncated)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (header, payload) = after_length
        .split_at_checked(length)
        .ok_or_else(truncated)?;
    Ok((serde_json::from_slice(header)?, payload))
}

#[cfg(test)]
mod tests {
    use neph_model::{OrderId, PacketSample};
    use proptest::prelude::*;

    use super::super::{OrderState, Part};
    use super::*;

    #[test]
    fn messages_decode_to_what_was_encoded_unless_truncated() {
        let id = OrderId::new();
        let fetch = ToAgent::Fetch {
            id,
            file: 3,
            from: 1 << 40,
            most: 1,
        };
        let bytes = encode_to_agent(&fetch).expect("short enough");
        assert_eq!(decode_to_agent(&bytes).expect("a message"), fetch);
        let part = Part {
            id,
            file: 0,
            from: 7,
            bytes: vec![0, 255, b'{'],
        };
        let state = OrderState::Forgotten;
        let sample = FromAgent::Sample {
            id,
            sample: PacketSample {
                kernel: "k".to_owned(),
                clock: None,
                pcap: vec![1, 0, 2],
            },
        };
        for message in [
            FromAgent::Part(part),
            FromAgent::State { id, state },
            sample,
        ] {
            let bytes = encode_from_agent(&message).expect("short enough");
            assert_eq!(decode_from_agent(&bytes).expect("a message"), message);
            for cut in 0..bytes.len().min(40) {
                assert!(decode_from_agent(&bytes[..cut]).is_err());
            }
        }
    }

    #[test]
    fn oversized_frames_and_trailing_bytes_are_refused() {
        let id = OrderId::new();
        let mut bytes = encode_to_agent(&ToAgent::Ask { id }).expect("short enough");
        bytes.push(0);
        assert!(matches!(
            decode_to_agent(&bytes),
            Err(FrameError::Trailing(1))
        ));
        let long = vec![0; LONGEST_FRAME + 1];
        assert!(matches!(
            decode_to_agent(&long),
            Err(FrameError::TooLong(_))
        ));
        let part = Part {
            id,
            file: 0,
            from: 0,
            bytes: vec![0; MAX_PART_BYTES as usize + 1],
        };
        let bytes = encode_from_agent(&FromAgent::Part(part)).expect("short enough");
        assert!(matches!(
            decode_from_agent(&bytes),
            Err(FrameError::TooLong(_))
        ));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_to_agent(&bytes);
            let _ = decode_from_agent(&bytes);
        }
    }
}
