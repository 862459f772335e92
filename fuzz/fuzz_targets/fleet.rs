//! A fleet whose stamps, replies and failures come in any order and about any port: each message is
//! told once and in its flow's order, and the tally counts what was reported.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_probe::fuzzing::fleet;

fuzz_target!(|bytes: &[u8]| {
    fleet(bytes);
});
