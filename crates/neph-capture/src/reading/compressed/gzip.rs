//! Decompression of gzip: its members, one after the other, and data after the last one.
//!
//! Does not own recognizing the compression (`compressed`).

use std::error::Error;
use std::fmt;
use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;

use super::corrupt_data;

pub const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Bytes per read. At an error, the output of the same read is lost: with this size at most gzip's window.
const MAX_READ_BYTES: usize = 32 << 10;

/// The compressed data is whole, and other data follows it.
#[derive(Debug)]
struct TrailingData;

impl fmt::Display for TrailingData {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("it is followed by data that is not gzip")
    }
}

impl Error for TrailingData {}

fn trailing_data_error() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, TrailingData)
}

/// Whether reading ended there, with all compressed data.
pub fn is_trailing(error: &io::Error) -> bool {
    let cause = error.get_ref();
    cause
        .and_then(|cause| cause.downcast_ref::<TrailingData>())
        .is_some()
}

/// Members of gzip, one after the other.
#[derive(Debug)]
pub struct Gzip<R: BufRead> {
    /// `None` once they are over.
    member: Option<GzDecoder<R>>,
    is_first: bool,
}

impl<R: BufRead> Gzip<R> {
    pub fn new(source: R) -> Self {
        Self {
            member: Some(GzDecoder::new(source)),
            is_first: true,
        }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = buffer.len().min(MAX_READ_BYTES);
        while let Some(mut member) = self.member.take() {
            // Data that only begins like a member is none.
            let is_trailing_data = !self.is_first && member.header().is_none();
            let read = member
                .read(&mut buffer[..limit])
                .map_err(|error| match error.kind() {
                    ErrorKind::InvalidInput | ErrorKind::InvalidData
                        if error.raw_os_error().is_none() =>
                    {
                        if is_trailing_data {
                            trailing_data_error()
                        } else {
                            corrupt_data("gzip")
                        }
                    }
                    _ => error,
                });
            match read {
                Ok(0) if limit > 0 => {
                    self.member = next_member(member.into_inner())?;
                    self.is_first = false;
                }
                read => {
                    self.member = Some(member);
                    return read;
                }
            }
        }
        Ok(0)
    }
}

/// The next member. Zeros up to the end are padding of a tape or of blocks, as for gzip.
fn next_member<R: BufRead>(mut source: R) -> io::Result<Option<GzDecoder<R>>> {
    let mut is_padded = false;
    loop {
        let bytes = match source.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        match bytes.first() {
            None => return Ok(None),
            Some(0) => is_padded = true,
            Some(first) if *first == MAGIC[0] && !is_padded => {
                return Ok(Some(GzDecoder::new(source)));
            }
            Some(_) => return Err(trailing_data_error()),
        }
        source.consume(zeros);
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use flate2::Compression;
    use flate2::bufread::GzEncoder;

    use super::*;
    use crate::reading::compressed::READ_BUFFER_BYTES;

    /// These bytes in a member of gzip, not compressed.
    fn stored_member(bytes: &[u8]) -> Vec<u8> {
        let mut compressed = Vec::new();
        GzEncoder::new(bytes, Compression::none())
            .read_to_end(&mut compressed)
            .expect("compressed");
        compressed
    }

    /// The output, and how reading ended.
    fn decompress(compressed: &[u8]) -> (Vec<u8>, io::Result<usize>) {
        let source = BufReader::with_capacity(READ_BUFFER_BYTES, compressed);
        let mut out = Vec::new();
        let read = Gzip::new(source).read_to_end(&mut out);
        (out, read)
    }

    #[test]
    fn trailing_bytes_after_gzip_members_are_handled_like_gzip() {
        let members = [stored_member(b"one "), stored_member(b"two")].concat();
        for zeros in [0, 1, 512, READ_BUFFER_BYTES + 1] {
            let (out, read) = decompress(&[&members[..], &vec![0; zeros]].concat());
            assert_eq!((&out[..], read.ok()), (&b"one two"[..], Some(7)), "{zeros}");
        }
        // The third is the format of compress.
        for trailing in [&b"a line\n"[..], b"\0\0\x1f\x8b", b"\x1f\x9d\x90 and more"] {
            let (out, read) = decompress(&[&members[..], trailing].concat());
            assert_eq!(out, b"one two");
            assert!(is_trailing(&read.expect_err("there is trailing data")));
        }
        // A truncated member is not trailing data.
        let (out, read) = decompress(&members[..members.len() - 3]);
        assert_eq!(out, b"one two");
        let error = read.expect_err("cut off");
        assert_eq!(
            (error.kind(), is_trailing(&error)),
            (ErrorKind::UnexpectedEof, false)
        );
    }
}
