//! From the engines to their files, without any of them ever waiting for the disk.
//!
//! Owns the bounded queue between them and the one thread that writes, for all links of a lab. An
//! engine that hands a record over never allocates and never makes a system call: the writer looks
//! for itself instead of being woken, the more seldom the longer nothing came. A record that finds
//! the queue full is counted as missed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread;
use std::time::Duration;

use neph_sys::clock;

use super::{HEADER_BYTES, Identity, MAGIC, RECORD_BYTES, Record};
use crate::gate::mixed;

/// Records that may wait for the disk, of all links together: 0.8 s at 150,000 packets/s.
const QUEUE: usize = 131_072;
/// How soon the writer looks again after the last record, and at most: the queue holds what comes
/// meanwhile at a million packets a second.
const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// What a file keeps back at most until the writer has nothing else to do.
const KEPT_BACK: usize = 1 << 16;

/// The writer of all truth files of a lab: a thread that ends when all who know it are gone.
#[derive(Clone, Debug)]
pub struct Scribe {
    words: SyncSender<Word>,
    opened: Arc<AtomicU32>,
}

/// What the writer is told, each about the file with a number.
#[derive(Debug)]
enum Word {
    Opens(u32, String, BufWriter<File>),
    Record(u32, Record),
    Closes(u32, Sender<io::Result<()>>),
}

/// An engine's side.
#[derive(Debug)]
pub(crate) struct Recorder {
    words: SyncSender<Word>,
    file: u32,
    every: NonZeroU32,
}

/// The means to wait until a file is whole.
#[derive(Debug)]
pub(crate) struct TruthWriter {
    words: SyncSender<Word>,
    file: u32,
}

impl Scribe {
    /// Starts the thread.
    ///
    /// # Errors
    /// There can be no further thread.
    pub fn start() -> io::Result<Self> {
        let (words, reported) = sync_channel(QUEUE);
        thread::Builder::new()
            .name("truth".to_owned())
            .spawn(move || Files::default().serve(&reported))?;
        Ok(Self {
            words,
            opened: Arc::default(),
        })
    }

    /// Makes the file at `path` for one in `every` packets of `link`.
    pub(crate) fn open(
        &self,
        path: &Path,
        link: &str,
        every: NonZeroU32,
    ) -> io::Result<(Recorder, TruthWriter)> {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&u32::try_from(RECORD_BYTES).expect("56").to_le_bytes());
        header[12..16].copy_from_slice(&every.get().to_le_bytes());
        let name = link.as_bytes();
        header[16..16 + name.len().min(48)].copy_from_slice(&name[..name.len().min(48)]);
        let mut writer = BufWriter::with_capacity(KEPT_BACK, File::create_new(path)?);
        writer.write_all(&header)?;
        // Whoever looks at once finds a record without packets, no strange file.
        writer.flush()?;
        let file = self.opened.fetch_add(1, Ordering::Relaxed);
        let words = self.words.clone();
        let opens = Word::Opens(file, link.to_owned(), writer);
        words.send(opens).map_err(|_| gone())?;
        let recorder = Recorder {
            words: words.clone(),
            file,
            every,
        };
        Ok((recorder, TruthWriter { words, file }))
    }
}

impl Recorder {
    /// Whether a packet is among those recorded. Its own bytes decide: a packet that one link
    /// records is recorded by every link on its way that records as many.
    pub(crate) fn wants(&self, identity: &Identity) -> bool {
        mixed(identity.hash).is_multiple_of(u64::from(self.every.get()))
    }

    /// Hands a record over; false when it was missed.
    pub(crate) fn record(&self, record: Record) -> bool {
        self.words.try_send(Word::Record(self.file, record)).is_ok()
    }
}

impl TruthWriter {
    /// Waits until everything that was handed over is in the file.
    ///
    /// # Errors
    /// The first write that failed.
    pub(crate) fn finish(self) -> io::Result<()> {
        let (report, reported) = channel();
        let closes = Word::Closes(self.file, report);
        self.words.send(closes).map_err(|_| gone())?;
        reported.recv().map_err(|_| gone())?
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that writes it has ended")
}

/// What the writer's thread has open.
#[derive(Debug, Default)]
struct Files(BTreeMap<u32, Written>);

/// A file, and how writing it went.
#[derive(Debug)]
struct Written {
    link: String,
    file: BufWriter<File>,
    outcome: io::Result<()>,
}

impl Files {
    fn serve(mut self, words: &Receiver<Word>) {
        let mut pause = PAUSE;
        loop {
            match words.try_recv() {
                Ok(word) => {
                    self.heed(word);
                    pause = PAUSE;
                }
                Err(TryRecvError::Empty) => {
                    // What is known so far survives a kill -9.
                    self.0.values_mut().for_each(Written::flush);
                    clock::nap(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                // Dropping a file writes what is left of it.
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    fn heed(&mut self, word: Word) {
        match word {
            Word::Opens(number, link, file) => {
                let outcome = Ok(());
                self.0.insert(
                    number,
                    Written {
                        link,
                        file,
                        outcome,
                    },
                );
            }
            Word::Record(number, record) => {
                if let Some(written) = self.0.get_mut(&number) {
                    written.attempt(|file| file.write_all(&record.encode()));
                }
            }
            Word::Closes(number, report) => {
                let written = self.0.remove(&number);
                let outcome = written.map_or(Ok(()), |mut written| {
                    written.flush();
                    written.outcome
                });
                // Nobody listens only if the engine's thread is gone.
                let _ = report.send(outcome);
            }
        }
    }
}

impl Written {
    fn flush(&mut self) {
        self.attempt(BufWriter::flush);
    }

    /// Does it, unless something failed before: a file with a hole in it would lie.
    fn attempt(&mut self, work: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if self.outcome.is_ok() {
            self.outcome = work(&mut self.file);
            if let Err(error) = &self.outcome {
                tracing::warn!(
                    "what link {} did is not recorded any further: {error}",
                    self.link
                );
            }
        }
    }
}
