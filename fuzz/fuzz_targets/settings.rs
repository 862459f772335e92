//! The Latency Tester's settings: what reads has the same meaning as a plan has, so it is held to
//! the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checks/plan_invariants.rs"]
mod plan_invariants;

fuzz_target!(|text: &str| plan_invariants::check("settings.yaml", text));
