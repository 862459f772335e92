//! The catalog: everything but the messages, in one SQLite file.
//!
//! Owns the tables (`schema.sql` and the later migration steps) and their versions. One file per
//! noun converts between rows and types. Does not know journals and Parquet files.

mod campaigns;
mod checks;
mod experiments;
mod flow_traces;
mod migrate;
mod minutes;
mod pings;
mod provenance;
mod row;
mod scenarios;
mod series;
mod traced_routes;
mod transfers;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use neph_model::{Event, Experiment, FlowTrace, Provenance, Sample};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::{Access, StoreError};

/// Timeout for another process's transaction. Transactions take milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// An open catalog.
#[derive(Debug)]
pub(crate) struct Catalog {
    connection: Connection,
    /// Locked by the handles of this process during a transaction. A waiter on this mutex continues
    /// at once; a waiter on SQLite's lock sleeps for up to 100 ms.
    transaction_mutex: Arc<Mutex<()>>,
    path: PathBuf,
    /// False for an older catalog, which is read without migration.
    has_reductions: bool,
}

/// What the catalog stores at the end of an experiment.
#[derive(Debug)]
pub(crate) struct EndedExperiment<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) provenance: Option<&'a Provenance>,
    pub(crate) events: &'a [Event],
    pub(crate) samples: &'a [Sample],
    /// Traced after the experiment.
    pub(crate) flow_trace: Option<&'a FlowTrace>,
}

impl Catalog {
    /// Opens the catalog. [`Access::Write`] first creates or migrates it.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self, StoreError> {
        let flags = match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        };
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(failed("open the catalog", path))?;
        let mut catalog = Self {
            connection,
            transaction_mutex: Arc::default(),
            path: path.to_owned(),
            has_reductions: true,
        };
        catalog
            .connection
            .busy_timeout(BUSY_TIMEOUT)
            .map_err(failed("set up the catalog", path))?;
        match access {
            Access::Read => {
                let schema_version =
                    migrate::check(&catalog.connection, path, migrate::MIGRATIONS)?;
                catalog.has_reductions = schema_version >= migrate::FIRST_VERSION_WITH_REDUCTIONS;
            }
            Access::Write => {
                // FULL: an experiment's end must be on disk before its journal is removed.
                catalog
                    .connection
                    .execute_batch(
                        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;",
                    )
                    .map_err(failed("set up the catalog", path))?;
                migrate::migrate_to_newest(&mut catalog.connection, path, migrate::MIGRATIONS)?;
            }
        }
        Ok(catalog)
    }

    /// The same catalog through a separate connection.
    pub(crate) fn handle(&self, access: Access) -> Result<Self, StoreError> {
        let mut catalog = Self::open(&self.path, access)?;
        catalog.transaction_mutex = Arc::clone(&self.transaction_mutex);
        Ok(catalog)
    }

    /// Runs `change` in one transaction.
    fn change(
        &mut self,
        operation: &'static str,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let path = &self.path;
        let _guard = self
            .transaction_mutex
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed(operation, path))?;
        change(&transaction)
            .and_then(|()| transaction.commit())
            .map_err(failed(operation, path))
    }

    fn query<T>(
        &self,
        operation: &'static str,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        query(&self.connection).map_err(failed(operation, &self.path))
    }
}

/// For `map_err`: the failed operation and the catalog.
fn failed(
    operation: &'static str,
    path: &Path,
) -> impl FnOnce(rusqlite::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |source| StoreError::Catalog {
        operation,
        path,
        source,
    }
}
