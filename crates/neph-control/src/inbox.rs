//! What a controller keeps of the orders that are out: a folder for each, with the order and what has come of
//! its result.
//!
//! Owns these files. An order is here from before it is sent until its agent has forgotten it, so that a
//! controller that was killed finds every result.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use neph_agent::remote::{Part, ResultFile};
use neph_model::AgentName;
use neph_model::{Order, OrderId};
use neph_text::write_durable;
use serde::{Deserialize, Serialize};

/// What is kept of orders could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {path}: {source}", path = path.display())]
pub struct InboxError {
    operation: &'static str,
    path: PathBuf,
    source: io::Error,
}

fn disk(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> InboxError {
    let path = path.to_owned();
    move |source| InboxError {
        operation,
        path,
        source,
    }
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

fn lock(folder: &Path) -> Result<File, InboxError> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let file = options.open(&path).map_err(disk("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let used = io::Error::new(ErrorKind::WouldBlock, "another campaign uses it");
            Err(disk("lock", &path)(used))
        }
        Err(TryLockError::Error(error)) => Err(disk("lock", &path)(error)),
    }
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
        fs::create_dir_all(folder).map_err(disk("make the folder", folder))?;
        let inbox = Self {
            folder: folder.to_owned(),
            _lock: lock(folder)?,
        };
        let mut orders = Vec::new();
        for entry in fs::read_dir(folder).map_err(disk("list", folder))? {
            let entry = entry.map_err(disk("list", folder))?;
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let path = entry.path().join("order.json");
            match fs::read(&path).map(|bytes| serde_json::from_slice(&bytes)) {
                Ok(Ok(sent)) => orders.push(Found {
                    id,
                    sent,
                    is_stored: inbox.stored_mark(id).exists(),
                }),
                // It is whole or not there: this one is of another version.
                Ok(Err(error)) => return Err(disk("understand", &path)(error.into())),
                // Killed before the order was whole: it was never sent.
                Err(error) if error.kind() == ErrorKind::NotFound => inbox.remove(id)?,
                Err(error) => return Err(disk("read", &path)(error)),
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
        fs::create_dir_all(&folder).map_err(disk("make the folder", &folder))?;
        let path = folder.join("order.json");
        let text = serde_json::to_vec(sent).map_err(io::Error::from);
        let written = text.and_then(|text| write_durable(&path, &text));
        written.map_err(disk("write", &path))
    }

    /// How much of a file of its result is here.
    pub(crate) fn length_of(&self, id: OrderId, file: ResultFile) -> Result<u64, InboxError> {
        let path = self.path_of(id, file);
        match fs::metadata(&path) {
            Ok(found) => Ok(found.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(disk("look at", &path)(error)),
        }
    }

    /// Adds the next part to a file of a result.
    pub(crate) fn append(&self, file: ResultFile, part: &Part) -> Result<(), InboxError> {
        let path = self.path_of(part.id, file);
        let append = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut opened = OpenOptions::new().create(true).append(true).open(&path)?;
            opened.write_all(&part.bytes)
        };
        append().map_err(disk("write", &path))
    }

    /// A file of a result that is empty.
    pub(crate) fn touch(&self, id: OrderId, file: ResultFile) -> Result<(), InboxError> {
        let path = self.path_of(id, file);
        let touch = || -> io::Result<File> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            OpenOptions::new().create(true).append(true).open(&path)
        };
        touch().map(drop).map_err(disk("write", &path))
    }

    /// What is here of a file is not what the agent has: it is fetched from its first byte.
    pub(crate) fn discard(&self, id: OrderId, file: ResultFile) -> Result<(), InboxError> {
        let path = self.path_of(id, file);
        fs::remove_file(&path).map_err(disk("remove", &path))
    }

    /// Its result is stored: what is left to do is to tell its agent.
    pub(crate) fn mark_stored(&self, id: OrderId) -> Result<(), InboxError> {
        let path = self.stored_mark(id);
        let mark = || File::create(&path).and_then(|file| file.sync_all());
        mark().map_err(disk("write", &path))
    }

    /// Nothing is left to do.
    pub(crate) fn remove(&self, id: OrderId) -> Result<(), InboxError> {
        let folder = self.folder_of(id);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(disk("remove", &folder)(error))
            }
            _ => Ok(()),
        }
    }
}
