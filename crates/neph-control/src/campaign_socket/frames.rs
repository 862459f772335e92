//! The bytes of the socket: frames with the name of an agent, and blocks.

use std::io::{self, ErrorKind, Read, Write};

use neph_agent::remote::LONGEST_FRAME;
use neph_model::AgentName;

/// A message, the name of its agent, and their lengths.
const LONGEST: usize = LONGEST_FRAME + 64;

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

/// The next frame: its agent, and the bytes of the message.
pub(super) fn read_frame(stream: &mut impl Read) -> io::Result<(AgentName, Vec<u8>)> {
    let bad = || io::Error::from(ErrorKind::InvalidData);
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if !(1..=LONGEST).contains(&length) {
        return Err(bad());
    }
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame)?;
    let (name_length, rest) = frame.split_first().ok_or_else(bad)?;
    let (name, bytes) = rest
        .split_at_checked(usize::from(*name_length))
        .ok_or_else(bad)?;
    let name = std::str::from_utf8(name)
        .ok()
        .and_then(|name| name.parse().ok());
    Ok((name.ok_or_else(bad)?, bytes.to_vec()))
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
    if length > LONGEST {
        return Err(io::Error::from(ErrorKind::InvalidData));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
