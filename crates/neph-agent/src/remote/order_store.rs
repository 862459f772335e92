//! The orders of an agent on its disk, until the controller has stored their results.
//!
//! Owns the folder: one below `orders` for each order, the journals of all, and the list of stored orders.
//! With the list, an order that arrives late is not carried out a second time. A kill at any moment leaves
//! no order, an order without a result, or an order with its result.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use neph_journal::{fleet_folder, journal_path};
use neph_model::{Order, OrderFailed, OrderId, OrderResult, PingBetween, Prepared};
use neph_text::{DiskError, FolderLock, remove_folder, write_durable};

use super::file::files_of;
use super::json::{read_json, write_json};
use super::{Ended, LONGEST_FRAME, MAX_PART_BYTES, OrderState, Part, ResultFile};

/// Number of stored orders in the list. An order that is older than all of them counts as stored.
const MAX_STORED_IDS: usize = 4096;

/// Maximum length of a result, bytes: the rest of the message needs space too.
const LONGEST_RESULT: usize = LONGEST_FRAME / 2;

/// The orders could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum OrderStoreError {
    /// The disk refuses.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Another agent has the folder.
    #[error("{path} is in use by another agent; give each a folder of its own", path = .0.display())]
    InUse(PathBuf),
}

/// An order in the store.
#[derive(Debug)]
pub(super) struct StoredOrder {
    pub(super) order: Order,
    /// Of each experiment, once it is known whether it can begin.
    pub(super) prepared: Option<Vec<Result<Prepared, OrderFailed>>>,
    ended: Option<Ended>,
}

/// The orders of an agent.
#[derive(Debug)]
pub(super) struct OrderStore {
    folder: PathBuf,
    orders: BTreeMap<OrderId, StoredOrder>,
    stored: BTreeSet<OrderId>,
    /// Locked as long as this agent runs.
    _lock: FolderLock,
}

impl OrderStore {
    /// The orders in `folder`, which is made if it is not there.
    pub(super) fn open(folder: &Path) -> Result<Self, OrderStoreError> {
        for path in [folder, &folder.join("orders"), &journals_in(folder)] {
            fs::create_dir_all(path).map_err(DiskError::of("make the folder", path))?;
        }
        let lock = FolderLock::take(folder)?;
        let lock = lock.ok_or_else(|| OrderStoreError::InUse(folder.to_owned()))?;
        // Captures of one that was killed: their orders are over.
        remove_folder(&captures_in(folder))?;
        let mut store = Self {
            folder: folder.to_owned(),
            orders: BTreeMap::new(),
            stored: BTreeSet::new(),
            _lock: lock,
        };
        store.read_stored()?;
        store.read_orders()?;
        Ok(store)
    }

    /// Where its journals are.
    pub(super) fn journals(&self) -> PathBuf {
        journals_in(&self.folder)
    }

    fn folder_of(&self, id: OrderId) -> PathBuf {
        self.folder.join("orders").join(id.to_string())
    }

    fn stored_path(&self) -> PathBuf {
        self.folder.join("stored")
    }

