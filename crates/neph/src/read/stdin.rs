//! Standard input as a capture; it may be idle for any time.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use neph_model::Stop;
use neph_sys::ppoll::{Awaited, wait};

/// Ctrl-C is noticed after this long, at most.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Opens standard input.
pub(super) fn open(stop: &Stop) -> io::Result<Box<dyn Read>> {
    // Without a buffer: poll does not detect buffered data.
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(Box::new(InterruptibleStdin {
        input: input.into(),
        stop: stop.clone(),
    }))
}

/// Standard input that may be idle for any time; reading ends when the caller sets the stop flag.
struct InterruptibleStdin {
    input: File,
    stop: Stop,
}

impl Read for InterruptibleStdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut poll_fds = [Awaited::readable(self.input.as_fd())];
            wait(&mut poll_fds, Some(STOP_CHECK_INTERVAL))?;
            if poll_fds[0].has_something() {
                return self.input.read(buffer);
            }
            if self.stop.is_set() {
                return Ok(0);
            }
        }
    }
}
