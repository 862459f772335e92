//! A guest's console: runs commands one after the other, with output and status.
//!
//! Owns the protocol of both ends. The other end is the guest's first process, whose script is in
//! [`crate::links`]. The console does not use the network, so it does not disturb measurements.
//!
//! The serial line of an emulated host may lose an interrupt; then both ends would wait forever. So a silent
//! guest gets an empty line from time to time, which its script ignores. The interrupt of that line makes the
//! guest read what it missed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neph_sys::fifo;
use neph_sys::ppoll::{self, Awaited};

use super::console_pipes;
use crate::journal;

/// The longest command: the atomic size of a pipe.
const MAX_COMMAND_LEN: usize = 4096;
const CHUNK: usize = 64 * 1024;
/// A guest gets an empty line after this time without output. The interrupt of an empty line may be lost,
/// too: until a command has started, lines follow at this interval. Later the interval doubles.
const MIN_WAKE_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum of these times.
const MAX_WAKE_INTERVAL: Duration = Duration::from_mins(1);
/// A guest that has not started a command after this time has failed.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// Why a command did not run in a guest.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The guest has ended.
    #[error("guest '{site}' does not run any more; its last words are in a log in {}", folder.display())]
    GuestEnded {
        /// The guest.
        site: String,
        /// The folder of its lab.
        folder: PathBuf,
    },
    /// The command is too long.
    #[error(
        "a command for guest '{site}' is one line of at most {MAX_COMMAND_LEN} bytes: put it into a script"
    )]
    Length {
        /// The guest.
        site: String,
    },
    /// A pipe failed.
    #[error("the console of guest '{site}': {source}")]
    Pipe {
        /// The guest.
        site: String,
        /// The error.
        source: io::Error,
    },
}

/// Whether the lab's folder has a guest's console for `site`.
pub(crate) fn has_console(lab: &str, site: &str) -> bool {
    console_pipes(&journal::folder(lab), site)[0].exists()
}

/// A guest's console, locked against other users.
#[derive(Debug)]
pub struct Console {
    site: String,
    input: File,
    output: File,
}

impl Console {
    /// Opens the console of `site` in the lab with this `folder`; waits until it is free.
    pub(crate) fn open(folder: &Path, site: &str) -> Result<Self, ConsoleError> {
        let [input, output] = console_pipes(folder, site);
        let failed = |source: io::Error| {
            let site = site.to_owned();
            if fifo::is_unread(&source) || source.kind() == io::ErrorKind::NotFound {
                let folder = folder.to_owned();
                return ConsoleError::GuestEnded { site, folder };
            }
            ConsoleError::Pipe { site, source }
        };
        let input = fifo::writer(&input).map_err(failed)?;
        // The guest has both ends open, so this does not block.
        let output = File::open(output).map_err(failed)?;
        output.lock().map_err(failed)?;
        let site = site.to_owned();
        Ok(Self {
            site,
            input,
            output,
        })
    }

    /// Runs a shell line in the guest, writes its output and errors to `reported`, and returns its status.
    ///
    /// # Errors
    /// The guest ended, the line is too long, or `reported` failed.
    pub fn run(&mut self, line: &str, output: &mut dyn Write) -> Result<u8, ConsoleError> {
        let command = format!("{} {line}\n", std::process::id());
        if command.len() > MAX_COMMAND_LEN || line.contains('\n') {
            let site = self.site.clone();
            return Err(ConsoleError::Length { site });
        }
        let write_result = self.input.write_all(command.as_bytes());
        let outcome = write_result.and_then(|()| {
            let mut received = Vec::new();
            // Output that a killed user left unread precedes it.
            let marker = format!("{} begin\n", std::process::id());
            self.read_until(&marker, &mut received, Some(START_TIMEOUT), None)?;
            let end = format!("\n{} end ", std::process::id());
            self.read_until(&end, &mut received, None, Some(output))?;
            let mut status = Vec::new();
            std::mem::swap(&mut status, &mut received);
            while !status.contains(&b'\n') {
                self.read_more(&mut status, Some(START_TIMEOUT))?;
            }
            let text = String::from_utf8_lossy(&status);
            let number = text.lines().next().and_then(|line| line.parse().ok());
            number.ok_or_else(|| io::Error::other("the guest did not report its exit status"))
        });
        outcome.map_err(|source| ConsoleError::Pipe {
            site: self.site.clone(),
            source,
        })
    }

    /// Reads up to `marker`, and writes what precedes it.
    fn read_until(
        &mut self,
        marker: &str,
        received: &mut Vec<u8>,
        timeout: Option<Duration>,
        mut output: Option<&mut dyn Write>,
    ) -> io::Result<()> {
        let marker = marker.as_bytes();
        loop {
            let index = received
                .windows(marker.len())
                .position(|window| window == marker);
            // Keeps bytes that may be the start of the sign.
            let output_length =
                index.unwrap_or_else(|| (received.len() + 1).saturating_sub(marker.len()));
            if let Some(output) = &mut output
                && output_length > 0
            {
                output.write_all(&received[..output_length])?;
                output.flush()?;
            }
            received.drain(..output_length + index.map_or(0, |_| marker.len()));
            if index.is_some() {
                return Ok(());
            }
            self.read_more(received, timeout)?;
        }
    }

    /// Waits for more, at most for `timeout`.
    fn read_more(&mut self, received: &mut Vec<u8>, timeout: Option<Duration>) -> io::Result<()> {
        let (mut wake_interval, mut waited) = (MIN_WAKE_INTERVAL, Duration::ZERO);
        loop {
            let mut awaited = [Awaited::readable(self.output.as_fd())];
            ppoll::wait_through(&mut awaited, Some(wake_interval))?;
            if awaited[0].has_something() {
                break;
            }
            waited += wake_interval;
            if timeout.is_some_and(|timeout| waited >= timeout) {
                let reason = format!("no output of the guest for {} s", waited.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            // A full pipe contains lines already.
            let _ = self.input.write(b"\n");
            if timeout.is_none() {
                wake_interval = (wake_interval * 2).min(MAX_WAKE_INTERVAL);
            }
        }
        let mut chunk = vec![0; CHUNK];
        let length = self.output.read(&mut chunk)?;
        if length == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the guest ended",
            ));
        }
        received.extend_from_slice(&chunk[..length]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::thread;

    use neph_sys::process;

    use super::*;

    /// A guest that reads nothing until an empty line arrives, like one that lost an interrupt.
    #[test]
    fn a_guest_that_lost_an_interrupt_is_woken_by_an_empty_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let [input, out] = console_pipes(folder.path(), "guest");
        let made = process::command("mkfifo").args([&input, &out]).status();
        assert!(made.expect("mkfifo").success());
        let open = |path| File::options().read(true).write(true).open(path);
        let (guest_input, mut guest_output) =
            (open(&input).expect("a pipe"), open(&out).expect("a pipe"));
        let guest = thread::spawn(move || {
            let mut lines = io::BufReader::new(guest_input)
                .lines()
                .map_while(Result::ok);
            let command = lines.next().expect("an order");
            let woken = lines.next().expect("an empty line");
            let id = command.split(' ').next().expect("a number");
            write!(guest_output, "{id} begin\nhi\n{id} end 3\n").expect("it has a reader");
            (guest_output, woken)
        });
        let mut console = Console::open(folder.path(), "guest").expect("a console");
        let mut output = Vec::new();
        assert_eq!(console.run("echo hi", &mut output).expect("it ran"), 3);
        assert_eq!(output, b"hi");
        let (_guest_output, woken) = guest.join().expect("it was fine");
        assert_eq!(woken, "");
    }
}
