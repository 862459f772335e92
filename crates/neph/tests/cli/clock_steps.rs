//! Captures of clocks that were set: when, by how much, and once.

use serde_json::Value;

use crate::clocks::{SECOND, START, compare_captures, document, exchanges, number};
use crate::neph::TestFolder;

/// The only step of two captures, the second read after the first.
fn step(files: &[String; 2]) -> Value {
    let ran = compare_captures(files, &["--format", "json"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let steps = document(&ran.out)["summary"]["steps"].clone();
    let [step] = steps.as_array().expect("a list").as_slice() else {
        panic!("{steps}");
    };
    step.clone()
}

#[test]
fn a_clock_that_was_set_back_is_one_step_however_little_and_at_either_point() {
    let set = START + 30 * SECOND;
    for backward_step in [2_000, 180, 120, 105, 90, 50, 20].map(|millis| millis * 1_000_000) {
        let folder = TestFolder::empty();
        let files = exchanges(&folder, |at| if at < set { at } else { at - backward_step });
        let second = step(&files);
        let error = number(&second["size_ns"]) + backward_step;
        assert!(error.abs() <= number(&second["bound_ns"]), "{second}");
        let step_window = number(&second["after_ns"])..=number(&second["before_ns"]);
        assert!(step_window.contains(&(set - START)), "{second}");
        // The other way round it is the first clock that was set back.
        let first = step(&[files[1].clone(), files[0].clone()]);
        let error = number(&first["size_ns"]) - backward_step;
        assert!(
            error.abs() <= number(&first["bound_ns"]),
            "{backward_step}: {first}"
        );
    }
}
