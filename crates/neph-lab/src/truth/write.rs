//! Writes records of engines to files, so that no engine waits for the disk.
//!
//! Owns the bounded queue and the single writer thread of a lab. An engine that adds a record never allocates
//! and makes no system call. The writer polls instead of being woken, less often after longer pauses. A
//! record that finds the queue full counts as missed.

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
use crate::gate::mix_bits;

/// Capacity of the queue for all links: 0.8 s at 150,000 packets/s.
const QUEUE_CAPACITY: usize = 131_072;
/// Initial and maximum interval of polling: the queue has room for the arrivals at a million packets a
/// second.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum buffer of a file while the writer is busy.
const FILE_BUFFER_BYTES: usize = 1 << 16;

/// The writer of all truth files of a lab: a thread that ends when all its users have ended.
#[derive(Clone, Debug)]
pub struct TruthThread {
    sender: SyncSender<WriterMessage>,
    opened: Arc<AtomicU32>,
}

/// A message to the writer, with the number of a file.
#[derive(Debug)]
enum WriterMessage {
    Open(u32, String, BufWriter<File>),
    Record(u32, Record),
    Close(u32, Sender<io::Result<()>>),
}

/// The engine's side.
#[derive(Debug)]
pub(crate) struct Recorder {
    sender: SyncSender<WriterMessage>,
    file: u32,
    every: NonZeroU32,
}

/// Waits until a file is complete.
#[derive(Debug)]
pub(crate) struct TruthWriter {
    sender: SyncSender<WriterMessage>,
    file: u32,
}

impl TruthThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// No thread could be created.
    pub fn start() -> io::Result<Self> {
        let (sender, receiver) = sync_channel(QUEUE_CAPACITY);
        thread::Builder::new()
            .name("truth".to_owned())
            .spawn(move || OpenFiles::default().receive_and_write(&receiver))?;
        Ok(Self {
            sender,
            opened: Arc::default(),
        })
    }

    /// Creates the file at `path` for one in `every` packets of `link`.
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
        let mut writer = BufWriter::with_capacity(FILE_BUFFER_BYTES, File::create_new(path)?);
        writer.write_all(&header)?;
        // An immediate reader finds a file without records, not an invalid one.
        writer.flush()?;
        let file = self.opened.fetch_add(1, Ordering::Relaxed);
        let sender = self.sender.clone();
        let open_message = WriterMessage::Open(file, link.to_owned(), writer);
        sender.send(open_message).map_err(|_| thread_ended())?;
        let recorder = Recorder {
            sender: sender.clone(),
            file,
            every,
        };
        Ok((recorder, TruthWriter { sender, file }))
    }
}

impl Recorder {
    /// Whether a packet is recorded. Its bytes decide, so all links on its path with the same sampling record
    /// the same packets.
    pub(crate) fn is_sampled(&self, identity: &Identity) -> bool {
        mix_bits(identity.hash).is_multiple_of(u64::from(self.every.get()))
    }

    /// Adds a record; false if it was missed.
    pub(crate) fn record(&self, record: Record) -> bool {
        self.sender
            .try_send(WriterMessage::Record(self.file, record))
            .is_ok()
    }
}

impl TruthWriter {
    /// Waits until all records are in the file.
    ///
    /// # Errors
    /// The first write that failed.
    pub(crate) fn finish(self) -> io::Result<()> {
        let (outcome_sender, receiver) = channel();
        let close_message = WriterMessage::Close(self.file, outcome_sender);
        self.sender
            .send(close_message)
            .map_err(|_| thread_ended())?;
        receiver.recv().map_err(|_| thread_ended())?
    }
}

fn thread_ended() -> io::Error {
    io::Error::other("the thread that writes it has ended")
}

/// The open files of the writer thread.
#[derive(Debug, Default)]
struct OpenFiles(BTreeMap<u32, OpenFile>);

/// A file, and the first error of writing it.
#[derive(Debug)]
struct OpenFile {
    link: String,
    file: BufWriter<File>,
    outcome: io::Result<()>,
}

impl OpenFiles {
    fn receive_and_write(mut self, receiver: &Receiver<WriterMessage>) {
        let mut poll_interval = MIN_POLL_INTERVAL;
        loop {
            match receiver.try_recv() {
                Ok(message) => {
                    self.handle_message(message);
                    poll_interval = MIN_POLL_INTERVAL;
                }
                Err(TryRecvError::Empty) => {
                    // The data so far survives a kill -9.
                    self.0.values_mut().for_each(OpenFile::flush);
                    clock::nap(poll_interval);
                    poll_interval = (poll_interval * 2).min(MAX_POLL_INTERVAL);
                }
                // Dropping a file writes the rest of it.
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    fn handle_message(&mut self, message: WriterMessage) {
        match message {
            WriterMessage::Open(number, link, file) => {
                let outcome = Ok(());
                self.0.insert(
                    number,
                    OpenFile {
                        link,
                        file,
                        outcome,
                    },
                );
            }
            WriterMessage::Record(number, record) => {
                if let Some(open_file) = self.0.get_mut(&number) {
                    open_file.write_unless_failed(|file| file.write_all(&record.encode()));
                }
            }
            WriterMessage::Close(number, outcome_sender) => {
                let open_file = self.0.remove(&number);
                let outcome = open_file.map_or(Ok(()), |mut open_file| {
                    open_file.flush();
                    open_file.outcome
                });
                // There is no receiver only if the engine's thread has ended.
                let _ = outcome_sender.send(outcome);
            }
        }
    }
}

impl OpenFile {
    fn flush(&mut self) {
        self.write_unless_failed(BufWriter::flush);
    }

    /// Writes, unless an earlier write failed: a file with a hole would be wrong.
    fn write_unless_failed(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if self.outcome.is_ok() {
            self.outcome = write(&mut self.file);
            if let Err(error) = &self.outcome {
                tracing::warn!(
                    "what link {} did is not recorded any further: {error}",
                    self.link
                );
            }
        }
    }
}
