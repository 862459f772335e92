//! Plans. Whatever the text, a plan that reads expands into a bounded matrix with distinct
//! scenarios, an order and a cost; one that does not is refused with places inside the text.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checks/plan_invariants.rs"]
mod plan_invariants;

fuzz_target!(|text: &str| plan_invariants::check("plan.toml", text));
