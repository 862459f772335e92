//! Watching over a service: until it ends, or is to end.

use std::io::PipeReader;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Child;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use neph_model::Span;
use neph_sys::deadline::Deadline;
use neph_sys::ppoll::{self, Awaited};
use neph_sys::process::{self, Request};

use super::ServiceState;
use super::log::Output;

/// Waits for the service's end, or for the word to end it; ends it then. What it writes is kept
/// meanwhile.
pub(super) fn watch(
    mut child: Child,
    stop: &PipeReader,
    grace: Span,
    output: Option<Output>,
    state: &Mutex<ServiceState>,
) {
    let pid = child.id();
    let mut output = output;
    if let Ok(ended) = process::descriptor(pid) {
        let ended = ended.as_fd();
        if forward_until(&[ended, stop.as_fd()], &mut output, None) != Some(0) {
            let _ = process::ask_group(pid, Request::End);
            forward_until(&[ended], &mut output, Some(grace.to_duration()));
        }
    }
    // Its children as well: a master's workers are in its group. Before it is waited for, so that
    // the number is still its own.
    let _ = process::ask_group(pid, Request::Kill);
    let status = child.wait().ok().and_then(|status| status.code());
    // Its last words, before anybody knows that it ended.
    forward_until(&[], &mut output, Some(Duration::ZERO));
    *state.lock().unwrap_or_else(PoisonError::into_inner) = ServiceState::Ended(status);
    if output.is_some() {
        // What left its group goes on, and shall not find its output closed.
        forward_until(&[stop.as_fd()], &mut output, None);
    }
}

/// Passes output on until one of `descriptors` has something; none when the time is over.
fn forward_until(
    descriptors: &[BorrowedFd<'_>],
    output: &mut Option<Output>,
    timeout: Option<Duration>,
) -> Option<usize> {
    let deadline = timeout.map(Deadline::after);
    loop {
        let mut awaited: Vec<Awaited> =
            descriptors.iter().copied().map(Awaited::readable).collect();
        let output_readable = output
            .as_ref()
            .map(|output| Awaited::readable(output.as_fd()));
        awaited.extend(output_readable);
        let remaining = deadline.map(Deadline::left);
        ppoll::wait_through(&mut awaited, remaining).ok()?;
        let (readable, output_readable) = awaited.split_at(descriptors.len());
        if output_readable.first().is_some_and(Awaited::has_something)
            && !output.as_mut().is_some_and(Output::forward)
        {
            *output = None;
        }
        let index = readable.iter().position(Awaited::has_something);
        if index.is_some() || remaining == Some(Duration::ZERO) {
            return index;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::*;

    #[test]
    fn endless_output_does_not_delay_events_or_the_timeout() {
        let folder = tempfile::tempdir().expect("a folder");
        let (output, mut writer) = Output::create(&folder.path().join("x.log")).expect("a log");
        let writing = std::thread::spawn(move || while writer.write_all(&[b'y'; 5000]).is_ok() {});
        let mut output = Some(output);
        let (reader, stop) = io::pipe().expect("a pipe");
        let ends = [reader.as_fd()];
        let timeout = Some(Duration::from_millis(50));
        assert_eq!(forward_until(&ends, &mut output, timeout), None);
        drop(stop);
        assert_eq!(forward_until(&ends, &mut output, None), Some(0));
        drop(output);
        writing.join().expect("nobody reads any more");
    }

    #[test]
    fn closed_output_ends_the_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let (output, writer) = Output::create(&folder.path().join("x.log")).expect("a log");
        drop(writer);
        let mut output = Some(output);
        let timeout = Some(Duration::from_millis(20));
        assert_eq!(forward_until(&[], &mut output, timeout), None);
        assert!(output.is_none());
    }
}
