//! The log of a campaign's orders: one append-only file for all orders and changes of their states.
//!
//! Owns the file, when it is rewritten without completed orders, and when it is synced. A record
//! survives a kill once its call has returned. Only an order must also survive a power failure
//! before it is sent: [`OrdersLog::sync`] covers all orders added since the last call. The facts
//! that a result is stored or that an agent has forgotten an order can be requested again
//! (docs/decisions/0014-one-log-of-orders.md).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use neph_journal::{LogWriter, read_log};
use neph_model::OrderId;
use neph_text::DiskError;

use super::{EarlierOrder, InboxError, SentOrder};

/// Start of the file.
const HEADER: &[u8] = b"neph orders 1\n";
/// Size in bytes up to which the file is not rewritten.
const MIN_REWRITE_BYTES: u64 = 8 << 20;
/// The file is rewritten when open orders are less than 1/`LIVE_PART` of it.
const LIVE_PART: u64 = 4;

const BOOT: u8 = b'b';
const ORDER: u8 = b'o';
const STORED: u8 = b's';
const OVER: u8 = b'r';

/// The contents of a log: the texts of open orders, and whether their results are stored.
#[derive(Debug, Default)]
struct Contents {
    /// Boot of the host during which the log was written; `None` if the file is no log.
    boot: Option<Vec<u8>>,
    orders: BTreeMap<OrderId, LoggedOrder>,
}

#[derive(Debug)]
struct LoggedOrder {
    text: Vec<u8>,
    is_stored: bool,
}

/// State from an earlier process.
#[derive(Debug, Default)]
pub(super) struct EarlierState {
    pub(super) orders: Vec<EarlierOrder>,
    /// The host was not rebooted since, so unsynced writes are on its disk too.
    pub(super) is_same_boot: bool,
}

/// The log of orders that are out.
#[derive(Debug)]
pub(super) struct OrdersLog {
    path: PathBuf,
    writer: LogWriter,
    /// Text length of each order that is out.
    live: BTreeMap<OrderId, u64>,
    live_bytes: u64,
    /// A power failure may lose an order.
    is_unsynced: bool,
    /// Length of the file after a power failure.
    #[cfg(test)]
    pub(super) synced_bytes: u64,
    /// The process was killed: it does nothing at its end.
    #[cfg(test)]
    pub(super) is_killed: bool,
}

