//! The controller's storage of orders that are out: a log of the orders and their states, and a
//! folder for each order whose result has files.
//!
//! Owns these files. An order is stored before it is sent and until its agent has forgotten it, so
//! that a killed controller finds every result.

mod orders_log;

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use neph_agent::remote::ResultFile;
use neph_journal::JournalError;
use neph_model::{AgentName, Order, OrderId};
use neph_text::{DiskError, FolderLock, remove_folder};
use serde::{Deserialize, Serialize};

use orders_log::OrdersLog;

/// Errors of the storage of orders.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// A disk operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A disk operation on the log failed.
    #[error(transparent)]
    Log(#[from] JournalError),
    /// An order too large for a message.
    #[error(
        "the order has {0} bytes, and {1} fit into a message; make the plan's experiments smaller"
    )]
    TooLong(usize, usize),
    /// Another campaign uses the folder.
    #[error("{path} is in use by another campaign; wait until that has ended", path = .0.display())]
    InUse(PathBuf),
}

/// An order and its agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SentOrder {
    pub(crate) agent: AgentName,
    pub(crate) order: Order,
}

/// An order of an earlier controller.
#[derive(Debug)]
pub(crate) struct EarlierOrder {
    pub(crate) id: OrderId,
    pub(crate) sent: SentOrder,
    /// Its result is stored.
    pub(crate) is_stored: bool,
}

/// All orders that are out.
#[derive(Debug)]
pub(crate) struct Inbox {
    folder: PathBuf,
    log: OrdersLog,
    /// Orders with a folder of files.
    folders: BTreeSet<OrderId>,
    /// Held while this process uses the folder.
    _lock: FolderLock,
}

impl Inbox {
    /// Opens the inbox in `folder`, which is created if needed; returns it and its orders.
    pub(crate) fn open(folder: &Path) -> Result<(Self, Vec<EarlierOrder>), InboxError> {
        fs::create_dir_all(folder).map_err(DiskError::of("make the folder", folder))?;
        let lock = FolderLock::take(folder)?;
        let lock = lock.ok_or_else(|| InboxError::InUse(folder.to_owned()))?;
        let (log, earlier) = OrdersLog::open(folder)?;
        let mut inbox = Self {
            folder: folder.to_owned(),
            log,
            folders: BTreeSet::new(),
            _lock: lock,
        };
        // Files are not synced: after a power failure one may have the right length but wrong
        // contents. The agent has its files until their order is stored.
        let open_ids = earlier.orders.iter().filter(|order| !order.is_stored);
        let open_ids: BTreeSet<OrderId> = open_ids
            .filter(|_| earlier.is_same_boot)
            .map(|order| order.id)
            .collect();
        for entry in fs::read_dir(folder).map_err(DiskError::of("list", folder))? {
            let entry = entry.map_err(DiskError::of("list", folder))?;
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if open_ids.contains(&id) {
                inbox.folders.insert(id);
            } else {
                remove_folder(&entry.path())?;
            }
        }
        Ok((inbox, earlier.orders))
    }

    /// The folder of an order, with the journals of its result.
    pub(crate) fn folder_of(&self, id: OrderId) -> PathBuf {
        self.folder.join(id.to_string())
    }

    /// The path of a file of its result.
    pub(crate) fn path_of(&self, id: OrderId, file: ResultFile) -> PathBuf {
        let folder = self.folder_of(id);
        file.path(&folder, &folder)
    }

    /// Stores an order, a [`SentOrder`] as JSON. It may be sent after the next [`Self::sync`].
    pub(crate) fn add(&mut self, id: OrderId, sent: &[u8]) -> Result<(), InboxError> {
        self.log.add(id, sent)
    }

    /// Syncs all added orders with one disk write; they may be sent when this returns.
    pub(crate) fn sync(&mut self) -> Result<(), InboxError> {
        self.log.sync()
    }

    /// Received length of a file of its result.
    pub(crate) fn length_of(&self, id: OrderId, file: ResultFile) -> Result<u64, InboxError> {
        let path = self.path_of(id, file);
        match fs::metadata(&path) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(DiskError::of("look at", &path)(error).into()),
        }
    }

    /// Appends bytes to a file of a result, which is created if needed.
    pub(crate) fn append(
        &mut self,
        id: OrderId,
        file: ResultFile,
        bytes: &[u8],
    ) -> Result<(), InboxError> {
        let path = self.path_of(id, file);
        self.folders.insert(id);
        let append = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut opened = OpenOptions::new().create(true).append(true).open(&path)?;
            opened.write_all(bytes)
        };
        Ok(append().map_err(DiskError::of("write", &path))?)
    }

    /// Removes a file that differs from the agent's: it is fetched from its first byte.
    pub(crate) fn discard(&self, id: OrderId, file: ResultFile) -> Result<(), InboxError> {
        let path = self.path_of(id, file);
        Ok(fs::remove_file(&path).map_err(DiskError::of("remove", &path))?)
    }

    /// Records that its result is stored; its agent must still be notified.
    pub(crate) fn mark_stored(&mut self, id: OrderId) -> Result<(), InboxError> {
        self.log.mark_stored(id)
    }

    /// Removes an order that is over.
    pub(crate) fn remove(&mut self, id: OrderId) -> Result<(), InboxError> {
        if self.folders.remove(&id) {
            remove_folder(&self.folder_of(id))?;
        }
        self.log.remove(id)
    }

    /// Simulates a power failure: truncates the log to its synced part.
    #[cfg(test)]
    pub(crate) fn lose_power(&mut self) {
        self.log.is_killed = true;
        let path = self.folder.join("orders.log");
        let file = OpenOptions::new().write(true).open(&path);
        let cut = file.and_then(|file| file.set_len(self.log.synced_bytes));
        cut.expect("writable");
    }
}
