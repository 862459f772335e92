//! A trace that routers and strangers answer as they like: it ends, asks no faster and no farther
//! than it may, and tells no more than was requested. What it tells makes a diamond.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_flows::build_diamond;
use neph_probe::fuzzing::trace;

fuzz_target!(|bytes: &[u8]| {
    let routes = trace(bytes);
    let drawn = build_diamond(&routes);
    assert_eq!(drawn.flows as usize, routes.len());
});
