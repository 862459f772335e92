//! From the engine to the file, without the engine ever waiting for the disk.
//!
//! Owns the bounded queue between them and the thread that writes. The engine's side never
//! allocates and never makes a system call: the writer looks for itself every few milliseconds
//! instead of being woken. A record that finds the queue full is counted as missed.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{HEADER_BYTES, MAGIC, RECORD_BYTES, Record};

/// Records that may wait for the disk: 1.3 s at 50,000 packets/s.
const QUEUE: usize = 65_536;
/// How often the writer looks.
const PAUSE: Duration = Duration::from_millis(5);

/// The engine's side.
#[derive(Debug)]
pub(crate) struct Recorder {
    queue: SyncSender<Record>,
    every: u32,
    seen: u32,
}

impl Recorder {
    /// Whether the next packet is among those recorded (one in `every`).
    pub(crate) fn wants_next(&mut self) -> bool {
        let wanted = self.seen == 0;
        self.seen = (self.seen + 1) % self.every;
        wanted
    }

    /// Hands a record over; false when it was missed.
    pub(crate) fn record(&self, record: Record) -> bool {
        self.queue.try_send(record).is_ok()
    }
}

/// The writing thread. It ends when the recorder is dropped and all is written.
#[derive(Debug)]
pub(crate) struct TruthWriter(JoinHandle<io::Result<()>>);

impl TruthWriter {
    /// Waits until everything is in the file.
    ///
    /// # Errors
    /// The first write that failed.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.0
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Makes the file at `path` for `link` and starts its writer.
pub(crate) fn start(
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
    let mut file = BufWriter::with_capacity(1 << 18, File::create(path)?);
    file.write_all(&header)?;
    let (queue, records) = sync_channel(QUEUE);
    let thread = thread::Builder::new()
        .name(format!("truth-{link}"))
        .spawn(move || drain(&records, &mut file))?;
    Ok((
        Recorder {
            queue,
            every: every.get(),
            seen: 0,
        },
        TruthWriter(thread),
    ))
}

fn drain(records: &Receiver<Record>, file: &mut impl Write) -> io::Result<()> {
    loop {
        match records.try_recv() {
            Ok(record) => file.write_all(&record.encode())?,
            Err(TryRecvError::Empty) => {
                // What is known so far survives a kill -9.
                file.flush()?;
                thread::sleep(PAUSE);
            }
            Err(TryRecvError::Disconnected) => return file.flush(),
        }
    }
}
