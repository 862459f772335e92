//! What several tests need: skipping with a word, waiting with a deadline, servers, namespaces.

mod memory;
mod net;
mod server;

use std::process::Stdio;
use std::time::Duration;

use neph_sys::deadline::wait_until;
use neph_sys::process;

pub(crate) use memory::{is_alone, peak_of, reset_peak};
pub(crate) use net::{End, Net};
pub(crate) use server::{serve_tcp, serve_udp};

/// Prints why a test cannot run here; under CI that is a failure.
pub(crate) fn skip(test: &str, reason: &str) {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "{test}: {reason}"
    );
    eprint_skip(test, reason);
}

#[expect(clippy::print_stdout, reason = "the test harness shows it")]
fn eprint_skip(test: &str, reason: &str) {
    println!("SKIP {test}: {reason}");
}

/// Whether a program answers to being asked for its version.
pub(crate) fn has(program: &str, version: &str) -> bool {
    let mut command = process::command(program);
    command
        .arg(version)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Looks until it is so, and fails where it is not in time.
pub(crate) fn eventually(condition: &str, is_so: impl FnMut() -> bool) {
    assert!(wait_until(Duration::from_secs(20), is_so), "{condition}");
}

/// Whether namespaces can be made.
pub(crate) fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}
