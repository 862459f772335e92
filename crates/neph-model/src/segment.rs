//! A TCP segment: how many of them a message takes.
//!
//! Owns the default size of a segment. Neither the TCP statistics of timestamps nor the store hold
//! a connection's own segment size. Everything that is calculated from sizes uses this default:
//! segments of a message, the first window, overhead of headers. Behind a tunnel or over IPv6 a
//! segment carries some dozen bytes less, over loopback 64 KiB: results that depend on it allow for
//! that.

use crate::ByteSize;

/// What a full segment carries: Ethernet's 1500 bytes less the headers of IPv4 and TCP with the
/// timestamps option.
pub const SEGMENT: ByteSize = ByteSize(1448);

/// What a connection may send before anything was acknowledged: ten segments (RFC 6928).
pub const INITIAL_WINDOW: ByteSize = ByteSize(10 * SEGMENT.0);

impl ByteSize {
    /// The segments that a message of this size takes: one at least.
    pub const fn segments(self) -> u64 {
        match self.0.div_ceil(SEGMENT.0) {
            0 => 1,
            many => many,
        }
    }

    /// Whether a message of this size is a single segment.
    pub const fn is_one_segment(self) -> bool {
        self.0 <= SEGMENT.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_needs_at_least_one_segment_and_the_initial_window_has_ten() {
        let sizes = [0, 1, 1448, 1449, 14_480, 14_481].map(ByteSize);
        assert_eq!(sizes.map(ByteSize::segments), [1, 1, 1, 2, 10, 11]);
        let single = sizes.map(ByteSize::is_one_segment);
        assert_eq!(single, [true, true, true, false, false, false]);
        assert_eq!(INITIAL_WINDOW, ByteSize(14_480));
    }
}
