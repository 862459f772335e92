//! Sends and receives a number of bytes in parts of any size, on sockets that block for at most a
//! tick.

use std::io::{self, ErrorKind, Read, Write};

/// Maximum bytes per call.
pub(super) const CHUNK: usize = 64 << 10;

/// Parts of a request or reply after which `go_on` is called even without a pause.
const PIECES_PER_CHECK: u32 = 16;

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// All bytes were moved.
    All,
    /// The peer closed the connection after this many bytes.
    Closed(usize),
    /// `go_on` returned false.
    Stopped,
}

/// A buffer for this many bytes, at most a chunk.
pub(super) fn buffer(bytes: u32) -> Vec<u8> {
    vec![0x5a; usize::try_from(bytes).unwrap_or(CHUNK).min(CHUNK)]
}

/// Whether a call timed out after a tick.
pub(super) fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// Receives this many bytes and discards them. Calls `go_on` at each tick without data, and from
/// time to time; it returns whether to continue.
#[inline]
pub(super) fn take(
    mut from: impl Read,
    buffer: &mut [u8],
    total: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> io::Result<Moved> {
    let (mut taken_len, mut piece_count) = (0, 0);
    while taken_len < total {
        let end = buffer.len().min(total - taken_len);
        match from.read(&mut buffer[..end]) {
            Ok(0) => return Ok(Moved::Closed(taken_len)),
            Ok(count) => {
                taken_len += count;
                piece_count += 1;
                if piece_count % PIECES_PER_CHECK == 0 && !go_on() {
                    return Ok(Moved::Stopped);
                }
            }
            Err(error) if is_pause(&error) => {
                if !go_on() {
                    return Ok(Moved::Stopped);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Moved::All)
}

/// Sends this many bytes, repeating `pattern`; calls `go_on` as [`take`] does.
#[inline]
pub(super) fn put(
    mut to: impl Write,
    pattern: &[u8],
    total: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> io::Result<Moved> {
    let (mut written_len, mut piece_count) = (0, 0);
    while written_len < total {
        let start = written_len % pattern.len().max(1);
        let end = pattern.len().min(start + total - written_len);
        match to.write(&pattern[start..end]) {
            Ok(count) => {
                written_len += count;
                piece_count += 1;
                if piece_count % PIECES_PER_CHECK == 0 && !go_on() {
                    return Ok(Moved::Stopped);
                }
            }
            Err(error) if is_pause(&error) => {
                if !go_on() {
                    return Ok(Moved::Stopped);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Moved::All)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Moves the given number of bytes in each call; 0 is a tick without data.
    struct Cut(VecDeque<usize>, Vec<u8>);

    impl Cut {
        fn next(&mut self, room: usize) -> io::Result<usize> {
            match self.0.pop_front() {
                Some(0) => Err(ErrorKind::WouldBlock.into()),
                Some(count) => Ok(count.min(room)),
                None => Ok(0),
            }
        }
    }

    impl Read for &mut Cut {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.next(buffer.len())
        }
    }

    impl Write for &mut Cut {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.next(bytes.len())?;
            self.1.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn cut(counts: &[usize]) -> Cut {
        Cut(counts.iter().copied().collect(), Vec::new())
    }

    #[test]
    fn bytes_are_counted_however_they_are_split() {
        let mut buffer = [0; 4];
        let (mut cutter, mut ticks) = (cut(&[1, 0, 3, 9, 0, 2]), 0);
        let mut go_on = || {
            ticks += 1;
            true
        };
        assert_eq!(
            take(&mut cutter, &mut buffer, 10, &mut go_on).expect("bytes"),
            Moved::All
        );
        assert_eq!(ticks, 2);
        let closed = take(&mut cut(&[3]), &mut buffer, 10, &mut || true);
        assert_eq!(closed.expect("bytes"), Moved::Closed(3));
        let drops = take(&mut cut(&[1; 40]), &mut buffer, 40, &mut || false);
        assert_eq!(drops.expect("bytes"), Moved::Stopped, "byte by byte");
        let stopped = take(&mut cut(&[3, 0]), &mut buffer, 10, &mut || false);
        assert_eq!(stopped.expect("bytes"), Moved::Stopped);
    }

    #[test]
    fn a_repeated_pattern_continues_after_a_partial_write() {
        let mut cutter = cut(&[2, 0, 2, 4, 9]);
        let moved = put(&mut cutter, b"abcd", 10, &mut || true);
        assert_eq!(moved.expect("bytes"), Moved::All);
        assert_eq!(cutter.1, b"abcdabcdab");
    }
}
