//! `neph stress` at the command line.

use serde_json::Value;

use crate::neph::neph;

#[test]
fn a_load_tells_what_each_thread_worked_by_its_own_clock() {
    let ran = neph([
        "stress", "cpu", "--target", "25%", "--cores", "1", "-w", "600ms", "--format", "json",
    ]);
    let told: Value = serde_json::from_str(&ran.out).expect("JSON");
    let [one] = told.as_array().expect("a list").as_slice() else {
        panic!("{told}")
    };
    assert_eq!(one["target_percent"], 25.0);
    assert!(one["lasted_ns"].as_i64() >= Some(600_000_000), "{one}");
    let worked = one["worked_percent"].as_f64().expect("a number");
    // It never works more than is asked, but for the last piece of each of 60 periods; less on a
    // machine that others use too.
    assert!(worked > 0.0 && worked < 40.0, "{worked}");
    assert!(one["hashes_per_second"].as_f64() > Some(0.0));
    // What it says and how it ends are one.
    let held = (worked - 25.0).abs() <= 3.0;
    assert_eq!(ran.status, i32::from(!held), "{}", ran.err);
    assert_eq!(ran.err.contains("was asked"), !held, "{}", ran.err);
}

#[test]
fn what_cannot_be_is_a_usage_error() {
    for (target, cpus) in [("0%", "0"), ("120%", "0"), ("50%", "1000"), ("half", "0")] {
        let ran = neph([
            "stress", "cpu", "--target", target, "--cpus", cpus, "-w", "1s",
        ]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
    }
}
