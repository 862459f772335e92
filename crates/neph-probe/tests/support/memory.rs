//! The memory of this process, as the kernel counts it.

use std::fs;

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
pub(crate) fn peak() -> u64 {
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
