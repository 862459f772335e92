//! A guest's console: one command after the other, each with its output and its status.
//!
//! Owns the words that both ends speak. Its other end is the guest's first process, whose script is
//! in [`crate::links`]. It passes no network: what is measured is not disturbed by it.
//!
//! The serial line of an emulated machine may lose an interrupt, and then both ends wait for ever. So a
//! guest that is silent gets an empty line now and then, which its script passes over: the interrupt of
//! that line has the guest look at what it missed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use neph_sys::fifo;
use neph_sys::ppoll::{self, Awaited};

use super::pipes;
use crate::journal;

/// The longest command: what a pipe takes in one piece.
const LONGEST: usize = 4096;
const CHUNK: usize = 64 * 1024;
/// After so long without a word a guest gets an empty line; then after twice as long, and so on.
const SILENCE: Duration = Duration::from_secs(1);
/// The longest of these times.
const LONGEST_SILENCE: Duration = Duration::from_mins(1);
/// A guest that has not begun with a command after so long does not work any more.
const PATIENCE: Duration = Duration::from_mins(1);

/// What kept a command from running in a guest.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The guest is not there.
    #[error("guest '{site}' does not run any more; its last words are in a log in {}", folder.display())]
    Gone {
        /// Which.
        site: String,
        /// Its lab's.
        folder: PathBuf,
    },
    /// The command does not fit.
    #[error(
        "a command for guest '{site}' is one line of at most {LONGEST} bytes: put it into a script"
    )]
    Length {
        /// Which guest.
        site: String,
    },
    /// A pipe said no.
    #[error("the console of guest '{site}': {source}")]
    Pipe {
        /// Which guest.
        site: String,
        /// Why.
        source: io::Error,
    },
}

/// Whether there is a guest's console for `site` in the lab's folder.
pub(crate) fn has_console(lab: &str, site: &str) -> bool {
    pipes(&journal::folder(lab), site)[0].exists()
}

/// A guest's console, held by nobody else meanwhile.
#[derive(Debug)]
pub struct Console {
    site: String,
    into: File,
    out: File,
}

impl Console {
    /// Of `site` in the lab whose files are in `folder`; waits until nobody else holds it.
    pub(crate) fn open(folder: &Path, site: &str) -> Result<Self, ConsoleError> {
        let [into, out] = pipes(folder, site);
        let failed = |source: io::Error| {
            let site = site.to_owned();
            if fifo::is_unread(&source) || source.kind() == io::ErrorKind::NotFound {
                let folder = folder.to_owned();
                return ConsoleError::Gone { site, folder };
            }
            ConsoleError::Pipe { site, source }
        };
        let into = fifo::writer(&into).map_err(failed)?;
        // The guest has both open: nobody is waited for.
        let out = File::open(out).map_err(failed)?;
        out.lock().map_err(failed)?;
        let site = site.to_owned();
        Ok(Self { site, into, out })
    }

    /// Runs a line of the shell in the guest, writes what it writes (errors too) to `told`, and
    /// returns its status.
    ///
    /// # Errors
    /// The guest ended, the line is too long, or `told` takes no more.
    pub fn run(&mut self, line: &str, told: &mut dyn Write) -> Result<u8, ConsoleError> {
        let order = format!("{} {line}\n", std::process::id());
        if order.len() > LONGEST || line.contains('\n') {
            let site = self.site.clone();
            return Err(ConsoleError::Length { site });
        }
        let begun = self.into.write_all(order.as_bytes());
        let ended = begun.and_then(|()| {
            let mut heard = Vec::new();
            // What somebody who was killed left unread comes first.
            let sign = format!("{} begin\n", std::process::id());
            self.until(&sign, &mut heard, Some(PATIENCE), None)?;
            let end = format!("\n{} end ", std::process::id());
            self.until(&end, &mut heard, None, Some(told))?;
            let mut status = Vec::new();
            std::mem::swap(&mut status, &mut heard);
            while !status.contains(&b'\n') {
                self.more(&mut status, Some(PATIENCE))?;
            }
            let text = String::from_utf8_lossy(&status);
            let number = text.lines().next().and_then(|line| line.parse().ok());
            number.ok_or_else(|| io::Error::other("the guest does not tell how it ended"))
        });
        ended.map_err(|source| ConsoleError::Pipe {
            site: self.site.clone(),
            source,
        })
    }

    /// Reads up to `sign`, which is passed over; what comes before it is told.
    fn until(
        &mut self,
        sign: &str,
        heard: &mut Vec<u8>,
        patience: Option<Duration>,
        mut told: Option<&mut dyn Write>,
    ) -> io::Result<()> {
        let sign = sign.as_bytes();
        loop {
            let place = heard.windows(sign.len()).position(|part| part == sign);
            // What may be the sign's beginning is kept.
            let sure = place.unwrap_or_else(|| (heard.len() + 1).saturating_sub(sign.len()));
            if let Some(told) = &mut told
                && sure > 0
            {
                told.write_all(&heard[..sure])?;
                told.flush()?;
            }
            heard.drain(..sure + place.map_or(0, |_| sign.len()));
            if place.is_some() {
                return Ok(());
            }
            self.more(heard, patience)?;
        }
    }

    /// Waits for more, at most for `patience`.
    fn more(&mut self, heard: &mut Vec<u8>, patience: Option<Duration>) -> io::Result<()> {
        let (mut silence, mut waited) = (SILENCE, Duration::ZERO);
        loop {
            let mut awaited = [Awaited::readable(self.out.as_fd())];
            ppoll::wait_through(&mut awaited, Some(silence))?;
            if awaited[0].has_something() {
                break;
            }
            waited += silence;
            if patience.is_some_and(|patience| waited >= patience) {
                let why = format!("the guest has said nothing for {} s", waited.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            // A pipe that is full holds lines enough.
            let _ = self.into.write(b"\n");
            silence = (silence * 2).min(LONGEST_SILENCE);
        }
        let mut chunk = vec![0; CHUNK];
        let length = self.out.read(&mut chunk)?;
        if length == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the guest ended",
            ));
        }
        heard.extend_from_slice(&chunk[..length]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::thread;

    use neph_sys::process;

    use super::*;

    /// A guest that hears nothing until an empty line wakes it, as one that lost an interrupt does.
    #[test]
    fn a_guest_that_lost_an_interrupt_is_woken_by_an_empty_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let [into, out] = pipes(folder.path(), "guest");
        let made = process::command("mkfifo").args([&into, &out]).status();
        assert!(made.expect("mkfifo").success());
        let open = |path| File::options().read(true).write(true).open(path);
        let (hears, mut says) = (open(&into).expect("a pipe"), open(&out).expect("a pipe"));
        let guest = thread::spawn(move || {
            let mut lines = io::BufReader::new(hears).lines().map_while(Result::ok);
            let order = lines.next().expect("an order");
            let woken = lines.next().expect("an empty line");
            let id = order.split(' ').next().expect("a number");
            write!(says, "{id} begin\nhi\n{id} end 3\n").expect("somebody reads");
            (says, woken)
        });
        let mut console = Console::open(folder.path(), "guest").expect("a console");
        let mut told = Vec::new();
        assert_eq!(console.run("echo hi", &mut told).expect("it ran"), 3);
        assert_eq!(told, b"hi");
        let (_says, woken) = guest.join().expect("it was fine");
        assert_eq!(woken, "");
    }
}