/// Removes the file if no order is out.
impl Drop for OrdersLog {
    fn drop(&mut self) {
        #[cfg(test)]
        if self.is_killed {
            return;
        }
        if self.live.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl OrdersLog {
    /// Opens the log in `folder` and rewrites it without completed orders.
    pub(super) fn open(folder: &Path) -> Result<(Self, EarlierState), InboxError> {
        let path = folder.join("orders.log");
        let contents = read(&path)?;
        let boot = boot();
        let mut earlier = EarlierState {
            is_same_boot: contents.boot.is_some() && contents.boot == boot,
            ..EarlierState::default()
        };
        for (id, logged) in &contents.orders {
            let sent: Result<SentOrder, _> = serde_json::from_slice(&logged.text);
            let sent = sent.map_err(io::Error::from);
            earlier.orders.push(EarlierOrder {
                id: *id,
                sent: sent.map_err(DiskError::of("understand an order in", &path))?,
                is_stored: logged.is_stored,
            });
        }
        let writer = write(&path, &contents.orders)?;
        let lengths = contents.orders.iter();
        let live: BTreeMap<OrderId, u64> = lengths
            .map(|(id, logged)| (*id, logged.text.len() as u64))
            .collect();
        let log = Self {
            path,
            #[cfg(test)]
            synced_bytes: writer.bytes(),
            #[cfg(test)]
            is_killed: false,
            writer,
            live_bytes: live.values().sum(),
            live,
            is_unsynced: false,
        };
        Ok((log, earlier))
    }

    /// Adds an order as text. It may be sent after the next [`Self::sync`].
    pub(super) fn add(&mut self, id: OrderId, text: &[u8]) -> Result<(), InboxError> {
        self.writer.append(&record(ORDER, id, text))?;
        self.live.insert(id, text.len() as u64);
        self.live_bytes += text.len() as u64;
        self.is_unsynced = true;
        Ok(())
    }

    /// Syncs all added orders.
    pub(super) fn sync(&mut self) -> Result<(), InboxError> {
        if self.is_unsynced {
            self.writer.sync()?;
            self.is_unsynced = false;
            #[cfg(test)]
            {
                self.synced_bytes = self.writer.bytes();
            }
        }
        Ok(())
    }

    /// Records that the result of an order is stored.
    pub(super) fn mark_stored(&mut self, id: OrderId) -> Result<(), InboxError> {
        Ok(self.writer.append(&record(STORED, id, &[]))?)
    }

    /// Records that an order is over.
    pub(super) fn remove(&mut self, id: OrderId) -> Result<(), InboxError> {
        let Some(bytes) = self.live.remove(&id) else {
            return Ok(());
        };
        self.live_bytes -= bytes;
        self.writer.append(&record(OVER, id, &[]))?;
        let length = self.writer.bytes();
        if length > MIN_REWRITE_BYTES && length / LIVE_PART > self.live_bytes {
            self.writer = write(&self.path, &read(&self.path)?.orders)?;
            self.is_unsynced = false;
            #[cfg(test)]
            {
                self.synced_bytes = self.writer.bytes();
            }
        }
        Ok(())
    }
}

fn record(kind: u8, id: OrderId, text: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(17 + text.len());
    record.push(kind);
    record.extend_from_slice(id.as_bytes());
    record.extend_from_slice(text);
    record
}

/// The boot of this host, if the kernel reports one.
fn boot() -> Option<Vec<u8>> {
    fs::read("/proc/sys/kernel/random/boot_id").ok()
}

/// Reads the log at `path`; empty if it does not exist.
fn read(path: &Path) -> Result<Contents, InboxError> {
    let mut contents = Contents::default();
    let is_there = read_log(path, HEADER, &mut |record| contents.apply(record))?;
    // A log gets its name together with its first record.
    if is_there && contents.boot.is_none() {
        let other = io::Error::other("it is damaged, or of another version of neph");
        return Err(DiskError::of("understand", path)(other).into());
    }
    Ok(contents)
}

impl Contents {
    fn apply(&mut self, record: &[u8]) {
        let Some((kind, rest)) = record.split_first() else {
            return;
        };
        if *kind == BOOT {
            self.boot = Some(rest.to_vec());
            return;
        }
        let Some((id, text)) = rest.split_first_chunk() else {
            return;
        };
        let id = OrderId::from_bytes(*id);
        match *kind {
            ORDER => {
                let logged = LoggedOrder {
                    text: text.to_vec(),
                    is_stored: false,
                };
                self.orders.insert(id, logged);
            }
            STORED => {
                if let Some(logged) = self.orders.get_mut(&id) {
                    logged.is_stored = true;
                }
            }
            OVER => {
                self.orders.remove(&id);
            }
            _ => {}
        }
    }
}

/// Writes a log of these orders; it replaces the one at `path` once it is completely on disk.
fn write(path: &Path, orders: &BTreeMap<OrderId, LoggedOrder>) -> Result<LogWriter, InboxError> {
    let partial = path.with_extension("new");
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(DiskError::of("remove", &partial)(error).into());
        }
        _ => {}
    }
    let mut writer = LogWriter::create(&partial, HEADER)?;
    let mut first = vec![BOOT];
    first.extend(boot().unwrap_or_default());
    writer.append(&first)?;
    for (id, logged) in orders {
        writer.append(&record(ORDER, *id, &logged.text))?;
        if logged.is_stored {
            writer.append(&record(STORED, *id, &[]))?;
        }
    }
    writer.sync()?;
    fs::rename(&partial, path).map_err(DiskError::of("write", path))?;
    let folder = path.parent().unwrap_or(path);
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(DiskError::of("write", folder))?;
    Ok(writer)
}

#[cfg(test)]
mod tests;