    fn read_stored(&mut self) -> Result<(), OrderStoreError> {
        let path = self.stored_path();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(DiskError::of("read", &path)(error).into()),
        };
        // If a kill truncated a line, the folder of its order still exists.
        self.stored = text.lines().filter_map(|line| line.parse().ok()).collect();
        while self.stored.len() > MAX_STORED_IDS {
            self.stored.pop_first();
        }
        let mut text = String::new();
        for id in &self.stored {
            text.push_str(&format!("{id}\n"));
        }
        Ok(write_durable(&path, text.as_bytes()).map_err(DiskError::of("write", &path))?)
    }

    fn read_orders(&mut self) -> Result<(), OrderStoreError> {
        let folder = self.folder.join("orders");
        let entries = fs::read_dir(&folder).map_err(DiskError::of("list", &folder))?;
        for entry in entries {
            let entry = entry.map_err(DiskError::of("list", &folder))?;
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            match read_json::<Order>(&entry.path().join("order.json"))? {
                Some(order) if !self.stored.contains(&id) => {
                    let stored = StoredOrder {
                        order,
                        prepared: read_json(&entry.path().join("prepared.json"))?,
                        ended: read_json(&entry.path().join("result.json"))?,
                    };
                    self.orders.insert(id, stored);
                }
                Some(order) => self.remove(id, &order)?,
                // Killed before the order was complete: the controller got no answer about it.
                None => remove_folder(&entry.path())?,
            }
        }
        Ok(())
    }

    /// All orders in the store.
    pub(super) fn holds(&self) -> Vec<OrderId> {
        self.orders.keys().copied().collect()
    }

    /// How many of them have a result.
    pub(super) fn result_count(&self) -> usize {
        let ended = self.orders.values().filter(|order| order.ended.is_some());
        ended.count()
    }

    /// Those that have no result yet.
    pub(super) fn open_orders(&self) -> Vec<OrderId> {
        let open = self
            .orders
            .iter()
            .filter(|(_, order)| order.ended.is_none());
        open.map(|(id, _)| *id).collect()
    }

    /// An order in the store.
    pub(super) fn stored_order(&self, id: OrderId) -> Option<&StoredOrder> {
        self.orders.get(&id)
    }

    /// Adds an order. It is on the disk when this returns.
    pub(super) fn add(&mut self, id: OrderId, order: Order) -> Result<(), OrderStoreError> {
        let folder = self.folder_of(id);
        fs::create_dir_all(&folder).map_err(DiskError::of("make the folder", &folder))?;
        write_json(&folder.join("order.json"), &order)?;
        let stored = StoredOrder {
            order,
            prepared: None,
            ended: None,
        };
        self.orders.insert(id, stored);
        Ok(())
    }

    /// Its experiments begin.
    pub(super) fn prepared(
        &mut self,
        id: OrderId,
        prepared: Vec<Result<Prepared, OrderFailed>>,
    ) -> Result<(), OrderStoreError> {
        write_json(&self.folder_of(id).join("prepared.json"), &prepared)?;
        if let Some(stored) = self.orders.get_mut(&id) {
            stored.prepared = Some(prepared);
        }
        Ok(())
    }

    /// Pings between experiments.
    pub(super) fn pinged(&self, id: OrderId, pings: &[PingBetween]) -> Result<(), OrderStoreError> {
        let path = ResultFile::Pings.path(&self.journals(), &self.folder_of(id));
        let append = || -> io::Result<()> {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            let mut lines = Vec::new();
            for ping in pings {
                serde_json::to_writer(&mut lines, ping)?;
                lines.push(b'\n');
            }
            file.write_all(&lines)
        };
        Ok(append().map_err(DiskError::of("write", &path))?)
    }

    /// Moves a finished capture into the folder of its order.
    pub(super) fn captured(&self, id: OrderId, path: &Path) -> Result<(), OrderStoreError> {
        let captured_path = ResultFile::Capture.path(&self.journals(), &self.folder_of(id));
        Ok(fs::rename(path, &captured_path).map_err(DiskError::of("write", &captured_path))?)
    }

    /// It is over: the result is safe when this returns.
    pub(super) fn end(
        &mut self,
        id: OrderId,
        result: Result<OrderResult, OrderFailed>,
    ) -> Result<(), OrderStoreError> {
        let (journals, folder) = (self.journals(), self.folder_of(id));
        let Some(stored) = self.orders.get_mut(&id) else {
            return Ok(());
        };
        let result = result.and_then(sendable);
        let files = files_of(&stored.order, &journals, &folder);
        let ended = Ended {
            prepared: stored.prepared.clone(),
            result,
            files: files.map_err(DiskError::of("list what was recorded in", &journals))?,
        };
        write_json(&folder.join("result.json"), &ended)?;
        stored.ended = Some(ended);
        Ok(())
    }

    /// How an order stands.
    pub(super) fn state(&self, id: OrderId) -> OrderState {
        match self.orders.get(&id) {
            Some(StoredOrder {
                ended: Some(ended), ..
            }) => OrderState::Ended(Box::new(ended.clone())),
            Some(stored) => OrderState::Running {
                prepared: stored.prepared.clone(),
            },
            None if self.was_stored(id) => OrderState::Forgotten,
            None => OrderState::Unknown,
        }
    }

    fn was_stored(&self, id: OrderId) -> bool {
        let oldest = self
            .stored
            .first()
            .filter(|_| self.stored.len() >= MAX_STORED_IDS);
        self.stored.contains(&id) || oldest.is_some_and(|oldest| id < *oldest)
    }

    /// A part of a file of its result; `None` if there is none.
    pub(super) fn part(
        &self,
        id: OrderId,
        file: u32,
        from: u64,
        max: u32,
    ) -> Result<Option<Part>, OrderStoreError> {
        let ended = self.orders.get(&id).and_then(|order| order.ended.as_ref());
        let Some(file_length) = ended.and_then(|ended| ended.files.get(file as usize)) else {
            return Ok(None);
        };
        let path = file_length.file.path(&self.journals(), &self.folder_of(id));
        let max = u64::from(max.min(MAX_PART_BYTES));
        let length = file_length.bytes.saturating_sub(from).min(max);
        let read = || -> io::Result<Vec<u8>> {
            let mut opened_file = File::open(&path)?;
            opened_file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            opened_file.take(length).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(DiskError::of("read", &path))?;
        Ok(Some(Part {
            id,
            file,
            from,
            bytes,
        }))
    }

    /// Deletes an order whose result is stored. A running order stays.
    pub(super) fn forget(&mut self, id: OrderId) -> Result<(), OrderStoreError> {
        let Some(stored) = self.orders.get(&id).filter(|order| order.ended.is_some()) else {
            return Ok(());
        };
        let path = self.stored_path();
        let append_id = || -> io::Result<()> {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all(format!("{id}\n").as_bytes())?;
            file.sync_data()
        };
        append_id().map_err(DiskError::of("write", &path))?;
        self.stored.insert(id);
        self.remove(id, &stored.order)?;
        self.orders.remove(&id);
        Ok(())
    }

    fn remove(&self, id: OrderId, order: &Order) -> Result<(), OrderStoreError> {
        if let Order::Experiments(orders) = order {
            for order in orders {
                let path = journal_path(&self.journals(), order.experiment.id);
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(DiskError::of("remove", &path)(error).into());
                    }
                    _ => remove_folder(&fleet_folder(&self.journals(), order.experiment.id))?,
                }
            }
        }
        Ok(remove_folder(&self.folder_of(id))?)
    }
}

/// The result, if it fits into one message; otherwise the reason for the failure.
fn sendable(result: OrderResult) -> Result<OrderResult, OrderFailed> {
    let length = serde_json::to_vec(&result).map_or(usize::MAX, |text| text.len());
    if length <= LONGEST_RESULT {
        return Ok(result);
    }
    let reason = format!("it has {length} bytes, and {LONGEST_RESULT} fit into a message");
    Err(OrderFailed::new("send a result", reason))
}

fn journals_in(folder: &Path) -> PathBuf {
    folder.join("journals")
}

/// Where an agent's captures are until they are whole.
pub fn captures_in(folder: &Path) -> PathBuf {
    folder.join("captures")
}

/// The pings in a file of a result, up to the last whole line.
///
/// # Errors
/// The disk refuses.
pub fn read_pings(path: &Path) -> io::Result<Vec<PingBetween>> {
    let mut pings = Vec::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let Ok(ping) = serde_json::from_str(&line?) else {
            break;
        };
        pings.push(ping);
    }
    Ok(pings)
}
