//! Captures that were packed: by gzip or zstd, told by their first bytes.
//!
//! Owns unpacking as a stream, in the memory of a window. What it reads was packed by anybody.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What is told apart only to name the remedy: first bytes and the program that unpacks it.
const OTHERS: [(&[u8], &str); 3] = [
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz"),
    (b"BZh", "bzip2"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
];
/// The largest window of zstd that is kept: what a decoder has to bear (RFC 8878, 3.1.1.1.2), and what
/// zstd takes up to level 19. A file of 4 KB may ask for far more.
const ZSTD_WINDOW: u64 = 8 << 20;
/// An empty last block, and room for the frame's checksum, which is not looked at.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
/// Compressed bytes that are asked for at once.
const AT_ONCE: usize = 128 << 10;

/// What a stream of bytes is.
pub(crate) enum Unpacked<'a> {
    /// Its bytes, unpacked if they were packed.
    Bytes(Box<dyn Read + 'a>),
    /// Packed by a program whose packing is not read here.
    Other(&'static str),
}

/// Unpacks what was packed.
///
/// # Errors
/// When the first bytes cannot be read.
pub(crate) fn unpacked<'a>(mut source: impl Read + 'a) -> io::Result<Unpacked<'a>> {
    let mut first = Vec::new();
    (&mut source).take(5).read_to_end(&mut first)?;
    let packed_by = |begins: &[u8]| first.starts_with(begins);
    if let Some((_, program)) = OTHERS.iter().find(|(begins, _)| packed_by(begins)) {
        return Ok(Unpacked::Other(program));
    }
    let (gzip, zstd) = (packed_by(&GZIP), packed_by(&ZSTD));
    let whole = Cursor::new(first).chain(source);
    let buffered = |whole| BufReader::with_capacity(AT_ONCE, whole);
    Ok(Unpacked::Bytes(if gzip {
        Box::new(MultiGzDecoder::new(buffered(whole)))
    } else if zstd {
        Box::new(Zstd::new(buffered(whole)))
    } else {
        Box::new(whole)
    }))
}

/// Frames of zstd, one behind the other; those that hold no data are skipped.
struct Zstd<R: BufRead>(State<R>);

enum State<R: BufRead> {
    Between(R),
    Within(R, Box<FrameDecoder>),
    /// The file ended within this frame; what came of it is still to be handed out.
    Cut(Box<FrameDecoder>),
    /// Nothing more can come.
    Over,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Self {
        Self(State::Between(source))
    }

    /// The next frame's decoder.
    fn begin(mut source: R) -> io::Result<State<R>> {
        if source.fill_buf()?.is_empty() {
            return Ok(State::Over);
        }
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(ZSTD_WINDOW);
        match decoder.init(&mut source) {
            Ok(()) => Ok(State::Within(source, Box::new(decoder))),
            Err(FrameDecoderError::WindowSizeTooBig { requested, .. }) => {
                Err(io::Error::other(format!(
                    "zstd packed it with a window of {requested} bytes, where {ZSTD_WINDOW} is the most; unpack it: zstd -dc --long=31 FILE | neph read -"
                )))
            }
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                io::copy(&mut (&mut source).take(length.into()), &mut io::sink())?;
                Ok(State::Between(source))
            }
            Err(error) => Err(broken(error)),
        }
    }
}

/// What the decoder says; the end of the file is the end of the file, however deep it says so.
fn broken(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(one) = cause {
        let read = one.downcast_ref::<io::Error>();
        if read.is_some_and(|read| read.kind() == io::ErrorKind::UnexpectedEof) {
            return io::ErrorKind::UnexpectedEof.into();
        }
        cause = one.source();
    }
    io::Error::other(error)
}

/// Decodes until there are bytes to hand out or the frame is over; not so where the file ends before.
fn is_decoded(decoder: &mut FrameDecoder, source: &mut impl Read) -> io::Result<bool> {
    while decoder.can_collect() == 0 && !decoder.is_finished() {
        match decode_block(decoder, source).map_err(broken) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
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
            self.0 = match std::mem::replace(&mut self.0, State::Over) {
                State::Over => return Ok(0),
                State::Between(source) => Self::begin(source)?,
                State::Within(mut source, mut decoder) => {
                    if !is_decoded(&mut decoder, &mut source)? {
                        // The decoder keeps a window back until it has seen a frame's end.
                        decode_block(&mut decoder, &mut &LAST_BLOCK[..]).map_err(broken)?;
                        self.0 = State::Cut(decoder);
                        continue;
                    }
                    let read = decoder.read(buffer)?;
                    if read > 0 {
                        self.0 = State::Within(source, decoder);
                        return Ok(read);
                    }
                    State::Between(source)
                }
                State::Cut(mut decoder) => {
                    let read = decoder.read(buffer)?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    self.0 = State::Cut(decoder);
                    return Ok(read);
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame whose window is `2^log` bytes, of so many blocks of 128 KiB of zeros.
    fn frame(log: u8, blocks: u32) -> Vec<u8> {
        let mut frame = ZSTD.to_vec();
        frame.extend([0, (log - 10) << 3]);
        for block in 1..=blocks {
            let header = 131_072 << 3 | 1 << 1 | u32::from(block == blocks);
            frame.extend(&header.to_le_bytes()[..3]);
            frame.push(0);
        }
        frame
    }

    #[test]
    fn a_frame_that_was_cut_gives_each_block_that_is_whole() {
        let whole = frame(23, 3);
        // Within the last block's header, before its byte, and within the checksum behind it.
        let mut checked = whole.clone();
        checked[4] |= 4;
        checked.extend([0; 3]);
        for (cut, blocks) in [
            (&whole[..whole.len() - 3], 2),
            (&whole[..whole.len() - 1], 2),
            (&whole[..7], 0),
            (&checked[..], 3),
        ] {
            let mut out = Vec::new();
            let error = Zstd::new(cut).read_to_end(&mut out).expect_err("cut");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
            assert_eq!(out.len(), blocks * 131_072);
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
