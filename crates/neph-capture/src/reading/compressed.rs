//! Captures that are compressed with gzip or zstd, recognized by their first bytes.
//!
//! Owns decompression as a stream, in the memory of a window. The input is not trusted. Does not own the
//! members of gzip (gzip).

pub mod gzip;

use std::error::Error;
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use gzip::Gzip;

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Formats that are recognized only to name the remedy: first bytes and the program for them.
const UNSUPPORTED_FORMATS: [(&[u8], &str); 3] = [
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz"),
    (b"BZh", "bzip2"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
];
/// The largest accepted window of zstd: the recommended minimum for decoders (RFC 8878, 3.1.1.1.2) and what
/// zstd uses up to level 19. A file of 4 KB may request far more.
const ZSTD_WINDOW: u64 = 8 << 20;
/// An empty last block, and room for the frame's checksum.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
/// Compressed bytes per read.
pub const READ_BUFFER_BYTES: usize = 128 << 10;

/// A stream of bytes, by compression.
pub enum Decompressed<'a> {
    /// Its bytes, decompressed if needed.
    Bytes(Box<dyn Read + 'a>),
    /// Compressed by this program, which is not supported.
    Unsupported(&'static str),
}

impl fmt::Debug for Decompressed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(_) => f.write_str("Bytes"),
            Self::Unsupported(program) => f.debug_tuple("Unsupported").field(program).finish(),
        }
    }
}

/// Decompresses a stream if it is compressed.
///
/// # Errors
/// When the first bytes cannot be read.
pub fn decompress<'a>(mut source: impl Read + 'a) -> io::Result<Decompressed<'a>> {
    let mut first_bytes = Vec::new();
    (&mut source).take(5).read_to_end(&mut first_bytes)?;
    let has_magic = |magic: &[u8]| first_bytes.starts_with(magic);
    if let Some((_, program)) = UNSUPPORTED_FORMATS
        .iter()
        .find(|(magic, _)| has_magic(magic))
    {
        return Ok(Decompressed::Unsupported(program));
    }
    let (gzip, zstd) = (has_magic(&gzip::MAGIC), has_magic(&ZSTD));
    let stream = Cursor::new(first_bytes).chain(source);
    let buffered = |stream| BufReader::with_capacity(READ_BUFFER_BYTES, stream);
    Ok(Decompressed::Bytes(if gzip {
        Box::new(Gzip::new(buffered(stream)))
    } else if zstd {
        Box::new(Zstd::new(buffered(stream)))
    } else {
        Box::new(stream)
    }))
}

/// The error where decompression ends, with a remedy.
fn invalid_data(reason: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

/// The error for data that was damaged in transfer or on disk.
pub fn corrupt_data(program: &str) -> io::Error {
    invalid_data(format!(
        "the {program} data is corrupt there or before; copy the file again ({program} -t checks a copy)"
    ))
}

/// Frames of zstd, one after the other. Frames without data are skipped.
struct Zstd<R: BufRead>(State<R>);

enum State<R: BufRead> {
    BetweenFrames(R),
    InFrame(R, Box<FrameDecoder>),
    /// The file ended or is corrupt within this frame; its output so far is still to be delivered.
    Ended(Box<FrameDecoder>, io::Error),
    /// No more data.
    Finished,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Self {
        Self(State::BetweenFrames(source))
    }

    /// The next frame's decoder.
    fn start_frame(mut source: R) -> io::Result<State<R>> {
        if source.fill_buf()?.is_empty() {
            return Ok(State::Finished);
        }
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(ZSTD_WINDOW);
        match decoder.init(&mut source) {
            Ok(()) => Ok(State::InFrame(source, Box::new(decoder))),
            Err(FrameDecoderError::WindowSizeTooBig { requested, .. }) => {
                Err(invalid_data(format!(
                    "its zstd window of {requested} bytes is above the limit of {ZSTD_WINDOW}; decompress it: zstd -dc --long=31 FILE | neph read -"
                )))
            }
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                io::copy(&mut (&mut source).take(length.into()), &mut io::sink())?;
                Ok(State::BetweenFrames(source))
            }
            Err(error) => Err(convert_error(&error)),
        }
    }
}

/// Converts a decoder's error. An end of file or an error of the operating system is passed on, however deep
/// it is nested.
fn convert_error(error: &FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(read) = error.downcast_ref::<io::Error>() {
            if read.kind() == ErrorKind::UnexpectedEof {
                return ErrorKind::UnexpectedEof.into();
            }
            if let Some(number) = read.raw_os_error() {
                return io::Error::from_raw_os_error(number);
            }
        }
        cause = error.source();
    }
    corrupt_data("zstd")
}

/// Whether the output of a frame matches its checksum, if it has one.
fn has_valid_checksum(decoder: &FrameDecoder) -> bool {
    let checksum = decoder.get_checksum_from_data();
    checksum.is_none() || checksum == decoder.get_calculated_checksum()
}

/// Decodes until there is output or the frame is over.
fn decode(decoder: &mut FrameDecoder, source: &mut impl Read) -> io::Result<()> {
    while decoder.can_collect() == 0 && !decoder.is_finished() {
        decode_block(decoder, source).map_err(|error| convert_error(&error))?;
    }
    Ok(())
}

