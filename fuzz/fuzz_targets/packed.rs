//! Packed captures, gzip and zstd: the same bytes however the packed ones come, and of what is broken
//! the same beginning.
#![no_main]

use std::io::{self, Read};

use libfuzzer_sys::fuzz_target;
use neph_capture::reading::compressed::{Decompressed, decompress};

/// A few bytes unpack to very many: so many are looked at.
const MAX_UNPACKED_BYTES: u64 = 1 << 14;

/// Gives at most so many bytes at once.
struct ShortReads<'a>(&'a [u8], usize);

impl Read for ShortReads<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.1.min(buffer.len());
        self.0.read(&mut buffer[..length])
    }
}

/// What was decompressed, and whether that went well to its end; or the program that would have to.
fn unpack<'a>(source: impl Read + 'a) -> Result<(Vec<u8>, bool), &'static str> {
    match decompress(source).expect("memory can be read") {
        Decompressed::Unsupported(program) => Err(program),
        Decompressed::Bytes(reader) => {
            let mut unpacked = Vec::new();
            let is_complete = reader
                .take(MAX_UNPACKED_BYTES)
                .read_to_end(&mut unpacked)
                .is_ok();
            Ok((unpacked, is_complete))
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let [piece_size, file @ ..] = input else {
        return;
    };
    let piece_size = usize::from(*piece_size) + 1;
    match (unpack(file), unpack(ShortReads(file, piece_size))) {
        (Ok((whole, true)), Ok((pieces, true))) => assert!(whole == pieces),
        // How far what is broken can be unpacked depends on how much of it is there at once; it may be
        // farther than anybody looks.
        (Ok((whole, is_whole_complete)), Ok((pieces, is_pieces_complete))) => {
            assert!(whole.starts_with(&pieces) || pieces.starts_with(&whole));
            let is_limit_reached = |is_complete: bool, bytes: &[u8]| {
                !is_complete || bytes.len() as u64 == MAX_UNPACKED_BYTES
            };
            assert!(
                is_limit_reached(is_whole_complete, &whole)
                    && is_limit_reached(is_pieces_complete, &pieces)
            );
        }
        (Err(first), Err(second)) => assert_eq!(first, second),
        (first, second) => panic!("{} and {}", first.is_ok(), second.is_ok()),
    }
});
