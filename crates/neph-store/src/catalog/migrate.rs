//! The schema versions: an ordered list of steps. Each step is applied once, in a transaction.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::failed;
use crate::StoreError;

/// Step n (from 0) migrates version n to version n + 1. Append only.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    include_str!("schema-4.sql"),
    include_str!("schema-5.sql"),
    include_str!("schema-6.sql"),
    include_str!("schema-7.sql"),
    include_str!("schema-8.sql"),
    include_str!("schema-9.sql"),
    include_str!("schema-10.sql"),
    include_str!("schema-11.sql"),
];

/// The first version with reductions and minutes.
pub(super) const FIRST_VERSION_WITH_REDUCTIONS: u32 = 10;

const fn newest_version(steps: &[&str]) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "a handful of steps")]
    let count = steps.len() as u32;
    count
}

/// The catalog's version; 0 for an empty file.
fn version(connection: &Connection) -> rusqlite::Result<u32> {
    let exists = connection
        .query_row(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'",
            [],
            |_| Ok(()),
        )
        .optional()?;
    if exists.is_none() {
        return Ok(0);
    }
    connection.query_row("SELECT version FROM schema_version", [], |row| row.get(0))
}

/// The oldest version that can be read without migration. Later versions added tables and a column
/// that may be absent, and renamed one (`traced_routes` reads both names).
const OLDEST_READABLE: u32 = 8;

/// Returns the version of a catalog that is opened for reading. Refuses versions that are too old:
/// reading never changes a catalog.
pub(super) fn check(
    connection: &Connection,
    path: &Path,
    steps: &[&str],
) -> Result<u32, StoreError> {
    let schema_version = version(connection).map_err(failed("read the schema version", path))?;
    let newest_version = newest_version(steps);
    if schema_version > newest_version {
        return Err(newer_schema(path, schema_version, newest_version));
    }
    if schema_version < newest_version.min(OLDEST_READABLE) {
        return Err(StoreError::OlderSchema {
            path: path.to_owned(),
            found: schema_version,
            known: newest_version,
        });
    }
    Ok(schema_version)
}

fn newer_schema(path: &Path, schema_version: u32, newest_version: u32) -> StoreError {
    StoreError::NewerSchema {
        path: path.to_owned(),
        found: schema_version,
        known: newest_version,
    }
}

/// Applies all missing steps in one transaction.
pub(super) fn migrate_to_newest(
    connection: &mut Connection,
    path: &Path,
    steps: &[&str],
) -> Result<(), StoreError> {
    const OPERATION: &str = "bring the schema up to date";
    let newest_version = newest_version(steps);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed(OPERATION, path))?;
    let schema_version = version(&transaction).map_err(failed("read the schema version", path))?;
    if schema_version > newest_version {
        return Err(newer_schema(path, schema_version, newest_version));
    }
    let mut missing_steps = steps.iter().skip(schema_version as usize);
    let migrated = missing_steps
        .try_for_each(|step| transaction.execute_batch(step))
        .and_then(|()| {
            transaction.execute_batch(
                "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL) STRICT;
                 DELETE FROM schema_version;",
            )
        })
        .and_then(|()| {
            transaction.execute("INSERT INTO schema_version VALUES (?1)", [newest_version])
        });
    migrated
        .and_then(|_| transaction.commit())
        .map_err(failed(OPERATION, path))
}
