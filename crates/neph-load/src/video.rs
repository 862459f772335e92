//! Frame sizes of a video: 25 frames a second, with the same number of bytes each second. The first
//! frame of a second is an intra frame (large); the others contain only changes (small, of varied
//! size).
//!
//! Owns the sizes. Sends nothing.

use neph_model::{BitRate, Span};

/// Size of each frame of a second, in parts of [`PARTS_PER_SECOND`]. The first is an intra frame;
/// another
/// large one in the middle is a change of scene.
const FRAME_PARTS: [u64; 25] = [
    220, 22, 28, 35, 24, 31, 40, 26, 33, 21, 29, 37, 95, 45, 30, 25, 34, 27, 38, 23, 32, 28, 36,
    24, 17,
];
const PARTS_PER_SECOND: u64 = 1_000;
/// Time from one frame to the next.
pub(crate) const FRAME_INTERVAL: Span = Span::from_millis(40);
/// Maximum payload of a packet: fits any link with headers of tunnels.
const MAX_PACKET_BYTES: u64 = 1_200;

/// The payload of each packet of the frame with this number, bytes; the last ones may be smaller.
pub(crate) fn packets(frame: u64, rate: BitRate) -> impl Iterator<Item = u64> {
    let bytes = bytes(frame, rate);
    let count = bytes.div_ceil(MAX_PACKET_BYTES).max(1);
    (0..count).map(move |packet| bytes * (packet + 1) / count - bytes * packet / count)
}

/// The payload of all packets of the frame with this number, bytes.
pub(crate) fn bytes(frame: u64, rate: BitRate) -> u64 {
    let second = rate.bits_per_second() / 8;
    let index = usize::try_from(frame % FRAME_PARTS.len() as u64).unwrap_or_default();
    let before: u64 = FRAME_PARTS.iter().take(index).sum();
    // Differences of cumulative sizes, so that rounding loses no byte.
    let until = |parts: u64| {
        second / PARTS_PER_SECOND * parts + second % PARTS_PER_SECOND * parts / PARTS_PER_SECOND
    };
    until(before + FRAME_PARTS[index]) - until(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_the_bytes_of_its_rate_and_no_packet_exceeds_the_mtu() {
        assert_eq!(FRAME_PARTS.iter().sum::<u64>(), PARTS_PER_SECOND);
        for rate in [100_001, 1_450_000, 25_000_007] {
            let sizes: Vec<u64> = (25..50).flat_map(|f| packets(f, BitRate(rate))).collect();
            assert_eq!(sizes.iter().sum::<u64>(), rate / 8);
            assert!(sizes.iter().all(|size| *size <= MAX_PACKET_BYTES));
            let first: u64 = packets(0, BitRate(rate)).sum();
            assert!(first > 5 * packets(1, BitRate(rate)).sum::<u64>());
        }
    }
}
