//! What a controller keeps of the orders that are out: a folder for each, with the order and what has come of
//! its result.
//!
//! Owns these files. An order is here from before it is sent until its agent has forgotten it, so that a
//! controller that was killed finds every result.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use neph_agent::remote::{ResultFile, read_json, write_json};
use neph_model::{AgentName, Order, OrderId};
use neph_text::{DiskError, lock_folder, remove_folder};
use serde::{Deserialize, Serialize};

/// What is kept of orders could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// The disk refuses.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// An order that no message can carry.
    #[error(
        "the order has {0} bytes, and {1} fit into a message; make the plan's experiments smaller"
    )]
    TooLong(usize, usize),
    /// Another campaign has the folder.
    #[error("{path} is in use by another campaign; wait until that has ended", path = .0.display())]
    InUse(PathBuf),
}

/// An order, and who carries it out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sent {
    pub(crate) agent: AgentName,
    pub(crate) order: Order,
}

/// An order that an earlier controller left.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) id: OrderId,
    pub(crate) sent: Sent,
    /// Its result is stored.
    pub(crate) is_stored: bool,
}

/// The folder of all orders that are out.
#[derive(Debug)]
pub(crate) struct Inbox {
    folder: PathBuf,
    /// Held as long as this process uses it.
    _lock: File,
}

impl Inbox {
    /// The inbox in `folder`, which is made if it is not there, and the orders in it.
    pub(crate) fn open(folder: &Path) -> Result<(Self, Vec<Found>), InboxError> {
        fs::create_dir_all(folder).map_err(DiskError::of("make the folder", folder))?;
        let lock = lock_folder(folder)?;
        let inbox = Self {
            folder: folder.to_owned(),
            _lock: lock.ok_or_else(|| InboxError::InUse(folder.to_owned()))?,
        };
        let mut orders = Vec::new();
        for entry in fs::read_dir(folder).map_err(DiskError::of("list", folder))? {
            let entry = entry.map_err(DiskError::of("list", folder))?;
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            match read_json(&entry.path().join("order.json"))? {
                Some(sent) => orders.push(Found {
                    id,
                    sent,
                    is_stored: inbox.stored_mark(id).exists(),
                }),
                // Killed before the order was whole: it was never sent.
                None => inbox.remove(id)?,
            }
        }
        Ok((inbox, orders))
    }

    /// The folder of an order, with the journals of its result.
    pub(crate) fn folder_of(&self, id: OrderId) -> PathBuf {
        self.folder.join(id.to_string())
    }

    fn stored_mark(&self, id: OrderId) -> PathBuf {
        self.folder_of(id).join("stored")
    }

    /// Where a file of its result is.
    pub(crate) fn path_of(&self, id: OrderId, file: ResultFile) -> PathBuf {
        let folder = self.folder_of(id);
        file.path(&folder, &folder)
    }

    /// Keeps an order: it may be sent when this returns.
    pub(crate) fn add(&self, id: OrderId, sent: &Sent) -> Result<(), InboxError> {
        let folder = self.folder_of(id);
        fs::create_dir_all(&folder).map_err(DiskError::of("make the folder", &folder))?;
        Ok(write_json(&folder.join("order.json"), sent)?)
    }

    /// How much of a file of its result is here.
    pub(crate) fn length_of(&self, id: OrderId, file: ResultFile) -> Result<u64, InboxError> {
        let path = self.path_of(id, file);
        match fs::metadata(&path) {
            Ok(found) => Ok(found.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(DiskError::of("look at", &path)(error).into()),
        }
    }

    /// Adds bytes to a file of a result, which is made if it is not there.
    pub(crate) fn append(
        &self,
        id: OrderId,
        file: ResultFile,
        bytes: &[u8],
    ) -> Result<(), InboxError> {
        let path = self.path_of(id, file);
        let append = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut opened = OpenOptions::new().create(true).append(true).open(&path)?;
            opened.write_all(bytes)
        };
        Ok(append().map_err(DiskError::of("write", &path))?)
    }

    /// What is here of a file is not what the agent has: it is fetched from its first byte.
    pub(crate) fn discard(&self, id: OrderId, file: ResultFile) -> Result<(), InboxError> {
        let path = self.path_of(id, file);
        Ok(fs::remove_file(&path).map_err(DiskError::of("remove", &path))?)
    }

    /// Its result is stored: its agent is still to be sent that.
    pub(crate) fn mark_stored(&self, id: OrderId) -> Result<(), InboxError> {
        let path = self.stored_mark(id);
        let mark = || File::create(&path).and_then(|file| file.sync_all());
        Ok(mark().map_err(DiskError::of("write", &path))?)
    }

    /// Nothing is left to do.
    pub(crate) fn remove(&self, id: OrderId) -> Result<(), InboxError> {
        Ok(remove_folder(&self.folder_of(id))?)
    }
}
