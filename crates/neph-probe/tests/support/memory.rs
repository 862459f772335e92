//! The memory of this process, as the kernel counts it.

use std::fs;

use neph_sys::process;

/// Set for a test that has a process of its own: its name.
const ALONE: &str = "NEPH_TEST_ALONE";

/// Whether this process runs only the test of this name (with its modules). Otherwise it starts one that
/// does, and waits for it: what other tests need meanwhile does not count.
pub(crate) fn is_alone(test: &str) -> bool {
    if std::env::var(ALONE).as_deref() == Ok(test) {
        return true;
    }
    let program = std::env::current_exe().expect("this test binary");
    let ran = process::command(program)
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, test)
        .output()
        .expect("it starts");
    let [outputs, complaint] = [&ran.stdout, &ran.stderr].map(|text| String::from_utf8_lossy(text));
    let has_run = ran.status.success() && outputs.contains("1 passed");
    assert!(has_run, "{test}: {outputs}{complaint}");
    false
}

/// Resident memory at this moment, from which the peak is counted anew; kilobytes.
pub(crate) fn reset_peak() -> u64 {
    // proc(5): 5 resets the peak resident set size.
    fs::write("/proc/self/clear_refs", "5").expect("our own peak may be reset");
    read("VmRSS:")
}

/// By how much the peak since then exceeds it; kilobytes.
pub(crate) fn peak_of(before: u64) -> u64 {
    peak().saturating_sub(before)
}

/// The most memory that this process has used; kilobytes.
fn peak() -> u64 {
    read("VmHWM:")
}

fn read(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc is there");
    let line = status.lines().find(|line| line.starts_with(name));
    let digits: String = line
        .expect("the kernel reports it")
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().expect("a number")
}
