//! The Latency Tester's settings: what reads has the same meaning as a plan has, so it is held to
//! the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checks/matrix.rs"]
mod matrix;

fuzz_target!(|text: &str| matrix::check("settings.yaml", text));