fn decode_block(
    decoder: &mut FrameDecoder,
    source: &mut impl Read,
) -> Result<bool, FrameDecoderError> {
    decoder.decode_blocks(source, BlockDecodingStrategy::UptoBlocks(1))
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.0 = match std::mem::replace(&mut self.0, State::Finished) {
                State::Finished => return Ok(0),
                State::BetweenFrames(source) => Self::start_frame(source)?,
                State::InFrame(mut source, mut decoder) => {
                    if let Err(error) = decode(&mut decoder, &mut source) {
                        // The decoder keeps a window back until it has seen a frame's end.
                        if decode_block(&mut decoder, &mut &LAST_BLOCK[..]).is_err() {
                            return Err(error);
                        }
                        self.0 = State::Ended(decoder, error);
                        continue;
                    }
                    let read = decoder.read(buffer)?;
                    if read > 0 {
                        self.0 = State::InFrame(source, decoder);
                        return Ok(read);
                    }
                    if !has_valid_checksum(&decoder) {
                        return Err(corrupt_data("zstd"));
                    }
                    State::BetweenFrames(source)
                }
                State::Ended(mut decoder, error) => {
                    let read = decoder.read(buffer)?;
                    if read == 0 {
                        return Err(error);
                    }
                    self.0 = State::Ended(decoder, error);
                    return Ok(read);
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with a window of `2^log` bytes and this many blocks of 128 KiB of zeros.
    fn frame(window_log: u8, blocks: u32) -> Vec<u8> {
        let mut frame = ZSTD.to_vec();
        frame.extend([0, (window_log - 10) << 3]);
        for block in 1..=blocks {
            let header = 131_072 << 3 | 1 << 1 | u32::from(block == blocks);
            frame.extend(&header.to_le_bytes()[..3]);
            frame.push(0);
        }
        frame
    }

    #[test]
    fn a_truncated_frame_yields_each_complete_block() {
        let frame_bytes = frame(23, 3);
        // Within the last block's header, before its byte, and within the checksum after it.
        let mut with_checksum = frame_bytes.clone();
        with_checksum[4] |= 4;
        with_checksum.extend([0; 3]);
        for (truncated, blocks) in [
            (&frame_bytes[..frame_bytes.len() - 3], 2),
            (&frame_bytes[..frame_bytes.len() - 1], 2),
            (&frame_bytes[..7], 0),
            (&with_checksum[..], 3),
        ] {
            let mut out = Vec::new();
            let error = Zstd::new(truncated).read_to_end(&mut out).expect_err("cut");
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
            assert_eq!(out.len(), blocks * 131_072);
        }
    }

    #[test]
    fn a_corrupt_frame_yields_the_blocks_before_and_names_the_remedy() {
        let frame_bytes = frame(23, 3);
        let corrupt = [&frame_bytes[..frame_bytes.len() - 4], &[6, 0, 0]].concat();
        let mut out = Vec::new();
        let error = Zstd::new(&corrupt[..])
            .read_to_end(&mut out)
            .expect_err("broken");
        assert_eq!(
            (error.kind(), out.len()),
            (ErrorKind::InvalidData, 2 * 131_072)
        );
        assert!(error.to_string().contains("zstd -t"), "{error}");
    }

    #[test]
    fn a_frame_with_a_wrong_checksum_is_broken() {
        let mut with_checksum = frame(23, 1);
        with_checksum[4] |= 4;
        // XXH64 of 128 KiB of zeros, its lower half.
        with_checksum.extend(0x7a95_5073_u32.to_le_bytes());
        let mut out = Vec::new();
        Zstd::new(&with_checksum[..])
            .read_to_end(&mut out)
            .expect("whole");
        *with_checksum.last_mut().expect("a checksum") ^= 1;
        let error = Zstd::new(&with_checksum[..]).read_to_end(&mut out);
        assert_eq!(
            error.expect_err("another checksum").kind(),
            ErrorKind::InvalidData
        );
    }

    /// Refuses every read.
    struct FailingReader;

    impl Read for FailingReader {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }

    #[test]
    fn a_read_error_is_not_reported_as_a_broken_file() {
        let gzip = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..];
        for beginning in [&frame(23, 3)[..9], gzip] {
            let Ok(Decompressed::Bytes(mut bytes)) = decompress(beginning.chain(FailingReader))
            else {
                panic!("not supported");
            };
            let error = bytes.read_to_end(&mut Vec::new()).expect_err("refused");
            assert_eq!(error.raw_os_error(), Some(5), "{error}");
        }
    }

    #[test]
    fn a_window_that_would_take_much_memory_is_refused_with_a_remedy() {
        let mut out = Vec::new();
        let read = Zstd::new(&frame(23, 80)[..]).read_to_end(&mut out);
        assert_eq!(read.expect("8 MiB"), 80 * 131_072);
        let error = Zstd::new(&frame(24, 1)[..]).read_to_end(&mut Vec::new());
        let error = error.expect_err("16 MiB").to_string();
        assert!(error.contains("zstd -dc --long=31"), "{error}");
    }
}
