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
        if first(&[ended, stop.as_fd()], &mut output, None) != Some(0) {
            let _ = process::ask_group(pid, Request::End);
            first(&[ended], &mut output, Some(grace.to_duration()));
        }
    }
    // Its children as well: a master's workers are in its group. Before it is waited for, so that
    // the number is still its own.
    let _ = process::ask_group(pid, Request::Kill);
    let status = child.wait().ok().and_then(|status| status.code());
    // Its last words, before anybody knows that it ended.
    first(&[], &mut output, Some(Duration::ZERO));
    *state.lock().unwrap_or_else(PoisonError::into_inner) = ServiceState::Ended(status);
    if output.is_some() {
        // What left its group goes on, and shall not find its output closed.
        first(&[stop.as_fd()], &mut output, None);
    }
}

/// Passes output on until one of `ends` has something; none when the time is over.
fn first(
    ends: &[BorrowedFd<'_>],
    output: &mut Option<Output>,
    patience: Option<Duration>,
) -> Option<usize> {
    let until = patience.map(Deadline::after);
    loop {
        let mut awaited: Vec<Awaited> = ends.iter().copied().map(Awaited::readable).collect();
        let written = output
            .as_ref()
            .map(|output| Awaited::readable(output.as_fd()));
        awaited.extend(written);
        let left = until.map(Deadline::left);
        ppoll::wait_through(&mut awaited, left).ok()?;
        let (ended, written) = awaited.split_at(ends.len());
        if written.first().is_some_and(Awaited::has_something)
            && !output.as_mut().is_some_and(Output::pass_on)
        {
            *output = None;
        }
        let index = ended.iter().position(Awaited::has_something);
        if index.is_some() || left == Some(Duration::ZERO) {
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
        let (output, mut writer) = Output::kept_in(&folder.path().join("x.log")).expect("a log");
        let writing = std::thread::spawn(move || while writer.write_all(&[b'y'; 5000]).is_ok() {});
        let mut output = Some(output);
        let (reader, stop) = io::pipe().expect("a pipe");
        let ends = [reader.as_fd()];
        let moment = Some(Duration::from_millis(50));
        assert_eq!(first(&ends, &mut output, moment), None);
        drop(stop);
        assert_eq!(first(&ends, &mut output, None), Some(0));
        drop(output);
        writing.join().expect("nobody reads any more");
    }

    #[test]
    fn closed_output_ends_the_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let (output, writer) = Output::kept_in(&folder.path().join("x.log")).expect("a log");
        drop(writer);
        let mut output = Some(output);
        let moment = Some(Duration::from_millis(20));
        assert_eq!(first(&[], &mut output, moment), None);
        assert!(output.is_none());
    }
}
