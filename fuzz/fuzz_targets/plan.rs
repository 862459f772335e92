//! Plans. Whatever the text, a plan that reads expands into a bounded matrix with distinct
//! scenarios, an order and a cost; one that does not is refused with places inside the text.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checks/matrix.rs"]
mod matrix;

fuzz_target!(|text: &str| matrix::check("plan.toml", text));
