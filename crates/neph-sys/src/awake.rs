//! Keeping the cores of this machine awake.
//!
//! Owns a request to the kernel's power management (quality of service, `/dev/cpu_dma_latency`): no core may
//! take time to wake. An idle core then polls instead of halting. In a virtual machine the hypervisor
//! then does not give a halted core to another guest. Measured on 2 cores: a timer of 8 ms fired 46 us late
//! at the median and 0.12 ms at p99; without the request 105 us and 6 ms. The request counts as idle,
//! costs power, and ends with the process, even if that is killed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

const REQUEST: &str = "/dev/cpu_dma_latency";

/// Open requests of this process: replaces reading the device, for a process that has given up the
/// right to read it.
static STANDING: AtomicUsize = AtomicUsize::new(0);

/// While it lives, no core of this machine sleeps so deeply that waking takes time.
#[derive(Debug)]
pub struct Awake {
    /// The request stands as long as the file is open.
    _request: File,
}

impl Awake {
    /// Keeps all cores awake from now on.
    ///
    /// # Errors
    /// `EACCES` without root, `ENOENT` where the kernel has no such management.
    pub fn keep() -> io::Result<Self> {
        let mut request = OpenOptions::new().write(true).open(REQUEST)?;
        request.write_all(&0_i32.to_ne_bytes())?;
        STANDING.fetch_add(1, Ordering::Relaxed);
        Ok(Self { _request: request })
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        STANDING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many microseconds a core of this machine may take to wake, by the requests of all processes;
/// 2,000,000,000 without a request.
///
/// # Errors
/// As [`Awake::keep`], unless a request of this process stands.
pub fn permitted_us() -> io::Result<i32> {
    let mut value = [0; 4];
    let mut device = match File::open(REQUEST) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let is_active = STANDING.load(Ordering::Relaxed) > 0;
            return if is_active { Ok(0) } else { Err(error) };
        }
        opened => opened?,
    };
    device.read_exact(&mut value)?;
    Ok(i32::from_ne_bytes(value))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::deadline::Deadline;

    use super::*;

    #[test]
    fn the_latency_request_lasts_as_long_as_its_guard() {
        let before = permitted_us();
        let awake = match Awake::keep() {
            Ok(awake) => awake,
            Err(error) => {
                println!("SKIP the_latency_request_lasts_as_long_as_its_guard: {REQUEST}: {error}");
                let absent = error.kind() == io::ErrorKind::NotFound;
                assert!(absent || std::env::var_os("CI").is_none(), "CI is root");
                return;
            }
        };
        assert_eq!(permitted_us().expect("it could be written"), 0);
        drop(awake);
        // If no other process (a lab next to this test) made a request, there is none now.
        let before = before.expect("it could be written");
        let deadline = Deadline::after(Duration::from_secs(30));
        while before > 0 && permitted_us().expect("it could be written") == 0 {
            assert!(!deadline.has_passed(), "the request outlived its keeper");
        }
    }
}
