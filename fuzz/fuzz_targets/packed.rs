//! Packed captures, gzip and zstd: the same bytes however the packed ones come, and of what is broken
//! the same beginning.
#![no_main]

use std::io::{self, Read};

use libfuzzer_sys::fuzz_target;
use neph_capture::reading::compressed::{Decompressed, decompress};

/// A few bytes unpack to very many: so many are looked at.
const MAXIMUM: u64 = 1 << 14;

/// Gives at most so many bytes at once.
struct Dribble<'a>(&'a [u8], usize);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.1.min(buffer.len());
        self.0.read(&mut buffer[..most])
    }
}

/// What was decompressed, and whether that went well to its end; or the program that would have to.
fn bytes<'a>(source: impl Read + 'a) -> Result<(Vec<u8>, bool), &'static str> {
    match decompress(source).expect("memory can be read") {
        Decompressed::Unsupported(program) => Err(program),
        Decompressed::Bytes(from) => {
            let mut out = Vec::new();
            let went_well = from.take(MAXIMUM).read_to_end(&mut out).is_ok();
            Ok((out, went_well))
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let [piece, file @ ..] = input else { return };
    let piece = usize::from(*piece) + 1;
    match (bytes(file), bytes(Dribble(file, piece))) {
        (Ok((whole, true)), Ok((pieces, true))) => assert!(whole == pieces),
        // How far what is broken can be unpacked depends on how much of it is there at once; it may be
        // farther than anybody looks.
        (Ok((whole, well)), Ok((pieces, too))) => {
            assert!(whole.starts_with(&pieces) || pieces.starts_with(&whole));
            let is_enough = |is_well: bool, bytes: &[u8]| !is_well || bytes.len() as u64 == MAXIMUM;
            assert!(is_enough(well, &whole) && is_enough(too, &pieces));
        }
        (Err(one), Err(other)) => assert_eq!(one, other),
        (one, other) => panic!("{} and {}", one.is_ok(), other.is_ok()),
    }
});
