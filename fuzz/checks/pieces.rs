//! Bytes as the network cuts them.

/// Cuts by the first byte of the input: 0 not at all, else into pieces of so many bytes.
pub fn cut(piece_size: u8, bytes: &[u8]) -> Vec<&[u8]> {
    match usize::from(piece_size) {
        0 => vec![bytes],
        piece_size => bytes.chunks(piece_size).collect(),
    }
}
