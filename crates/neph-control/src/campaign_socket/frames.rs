//! Encoding of the socket: frames with the name of an agent, and blocks.

use std::io::{self, ErrorKind, Read, Write};

use neph_agent::remote::LONGEST_FRAME;
use neph_model::AgentName;

/// Maximum frame: a message, the name of its agent, and their lengths.
const MAX_FRAME_BYTES: usize = LONGEST_FRAME + 64;

/// Bytes of a frame about an agent that was revoked. No encoded message has them.
pub(super) const REVOKED_FRAME: &[u8] = b"revoked";

pub(super) fn write_frame(
    stream: &mut impl Write,
    agent: &AgentName,
    bytes: &[u8],
) -> io::Result<()> {
    let name = agent.as_str().as_bytes();
    let (Ok(length), Ok(name_length)) = (
        u32::try_from(1 + name.len() + bytes.len()),
        u8::try_from(name.len()),
    ) else {
        return Err(io::Error::from(ErrorKind::InvalidInput));
    };
    let mut frame = Vec::with_capacity(5 + name.len() + bytes.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.push(name_length);
    frame.extend_from_slice(name);
    frame.extend_from_slice(bytes);
    stream.write_all(&frame)
}

/// Reads the next frame: its agent, and the bytes of the message.
pub(super) fn read_frame(stream: &mut impl Read) -> io::Result<(AgentName, Vec<u8>)> {
    let invalid_frame = || io::Error::from(ErrorKind::InvalidData);
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if !(1..=MAX_FRAME_BYTES).contains(&length) {
        return Err(invalid_frame());
    }
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame)?;
    let (name_length, rest) = frame.split_first().ok_or_else(invalid_frame)?;
    let (name, bytes) = rest
        .split_at_checked(usize::from(*name_length))
        .ok_or_else(invalid_frame)?;
    let name = std::str::from_utf8(name)
        .ok()
        .and_then(|name| name.parse().ok());
    Ok((name.ok_or_else(invalid_frame)?, bytes.to_vec()))
}

pub(super) fn write_block(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length =
        u32::try_from(bytes.len()).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
    stream.write_all(&length.to_le_bytes())?;
    stream.write_all(bytes)
}

pub(super) fn read_block(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME_BYTES {
        return Err(io::Error::from(ErrorKind::InvalidData));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_blocks_decode_to_what_was_written_unless_truncated() {
        let agent: AgentName = "ams".parse().expect("a name");
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &agent, b"message").expect("it fits");
        let read = read_frame(&mut bytes.as_slice()).expect("whole");
        assert_eq!(read, (agent, b"message".to_vec()));
        for cut in 0..bytes.len() {
            read_frame(&mut &bytes[..cut]).expect_err("it is cut off");
        }
        let mut block = Vec::new();
        write_block(&mut block, b"text").expect("it fits");
        assert_eq!(read_block(&mut block.as_slice()).expect("whole"), b"text");
        for cut in 0..block.len() {
            read_block(&mut &block[..cut]).expect_err("it is cut off");
        }
    }

    #[test]
    fn invalid_frame_lengths_and_agent_names_are_refused() {
        let framed = |length: usize, rest: &[u8]| {
            let length = u32::try_from(length).expect("it fits");
            [&length.to_le_bytes(), rest].concat()
        };
        for invalid in [
            framed(0, b""),
            framed(MAX_FRAME_BYTES + 1, &[0; 16]),
            framed(u32::MAX as usize, &[0; 16]),
            framed(4, b"\x09ams"),
            framed(4, b"\x03AMS"),
            framed(3, b"\x02\xff\xfe"),
            framed(1, b"\x00"),
        ] {
            read_frame(&mut invalid.as_slice()).expect_err("no frame");
        }
        let long = framed(MAX_FRAME_BYTES + 1, &[0; 16]);
        let refused = read_block(&mut long.as_slice()).expect_err("too long");
        assert_eq!(refused.kind(), ErrorKind::InvalidData);
    }
}
