//! Generates the built-in trace: `NEPH_BLESS=1 cargo test -p neph-load animation` writes it.
//!
//! An animation of 30 s at 25 frames per second: one nearly still second, then a scene with growing
//! bursts. Each second has 125 bytes for each kbit/s of its rate. The weight of its first frame is
//! 2000. That of every other frame is 750 plus a random number from 0 to 500 (splitmix64, seed 27,
//! modulo 501).

use std::fs;
use std::path::Path;

use super::trace::Trace;

const FRAMES: usize = 25;
const SECONDS: usize = 30;
const SEED: u64 = 27;
/// Seconds with a burst: the first has 1203 kbit/s, each later one 130 kbit/s more.
const BURSTS: [usize; 6] = [3, 9, 13, 20, 24, 29];

/// Bit rate of a second in kbit/s.
fn rate(second: usize) -> u64 {
    if let Some(index) = BURSTS.iter().position(|burst| *burst == second) {
        return 1_203 + 130 * index as u64;
    }
    if second == 0 { 110 } else { 845 }
}

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014).
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn animation() -> String {
    let mut text =
        "# An animation of 30 s whose bursts grow, nominally 1 Mbit/s; frame sizes in bytes.\n\
        # Made by crates/neph-load/src/media/generate.rs (splitmix64, seed 27).\nfps 25\n"
            .to_owned();
    let mut state = SEED;
    for second in 0..SECONDS {
        let weights: Vec<u64> = (0..FRAMES)
            .map(|frame| match frame {
                0 => 2_000,
                _ => 750 + splitmix64(&mut state) % 501,
            })
            .collect();
        let (bytes, weight_sum) = (rate(second) * 125, weights.iter().sum::<u64>());
        let mut before = 0;
        for weight in weights {
            let size = bytes * (before + weight) / weight_sum - bytes * before / weight_sum;
            text.push_str(&format!("{size}\n"));
            before += weight;
        }
    }
    text
}

#[test]
fn the_animation_trace_matches_its_formula() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/animation.trace");
    let generated = animation();
    if std::env::var_os("NEPH_BLESS").is_some() {
        fs::write(&path, &generated).expect("the folder is there");
    }
    let stored_frames = fs::read_to_string(path).expect("it is there");
    assert_eq!(stored_frames, generated, "NEPH_BLESS=1 writes it");
    let trace = Trace::animation().expect("a trace");
    assert_eq!(trace.mean_rate().bits_per_second(), 957_100);
    let seconds: Vec<u64> = (0..SECONDS as u64)
        .map(|second| {
            let sizes = (0..25).map(|frame| u64::from(trace.size(second * 25 + frame)));
            sizes.sum::<u64>() * 8 / 1_000
        })
        .collect();
    let (min, max) = (seconds.iter().min(), seconds.iter().max());
    assert_eq!((min, max), (Some(&110), Some(&1_853)));
}
