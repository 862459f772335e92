//! A STAMP session whose reflector claims any times and spoils its replies: no stage of a message is
//! negative, and its stages add up to its response time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_probe::fuzzing::stamp;

fuzz_target!(|bytes: &[u8]| {
    stamp(bytes);
});
